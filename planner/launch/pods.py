"""Pods as every Kubernetes target builds them: bound to their node, with the GPUs of their share, shared memory, probes and the checkpoint.

The device plugin chooses which GPUs of a node a pod gets. A pod that takes the whole node gets all of them, in their order; one that takes a part is said to
(GPU_INDEX_NOT_PINNED), and the GPUs of the plan stand in the annotation `planner/gpus`, which `planner validate` reads back.

Sources: Kubernetes API v1 (Pod); LeaderWorkerSet v1; NVIDIA DRA driver for GPUs, resource.nvidia.com/v1beta1 (ComputeDomain); vLLM
docs/serving/parallelism_scaling.md (IPC_LOCK and /dev/shm).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planner.diagnostics import Diagnostic
from planner.launch.commands import VISIBLE_DEVICES
from planner.launch.directory import LaunchOptions, caution, refusal
from planner.launch.replicas import Replica, Share

HOSTNAME: Final = "kubernetes.io/hostname"
CLIQUE: Final = "nvidia.com/gpu.clique"
GPUS: Final = "planner/gpus"
QUEUE: Final = "kueue.x-k8s.io/queue-name"
# Labels of topograph's for what joins a replica: tier 0 is the leaf switch, tier 1 what joins leaves.
LEVELS: Final = {"leaf": "fabric.topograph.run/tier-0", "spine": "fabric.topograph.run/tier-1"}
RESOURCES: Final = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
IMAGES: Final = {
    "vllm": "vllm/vllm-openai:v{version}",
    "sglang": "lmsysorg/sglang:v{version}",
    "tensorrt-llm": "nvcr.io/nvidia/tensorrt-llm/release:{version}",
}
# Weights of hundreds of gigabytes are read before a server answers; a probe that gives up earlier would start the pod again and again.
SLOWEST_START: Final = 7200
PROBE_PERIOD: Final = 10
CLAIM: Final = "imex"


def image_faults(replicas: Sequence[Replica], options: LaunchOptions) -> list[Diagnostic]:
    """Replicas on GPUs that the engines' own images do not serve."""
    if options.image is not None:
        return []
    return [
        refusal(
            "IMAGE_NEEDED",
            f"{replica.deployment} runs on {replica.gpu.name}, for which no image is known",
            "name one: --image REPOSITORY:TAG",
            f"deployments.{replica.deployment}",
        )
        for replica in replicas
        if replica.gpu.vendor != "nvidia"
    ]


def image_of(replica: Replica, options: LaunchOptions) -> str:
    """Container image of a replica: as asked, else the engine's own of the planned version."""
    if options.image is not None:
        return options.image
    version = replica.engine.version.partition("+")[0].lstrip("v")
    whole = version + ".0" * max(2 - version.count("."), 0)
    return IMAGES[replica.engine.name].format(version=whole)


def metadata(name: str, options: LaunchOptions, labels: Mapping[str, str] | None = None, *, queued: bool = False) -> dict[str, Any]:
    """Metadata of a document; `queued` workloads go through the Kueue queue where one is asked for."""
    found: dict[str, Any] = {"name": name}
    if options.namespace is not None:
        found["namespace"] = options.namespace
    own = {**(labels or {}), **({QUEUE: options.queue} if queued and options.queue is not None else {})}
    if own:
        found["labels"] = own
    return found


def front_service(label: str, options: LaunchOptions) -> dict[str, Any]:
    """Service over the heads of all replicas of a deployment; the port of its pods goes by its name, since replicas on one node have different ones."""
    selector = {"app.kubernetes.io/name": label, "planner/node-rank": "0"}
    spec = {"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(label, options), "spec": spec}


def topology_annotations(replica: Replica, name: str, options: LaunchOptions) -> dict[str, str]:
    """Annotations that have Kueue find one topology domain for all pods of a replica; none without a queue.

    Sources: Kueue documentation, Run LeaderWorkerSet (podset-required-topology, podset-group-name); NVIDIA/topograph node labels.
    """
    if options.queue is None:
        return {}
    level = options.topology_level or LEVELS.get(replica.shape.locality)
    if level is None:
        level = CLIQUE if needs_domain(replica) else HOSTNAME if len(replica.nodes) == 1 else None
    if level is None:
        return {}
    found = {"kueue.x-k8s.io/podset-required-topology": level}
    if len(replica.shares) > 1:
        found["kueue.x-k8s.io/podset-group-name"] = name
    return found


def labels_of(replica: Replica, label: str, number: int | None = None) -> dict[str, str]:
    """Labels of a replica's pods; `label` is its name in Kubernetes, `number` its share."""
    found = {"app.kubernetes.io/name": label, "app.kubernetes.io/instance": f"{label}-{replica.number}"}
    return found if number is None else {**found, "planner/node-rank": str(number)}


def gpu_words(shares: Iterable[Share]) -> str:
    """GPUs of shares in rank order, as `planner validate` reads them."""
    return " ".join(f"{share.node.name}:[{','.join(map(str, share.gpus))}]" for share in shares)


def template(
    replica: Replica,
    shares: Sequence[Share],
    container: Mapping[str, Any],
    labels: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    volumes: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Pod template for the pods of `shares`, one pod each, all with the same container."""
    spec: dict[str, Any] = {**bound_to([share.node.name for share in shares])}
    # A Service called like an engine would set variables such as VLLM_PORT, which the engine takes for its own.
    spec["enableServiceLinks"] = False
    spec["tolerations"] = [{"key": RESOURCES[replica.gpu.vendor], "operator": "Exists", "effect": "NoSchedule"}]
    spec["containers"] = [dict(container)]
    if needs_domain(replica):
        spec["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": f"{labels['app.kubernetes.io/instance']}-imex"}]
    spec["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}, *model_volumes(replica), *map(dict, volumes)]
    noted = {GPUS: gpu_words(shares), **(annotations or {})}
    return {"metadata": {"labels": dict(labels), "annotations": noted}, "spec": spec}


def bound_to(nodes: Sequence[str]) -> dict[str, Any]:
    """Part of a pod spec that binds it to a node, or to one of several that hold one such pod each."""
    if len(nodes) == 1:
        return {"nodeSelector": {HOSTNAME: nodes[0]}}
    expression = {"key": HOSTNAME, "operator": "In", "values": list(nodes)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def container(
    replica: Replica,
    share: Share,
    image: str,
    command: Sequence[str],
    arguments: Sequence[str],
    *,
    name: str,
    environment: Mapping[str, str] | None = None,
    head: bool = True,
    ordered: bool = True,
    mounts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Container that runs a share of a replica; the head answers requests and is probed. `ordered` = the order of its GPUs is set here."""
    count = str(len(share.gpus))
    found: dict[str, Any] = {"name": name, "image": image, "command": list(command), "args": list(arguments)}
    token = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}}
    found["env"] = [
        token,
        *({"name": key, "value": value} for key, value in {**(visible(replica, share) if ordered else {}), **(environment or {})}.items()),
    ]
    resource = RESOURCES[replica.gpu.vendor]
    found["resources"] = {"limits": {resource: count}, "requests": {resource: count}}
    if needs_domain(replica):
        found["resources"]["claims"] = [{"name": CLAIM}]
    if len(replica.nodes) > 1:
        found["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    if head:
        found["ports"] = [{"name": "http", "containerPort": replica.port}]
        probe = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": PROBE_PERIOD}
        found["startupProbe"] = {**probe, "failureThreshold": SLOWEST_START // PROBE_PERIOD}
        found["readinessProbe"] = probe
    found["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}, *model_mounts(replica), *map(dict, mounts)]  # noqa: S108
    return found


def visible(replica: Replica, share: Share) -> dict[str, str]:
    """Order of the GPUs where it is not that of their numbers: positions among the GPUs that the pod gets, which it counts from 0."""
    ordered = sorted(share.gpus)
    if ordered == list(share.gpus):
        return {}
    return {VISIBLE_DEVICES[replica.gpu.vendor]: ",".join(str(ordered.index(gpu)) for gpu in share.gpus)}


def model_volumes(replica: Replica) -> list[dict[str, Any]]:
    """Folders of the checkpoint and of a draft on the node, where they are paths."""
    return [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path in _folders(replica)]


def model_mounts(replica: Replica) -> list[dict[str, Any]]:
    """Where those folders are seen."""
    return [{"name": name, "mountPath": path, "readOnly": True} for name, path in _folders(replica)]


def _folders(replica: Replica) -> list[tuple[str, str]]:
    named = [("model", replica.checkpoint.model)]
    if replica.speculation is not None and replica.speculation.model != replica.checkpoint.model:
        named.append(("draft", replica.speculation.model))
    return [(name, path) for name, path in named if path.startswith("/")]


def needs_domain(replica: Replica) -> bool:
    """Whether a replica spans several nodes of one NVLink domain, whose GPUs reach each other's memory through IMEX channels only."""
    domains = {share.node.domain for share in replica.shares if share.node.domain_nodes > 1}
    return replica.gpu.vendor == "nvidia" and len(replica.nodes) > 1 and bool(domains)


def compute_domain(replica: Replica, name: str, options: LaunchOptions) -> dict[str, Any]:
    """ComputeDomain that gives the pods of a replica an IMEX channel."""
    spec = {"numNodes": len(replica.nodes), "channel": {"resourceClaimTemplate": {"name": f"{name}-imex"}}}
    return {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": metadata(name, options), "spec": spec}


def device_cautions(replicas: Sequence[Replica]) -> list[Diagnostic]:
    """Replicas on a part of a node, whose GPUs the device plugin chooses."""
    found = []
    for replica in replicas:
        parts = [share for share in replica.shares if len(share.gpus) < share.node.gpus]
        if not parts:
            continue
        near = replica.shape.locality in {"pair", "mesh"}
        message = f"the device plugin chooses {len(parts[0].gpus)} of the GPUs of {parts[0].node.name}; the plan counts with {gpu_words(parts[:1])}"
        hint = "its GPUs are joined in pairs, so that is slower than planned when it chooses others: launch it with --for slurm or on the node itself"
        if not near:
            hint = "any free GPUs of that node are as near to each other; keep the others of the node out of Kubernetes' hands"
        found.append(caution("GPU_INDEX_NOT_PINNED", message, hint, f"deployments.{replica.deployment}"))
    return found
