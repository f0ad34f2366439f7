"""Target `leader-worker-set`: one LeaderWorkerSet a replica, the leader on the node of the first rank; Kueue's topology annotations where a queue is named.

Workers of one replica share a template. Where there are several of them, each finds its rank by the name of the node it is on, so ranks are the plan's
wherever the controller puts which pod.

Source: leaderworkerset.x-k8s.io/v1 API; Kueue documentation, Run LeaderWorkerSet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.diagnostics import Diagnostic
from planner.launch.directory import LaunchFile, LaunchOptions, refusal
from planner.launch.guide import Step
from planner.launch.manifest import manifest, needed_first, remark_of
from planner.launch.names import kubernetes_names
from planner.launch.pod_commands import LEADER, NODE_NAME, by_node_name, config_volume, engine_faults, pod_command, split_words
from planner.launch.pods import (
    container,
    device_cautions,
    image_faults,
    image_of,
    labels_of,
    metadata,
    needs_domain,
    template,
    topology_annotations,
)
from planner.launch.replicas import Replica

ENGINES = ("vllm", "sglang", "tensorrt-llm")
FILE = "leader-worker-set.yaml"
LONGEST_SUFFIX = len("-0000-0-000")


def faults(replicas: Sequence[Replica], options: LaunchOptions) -> list[Diagnostic]:
    """What cannot be told to LeaderWorkerSet or to an engine in it."""
    found = [*engine_faults(replicas), *image_faults(replicas, options)]
    for replica in replicas:
        if len({len(share.gpus) for share in replica.shares[1:]}) > 1:
            where = f"deployments.{replica.deployment}.replicas.{replica.number}"
            message = "its workers need unlike numbers of GPUs, and one template serves all of them"
            found.append(refusal("TARGET_CANNOT", message, "launch it with --for kubernetes", where))
    return found


def cautions(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What Kubernetes decides by itself."""
    return device_cautions(replicas)


def files(replicas: Sequence[Replica], options: LaunchOptions) -> list[LaunchFile]:
    """The manifest."""
    return manifest(FILE, replicas, options, "The leaders of {} behind one name.", LONGEST_SUFFIX, _replica)


def _replica(replica: Replica, label: str, options: LaunchOptions) -> list[tuple[str, Any]]:
    name = f"{label}-{replica.number}"
    leader = _leader(replica, name, label, options)
    inner: dict[str, Any] = {"size": len(replica.shares), "restartPolicy": "RecreateGroupOnPodRestart"}
    if len(replica.shares) > 1:
        inner |= {"leaderTemplate": leader, "workerTemplate": _worker(replica, name, label, options)}
    else:
        inner["workerTemplate"] = leader
    spec = {"replicas": 1, "startupPolicy": "LeaderCreated", "leaderWorkerTemplate": inner}
    document = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata(name, options, labels_of(replica, label), queued=True),
        "spec": spec,
    }
    return [*needed_first(replica, name, options), (remark_of(replica), document)]


def _leader(replica: Replica, name: str, label: str, options: LaunchOptions) -> dict[str, Any]:
    command = pod_command(replica, 0, f"$({LEADER})")
    program, arguments = split_words(command)
    volumes, mounts = config_volume(replica, name)
    share = replica.shares[0]
    inside = container(
        replica, share, image_of(replica, options), program, arguments, name="leader", environment=command.environment, mounts=mounts
    )
    notes = topology_annotations(replica, name, options)
    return template(replica, [share], inside, labels_of(replica, label, 0), annotations=notes, volumes=volumes)


def _worker(replica: Replica, name: str, label: str, options: LaunchOptions) -> dict[str, Any]:
    numbers = range(1, len(replica.shares))
    commands = {number: pod_command(replica, number, f"$({LEADER})") for number in numbers}
    shares = replica.shares[1:]
    if len(shares) == 1:
        program, arguments = split_words(commands[1])
        environment = commands[1].environment
    else:
        program, arguments, environment = ["bash", "-c"], [by_node_name(replica, numbers, commands)], {}
    inside = container(
        replica,
        shares[0],
        image_of(replica, options),
        program,
        arguments,
        name="worker",
        environment=environment,
        head=False,
        ordered=len(shares) == 1,
    )
    if len(shares) > 1:
        inside["env"].append(NODE_NAME)
    labels = {key: value for key, value in labels_of(replica, label, 1).items() if key != "planner/node-rank"}
    return template(replica, shares, inside, labels, annotations=topology_annotations(replica, name, options))


def steps(replicas: Sequence[Replica], options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    where = "" if options.namespace is None else f" -n {options.namespace}"
    names = kubernetes_names({replica.deployment: LONGEST_SUFFIX for replica in replicas}, options)
    found = [
        Step("The controller of LeaderWorkerSet is installed:", ("kubectl get crd leaderworkersets.leaderworkerset.x-k8s.io",)),
        Step(
            "Gated models: the secret `hf-token` holds a Hugging Face token (it may be missing for others).",
            (f'kubectl create secret generic hf-token{where} --from-literal=token="$HF_TOKEN"',),
        ),
    ]
    if options.queue is not None:
        found.append(
            Step(
                "The queue exists, and its flavor names a Topology with the level of the annotations:",
                (f"kubectl get localqueue{where} {options.queue}",),
            )
        )
    if any(needs_domain(replica) for replica in replicas):
        found.append(
            Step(
                "The NVIDIA DRA driver for GPUs serves ComputeDomain (multi-node NVLink):",
                ("kubectl get crd computedomains.resource.nvidia.com",),
            )
        )
    return [
        *found,
        Step("Start:", (f"kubectl apply{where} -f {FILE}", f"kubectl get pods{where} -o wide --watch")),
        Step("Ask:", (f"kubectl port-forward{where} service/{next(iter(names.values()))} 8000:80", "curl http://localhost:8000/v1/models")),
    ]
