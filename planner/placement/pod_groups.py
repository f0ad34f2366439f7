"""Groups of pods -> replicas: as many pods a replica as the manifest says, each with the GPUs it asks for, on the hosts named beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.command_lines import replicas_of_command, sliced, stage_order
from planner.placement.engine_command import EngineCommand
from planner.placement.gpu_words import gpus_of_node, gpus_of_words
from planner.placement.inquiry import Inquiry, degrees_of, hosts_assumed, no_degrees, no_deployment
from planner.placement.manifest_text import Pod
from planner.placement.proposal import EngineSettings, ProposedDeployment, ProposedGpu, ProposedReplica, warning
from planner.placement.seats import Host, Seats, all_hosts
from planner.plan.shape import Degrees

MOST_REPLICAS = 10_000
MOST_PODS = 10_000


@dataclass
class PodGroup:
    """Replicas of one kind: `pods` are the pods of one replica as (pod, how many such), the leader first."""

    name: str
    place: Place
    replicas: int
    pods: Sequence[tuple[Pod, int]]
    size_place: Place

    @property
    def command(self) -> EngineCommand | None:
        """First engine command that a pod of the group runs."""
        return next((pod.command for pod, _ in self.pods if pod.command is not None), None)

    @property
    def size(self) -> int:
        """Pods of one replica."""
        return sum(count for _, count in self.pods)


def placed_group(request: Inquiry, group: PodGroup, seats: Seats) -> tuple[list[ProposedDeployment], list[Diagnostic]]:
    """Deployment that a group of pods makes, with everything wrong about what the pods ask for."""
    faults: list[Diagnostic] = [fault for pod, _ in group.pods for fault in pod.faults]
    if not 0 <= group.replicas <= MOST_REPLICAS or not 1 <= group.size <= MOST_PODS:
        message = f"{group.replicas} replicas of {group.size} pods"
        return [], [*faults, Diagnostic("OUT_OF_RANGE", message, "write how many there really are", place=group.size_place)]
    command = group.command
    name, degrees, settings, partition, engine_replicas = _engine_of(request, group, command, faults)
    if name is None or degrees is None:
        return [], faults
    needed = degrees.gpus * engine_replicas
    cut = [(pod, count) for pod, count in group.pods if pod.slices]
    if cut and degrees.gpus > 1:
        faults.append(sliced(degrees, cut[0][0].place))
    asked = [(pod, count) for pod, count in group.pods if pod.gpus is not None or pod.slices]
    given = sum((pod.gpus or 0) * count + pod.slices * count for pod, count in asked)
    if not asked:
        hint = 'write `resources: {limits: {nvidia.com/gpu: "8"}}` for every pod'
        faults.append(Diagnostic("GPU_COUNT_MISMATCH", f"the pods ask for no GPUs, {degrees} needs {needed}", hint, place=group.place))
    elif given != needed:
        faults.append(_count_mismatch(request, group, degrees, needed, given))
    faults += _larger_than_nodes(request, group)
    exact = _exact(request, group, needed * group.replicas, faults)
    if exact:
        size = degrees.gpus
        listed = [exact[start : start + size] for start in range(0, len(exact), size)]
        ordered = [stage_order(gpus, degrees, settings.engine or "vllm") for gpus in listed]
        given_replicas = tuple(ProposedReplica(degrees, gpus, group.place, None, partition) for gpus in ordered)
        return [ProposedDeployment(name, group.place, given_replicas, settings)], faults
    hosts = _hosts(request, group)
    if not hosts:
        faults.append(hosts_assumed(group.place))
        hosts = list(all_hosts(request.fabric, group.place))
    replicas = []
    per_pod = max(((pod.gpus or pod.slices) for pod, _ in asked), default=0)
    for _ in range(group.replicas * engine_replicas):
        several = group.size > 1 and per_pod and per_pod < degrees.gpus
        gpus = seats.seat(hosts, degrees.gpus, per_pod if several else None)
        if not gpus:
            hint = f"name hosts with {degrees.gpus} more GPUs, or fewer replicas"
            message = f"no host is left for one of {group.replicas} replicas of {degrees.gpus} GPUs"
            faults.append(Diagnostic("GPU_COUNT_MISMATCH", message, hint, place=group.place))
            break
        replicas.append(ProposedReplica(degrees, stage_order(gpus, degrees, settings.engine or "vllm"), group.place, None, partition))
    return [ProposedDeployment(name, group.place, tuple(replicas), settings)], faults


def _engine_of(
    request: Inquiry, group: PodGroup, command: EngineCommand | None, faults: list[Diagnostic]
) -> tuple[str | None, Degrees | None, EngineSettings, tuple[int, ...] | None, int]:
    """Deployment, degrees, settings, layers per stage, and engine replicas of one group."""
    if command is not None:
        # Only the name, the degrees and the faults of the options are of use: the pods decide where ranks are.
        deployments, found = replicas_of_command(request, [command], (), Seats(request.fabric))
        faults += [fault for fault in (*command.faults, *found) if fault.code not in {"HOSTS_ASSUMED", "GPU_COUNT_MISMATCH"}]
        if not deployments:
            return None, None, EngineSettings(), None, 1
        name = group.name if request.deployment_index(group.name) is not None else deployments[0].name
        degrees, count = command.degrees(request.architecture(name))
        return name, degrees, command.settings(), command.partition, count
    known = group.name if request.deployment_index(group.name) is not None else request.only_deployment()
    if known is None:
        faults.append(no_deployment(request, group.place))
        return None, None, EngineSettings(), None, 1
    index = request.deployment_index(known)
    try:
        named = request.named_degrees()
    except PlannerError as error:
        faults += error.diagnostics
        return None, None, EngineSettings(), None, 1
    parts = {**({} if index is None else request.fixed_degrees(index)), **(named[0] if named is not None else {})}
    if not parts:
        faults.append(no_degrees(group.place))
        return None, None, EngineSettings(), None, 1
    return known, degrees_of(parts), EngineSettings(), None, 1


def _count_mismatch(request: Inquiry, group: PodGroup, degrees: Degrees, needed: int, given: int) -> Diagnostic:
    words = " + ".join(f"{count} x {pod.gpus or pod.slices}" for pod, count in group.pods if pod.gpus or pod.slices)
    message = (
        f"one replica asks for {given} GPUs ({group.size} pod{'s' if group.size > 1 else ''}: {words or '0'}), {degrees} needs {needed}"
    )
    largest = max((pool.gpus_per_node for pool in request.fabric.pools), default=1)
    per_pod = min(needed, largest)
    hint = f"ask for {per_pod} GPUs a pod and {-(-needed // per_pod)} pod{'s' if needed > per_pod else ''} a replica"
    return Diagnostic("GPU_COUNT_MISMATCH", message, hint, place=group.size_place)


def _larger_than_nodes(request: Inquiry, group: PodGroup) -> list[Diagnostic]:
    """Pods that ask for more GPUs than any node has, or than the host they are bound to."""
    largest = max((pool.gpus_per_node for pool in request.fabric.pools), default=0)
    found = []
    for pod, _ in group.pods:
        own = gpus_of_node(request.fabric, pod.host) if pod.host is not None else 0
        most = own or largest
        if pod.gpus is not None and pod.gpus > most:
            message = f"a pod asks for {pod.gpus} GPUs, {pod.host if own else 'no node'} has {'only' if own else 'more than'} {most}"
            hint = f"ask for at most {most} GPUs a pod and spread the replica over {-(-pod.gpus // max(most, 1))} pods"
            found.append(Diagnostic("GPU_COUNT_MISMATCH", message, hint, place=pod.place))
    return found


def _exact(request: Inquiry, group: PodGroup, ranks: int, faults: list[Diagnostic]) -> list[ProposedGpu]:
    """GPUs that the annotations of the pods name, in rank order; empty where one has none, or names other nodes than its pod is bound to."""
    words = [(word, pod.place) for pod, _ in group.pods for word in (pod.named_gpus or "").split()]
    if not words or not all(pod.named_gpus for pod, _ in group.pods):
        return []
    found, wrong = gpus_of_words(words, request.fabric)
    bound = [host for pod, _ in group.pods for host in pod.hosts]
    if list(dict.fromkeys(gpu.node for gpu in found)) != list(dict.fromkeys(bound)):
        hint = "bind the pods to the nodes that the annotation names, or take it out"
        faults.append(
            warning("GPUS_OF_OTHER_NODES", "the annotation planner/gpus names other nodes than the pods are bound to", hint, group.place)
        )
        return []
    faults += wrong
    return list(found) if len(found) == ranks else []


def _hosts(request: Inquiry, group: PodGroup) -> list[Host]:
    own = [Host(host, pod.place) for pod, _ in group.pods for host in pod.hosts]
    return own or list(request.named_hosts())
