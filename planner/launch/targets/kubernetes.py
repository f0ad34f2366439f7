"""Target `kubernetes`: Deployments for replicas on one node, StatefulSets (one a node) for those on several, with their Services.

A pod is bound to its node, so a Deployment replaces its pod instead of starting the next beside it (`Recreate`): the GPUs are free only then.

Source: Kubernetes API reference, apps/v1 and core/v1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.diagnostics import Diagnostic
from planner.launch.directory import LaunchFile, LaunchOptions
from planner.launch.guide import Step
from planner.launch.manifest import manifest, needed_first, remark_of
from planner.launch.names import kubernetes_names
from planner.launch.pod_commands import config_volume, engine_faults, pod_command, split_words
from planner.launch.pods import (
    container,
    device_cautions,
    image_faults,
    image_of,
    labels_of,
    metadata,
    needs_domain,
    template,
)
from planner.launch.replicas import Replica

ENGINES = ("vllm", "sglang", "tensorrt-llm")
FILE = "kubernetes.yaml"
LONGEST_SUFFIX = len("-0000-node-000-0")


def faults(replicas: Sequence[Replica], options: LaunchOptions) -> list[Diagnostic]:
    """What cannot be told to Kubernetes or to an engine in it."""
    return [*engine_faults(replicas), *image_faults(replicas, options)]


def cautions(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What Kubernetes decides by itself."""
    return device_cautions(replicas)


def files(replicas: Sequence[Replica], options: LaunchOptions) -> list[LaunchFile]:
    """The manifest."""
    return manifest(FILE, replicas, options, "All replicas of {} behind one name.", LONGEST_SUFFIX, _replica)


def _replica(replica: Replica, label: str, options: LaunchOptions) -> list[tuple[str, Any]]:
    name = f"{label}-{replica.number}"
    found, remark = needed_first(replica, name, options), remark_of(replica)
    if len(replica.shares) == 1:
        labels = labels_of(replica, label, 0)
        spec = {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": _template(replica, name, 0, labels, "", options),
        }
        return [
            *found,
            (
                remark,
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name, options, labels, queued=True), "spec": spec},
            ),
        ]
    ports = [{"name": "rendezvous", "port": replica.rendezvous_port}]
    headless = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels_of(replica, label), "ports": ports}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata(name, options), "spec": headless}
    found.append(("Where the ranks of the replica find each other, before they are ready.", service))
    address = f"{name}-node-0-0.{name}"
    for number in range(len(replica.shares)):
        labels = labels_of(replica, label, number)
        spec = {
            "serviceName": name,
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": _template(replica, name, number, labels, address, options),
        }
        own = f"{name}-node-{number}"
        part = f"{remark}; node {number} of {len(replica.shares)}"
        found.append(
            (part, {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(own, options, labels, queued=True), "spec": spec})
        )
    return found


def _template(replica: Replica, name: str, number: int, labels: dict[str, str], address: str, options: LaunchOptions) -> dict[str, Any]:
    command = pod_command(replica, number, address)
    program, arguments = split_words(command)
    volumes, mounts = config_volume(replica, name)
    share = replica.shares[number]
    inside = container(
        replica,
        share,
        image_of(replica, options),
        program,
        arguments,
        name="server" if number == 0 else "worker",
        environment=command.environment,
        head=number == 0,
        mounts=mounts,
    )
    return template(replica, [share], inside, labels, volumes=volumes)


def steps(replicas: Sequence[Replica], options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    where = "" if options.namespace is None else f" -n {options.namespace}"
    names = kubernetes_names({replica.deployment: LONGEST_SUFFIX for replica in replicas}, options)
    first = next(iter(names.values()))
    found = [
        Step(
            "Gated models: the secret `hf-token` holds a Hugging Face token (it may be missing for others).",
            (f'kubectl create secret generic hf-token{where} --from-literal=token="$HF_TOKEN"',),
        )
    ]
    if any(needs_domain(replica) for replica in replicas):
        found.append(
            Step(
                "The NVIDIA DRA driver for GPUs serves ComputeDomain (multi-node NVLink):",
                ("kubectl get crd computedomains.resource.nvidia.com",),
            )
        )
    return [
        *found,
        Step(
            "The nodes of the plan are called in Kubernetes as they are in the topology:",
            (f"kubectl get nodes {' '.join(_first(replicas))}",),
        ),
        Step("Start:", (f"kubectl apply{where} -f {FILE}", f"kubectl get pods{where} -o wide --watch")),
        Step("Ask:", (f"kubectl port-forward{where} service/{first} 8000:80", "curl http://localhost:8000/v1/models")),
    ]


def _first(replicas: Sequence[Replica]) -> list[str]:
    return list(dict.fromkeys(node for replica in replicas for node in replica.nodes))[:8]
