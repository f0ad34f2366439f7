"""Kubernetes, LeaderWorkerSet and Dynamo manifests -> a placement.

LeaderWorkerSet (leaderworkerset.x-k8s.io): `replicas` groups of `leaderWorkerTemplate.size` pods, one of them the leader.
DynamoGraphDeployment (nvidia.com): every service that runs a worker, `replicas` times, over `multinode.nodeCount` nodes each.

Deployments, StatefulSets, Pods and Jobs: one replica a pod, or one over several whose commands tell their node ranks.

Sources: LeaderWorkerSet API reference, leaderworkerset.x-k8s.io/v1; NVIDIA Dynamo Kubernetes API reference, nvidia.com/v1alpha1 (services) and v1beta1 (components).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planner.diagnostics import Diagnostic, PlannerError
from planner.placement.inquiry import Inquiry
from planner.placement.manifest_text import Pod, documents, mapping, pod_of, take_container, take_resources, walk_pods, whole
from planner.placement.pod_configurations import take_configurations, together
from planner.placement.pod_groups import PodGroup, placed_group
from planner.placement.proposal import Proposal, ProposedDeployment
from planner.placement.seats import Seats
from planner.problem.dotted_paths import Path
from planner.problem.source import Source

LEADER_WORKER_SET: Final = "lws"
DYNAMO: Final = "dynamo"
KUBERNETES: Final = "kubernetes"
_KINDS: Final = {"LeaderWorkerSet": LEADER_WORKER_SET, "DynamoGraphDeployment": DYNAMO, "DynamoComponentDeployment": DYNAMO}
_POD_KINDS: Final = ("Deployment", "StatefulSet", "Pod", "Job")


def manifest_kind(text: str, file: str) -> str | None:
    """Kind of manifest a text is; None where it is none, or cannot be read."""
    try:
        kinds = [str(source.data.get("kind")) for source in documents(text, file)]
    except PlannerError:
        return None
    known = next((_KINDS[kind] for kind in kinds if kind in _KINDS), None)
    return known or (KUBERNETES if any(kind in _POD_KINDS for kind in kinds) else None)


def read_manifest(request: Inquiry, kind: str) -> Proposal:
    """Read the groups of pods that a manifest describes.

    Raises
    ------
    PlannerError
        NO_POD_GROUP, or what keeps the file from being read.
    """
    sources = documents(request.text, request.file)
    faults: list[Diagnostic] = [fault for source in sources for fault in source.faults]
    groups: list[PodGroup] = []
    for source in sources:
        named = source.data.get("kind")
        if named == "LeaderWorkerSet":
            groups += _leader_worker_groups(source)
        elif named in {"DynamoGraphDeployment", "DynamoComponentDeployment"}:
            groups += _dynamo_groups(source)
        elif named in _POD_KINDS:
            groups += _plain_groups(source)
    groups = together(groups)
    take_configurations(groups, sources)
    if not groups:
        hint = "give a LeaderWorkerSet or DynamoGraphDeployment manifest whose pods ask for GPUs"
        raise PlannerError([*faults, Diagnostic("NO_POD_GROUP", "no group of pods is described", hint, place=request.start)])
    seats = Seats(request.fabric)
    deployments: list[ProposedDeployment] = []
    for group in groups:
        found, wrong = placed_group(request, group, seats)
        faults += wrong
        deployments += found
    return Proposal(kind, request.file, tuple(deployments), tuple(dict.fromkeys(faults)))


def _name(data: Mapping[str, Any]) -> str:
    return str(mapping(data.get("metadata")).get("name", ""))


def _count(value: Any, default: int = 1) -> int:
    """A count of the manifest: what it says, `default` where it is absent, -1 where it is no number."""
    if value is None:
        return default
    count = whole(value)
    return -1 if count is None else count


def _leader_worker_groups(source: Source) -> list[PodGroup]:
    data = source.data
    spec = mapping(data.get("spec"))
    template = mapping(spec.get("leaderWorkerTemplate"))
    root = ("spec", "leaderWorkerTemplate")
    size = _count(template.get("size"))
    pods: list[tuple[Pod, int]] = []
    worker = _templated(source, template, "workerTemplate", root)
    leader = _templated(source, template, "leaderTemplate", root) or worker
    if leader is not None:
        pods.append((leader, 1))
        if size > 1 and worker is not None:
            pods.append((worker, size - 1))
    if not pods:
        return []
    return [PodGroup(_name(data), source.place(root), _count(spec.get("replicas")), pods, source.place((*root, "size")))]


def _templated(source: Source, template: Mapping[str, Any], key: str, root: tuple[str, ...]) -> Pod | None:
    spec = mapping(mapping(template.get(key)).get("spec"))
    return pod_of(source, spec, (*root, key, "spec")) if spec else None


def _dynamo_groups(source: Source) -> list[PodGroup]:
    spec = mapping(source.data.get("spec"))
    groups = []
    services = mapping(spec.get("services"))
    parts: list[tuple[str, Mapping[str, Any], tuple[str, ...]]] = [
        (str(name), mapping(service), ("spec", "services", str(name))) for name, service in services.items()
    ]
    if not services:
        parts = [(_name(source.data), spec, ("spec",))]
    if isinstance(spec.get("components"), list):
        return _components(source, spec["components"])
    for name, service, path in parts:
        extra = mapping(service.get("extraPodSpec"))
        pod = Pod(None, source.place(path))
        take_resources(pod, source, mapping(service.get("resources")), (*path, "resources"))
        listed = mapping(extra.get("mainContainer"))
        take_container(
            pod, source, {**listed, "resources": {}} if pod.gpus is not None else listed, (*path, "extraPodSpec", "mainContainer")
        )
        selector = mapping(extra.get("nodeSelector")).get("kubernetes.io/hostname")
        pod.host = selector if isinstance(selector, str) else None
        if pod.gpus is None and not pod.slices and pod.command is None:
            continue  # a frontend or router
        nodes = _count(mapping(service.get("multinode")).get("nodeCount"))
        groups.append(
            PodGroup(
                name, source.place(path), _count(service.get("replicas")), [(pod, nodes)], source.place((*path, "multinode", "nodeCount"))
            )
        )
    return groups


def _components(source: Source, listed: Sequence[Any]) -> list[PodGroup]:
    """Components of nvidia.com/v1beta1: those whose container `main` asks for GPUs or runs an engine."""
    groups = []
    for index, entry in enumerate(listed):
        component = mapping(entry)
        path: Path = ("spec", "components", index)
        pods = mapping(component.get("podTemplate")).get("spec")
        if not isinstance(pods, dict):
            continue
        pod = pod_of(source, pods, (*path, "podTemplate", "spec"))
        if pod.gpus is None and not pod.slices and pod.command is None:
            continue  # a frontend or router
        nodes = _count(mapping(component.get("multinode")).get("nodeCount"))
        place = source.place((*path, "multinode", "nodeCount"))
        groups.append(
            PodGroup(str(component.get("name", "")), source.place(path), _count(component.get("replicas")), [(pod, nodes)], place)
        )
    return groups


def _plain_groups(source: Source) -> list[PodGroup]:
    """Pods of ordinary workloads that run an engine: one pod a replica."""
    replicas = _count(mapping(source.data.get("spec")).get("replicas"))
    groups = []
    for spec, path in walk_pods(source.data):
        pod = pod_of(source, spec, path)
        if pod.command is not None:
            groups.append(PodGroup(_name(source.data), source.place(path), replicas, [(pod, 1)], pod.place))
    return groups
