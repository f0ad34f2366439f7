"""Engine commands (vLLM, SGLang, TensorRT-LLM) with their hosts -> a placement.

A file may hold several commands: each starts a replica (or its share of one, told by `--node-rank`) of the deployment whose model it serves.
Hosts come from the launcher before the engine (srun -w, mpirun -H, ssh), from a comment `# hosts: ...`, or from `--hosts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.models import model, same_model
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.engine_command import EngineCommand, engine_command, find_engine
from planner.placement.engine_config import read_configuration
from planner.placement.gpu_words import gpus_of_words
from planner.placement.inquiry import Inquiry, check_degrees, hosts_assumed, no_deployment
from planner.placement.proposal import Proposal, ProposedDeployment, ProposedGpu, ProposedReplica, warning
from planner.placement.seats import Host, Seats, all_hosts, too_few
from planner.placement.shell_text import assignment, commands
from planner.plan.shape import Degrees

KIND: Final = "command"


def read_commands(request: Inquiry) -> Proposal:
    """Read a file of commands.

    Raises
    ------
    PlannerError
        NO_ENGINE_COMMAND, or what is wrong with the hosts named beside the file.
    """
    found: list[EngineCommand] = []
    exported = {}
    for words in commands(request.text, request.file):
        start = 1 if words[0].text in {"export", "env"} else 0
        named = [assignment(word) for word in words[start:]]
        if all(pair is not None for pair in named):
            exported.update({pair[0]: pair[1] for pair in named if pair is not None})
            continue
        command = engine_command(words, exported)
        if command is not None:
            if not command.hosts:
                command.hosts = request.hosts_above(command.place.line)
            _named_gpus(request, command)
            read_configuration(request, command)
            found.append(command)
    if not found:
        hint = "write `vllm serve`, `python -m sglang.launch_server` or `trtllm-serve` with its options"
        raise PlannerError([Diagnostic("NO_ENGINE_COMMAND", "holds no command of an engine known here", hint, place=request.start)])
    faults: list[Diagnostic] = [fault for command in found for fault in command.faults]
    general = request.named_hosts()
    seats = Seats(request.fabric)
    deployments: list[ProposedDeployment] = []
    for group in _nodes_together(_by_rank(found)):
        read = replicas_of_command(request, group, general, seats)
        faults += read[1]
        deployments += read[0]
    return Proposal(KIND, request.file, tuple(deployments), tuple(dict.fromkeys(faults)))


def _nodes_together(found: Sequence[EngineCommand]) -> list[list[EngineCommand]]:
    """Commands of one launch over several nodes together, in the order of their ranks.

    Those of one model and one meeting place with the other `--node-rank`s; data-parallel ranks of vLLM on other nodes (`--headless` with
    `--data-parallel-start-rank`) follow the command that answers for them.
    """
    groups: list[list[EngineCommand]] = []
    for command in found:
        own = next((group for group in groups if continues(group, command)), None)
        if own is None:
            groups.append([command])
        else:
            own.append(command)
    return groups


def _by_rank(found: Sequence[EngineCommand]) -> list[EngineCommand]:
    """Commands with those of one launch over several nodes in the order of their ranks: a script that goes node by node may interleave launches."""
    first: dict[tuple[object, ...], int] = {}
    for position, command in enumerate(found):
        first.setdefault(_launch(command), position)

    def key(position: int) -> tuple[int, int]:
        command = found[position]
        rank = command.options.text("node_rank") or command.options.text("start_rank")
        if command.options.text("meeting_port") is None and command.options.text("meeting") is None:
            return position, 0  # nothing tells launches apart: as they stand
        return first[_launch(command)], int(rank) if rank is not None and rank.isdigit() else 0

    return [found[position] for position in sorted(range(len(found)), key=key)]


def continues(group: Sequence[EngineCommand], command: EngineCommand) -> bool:
    """Tell whether a command starts the next node of the launch that a group of commands began."""
    if not group or _launch(group[0]) != _launch(command):
        return False
    rank = command.options.text("node_rank")
    if rank is not None:
        return rank.isdigit() and int(rank) == len(group) and group[0].options.text("node_rank") == "0"
    first = command.options.text("start_rank")
    if first is None or not command.options.on("headless"):
        return False
    before = [one.options.given("dp_local") for one in group]
    return first.isdigit() and None not in before and int(first) == sum(count or 0 for count in before)


def _launch(command: EngineCommand) -> tuple[object, ...]:
    """What the commands of one launch have in common: model, number of nodes, and where they meet."""
    options = command.options
    return (command.engine, command.model, options.given("nnodes"), options.text("meeting"), options.text("meeting_port"))


def replicas_of_command(
    request: Inquiry, group: Sequence[EngineCommand], general: Sequence[Host], seats: Seats
) -> tuple[list[ProposedDeployment], list[Diagnostic]]:
    """Deployment with the replicas that one launch starts, and what is odd about it."""
    first = group[0]
    faults: list[Diagnostic] = []
    named = _deployment_of(request, first, faults)
    if named is None:
        return [], [*faults, no_deployment(request, first.place)]
    degrees, count = first.degrees(request.architecture(named))
    try:
        check_degrees(
            {"replicas x dp": count, "tp": degrees.tensor_parallel, "pp": degrees.pipeline_parallel, "dp": degrees.data_parallel},
            first.place,
        )
    except PlannerError as error:
        return [], [*faults, *error.diagnostics]
    faults += _shares(first)
    hosts = _hosts(group, general)
    if first.sliced is not None and degrees.gpus > 1:
        faults.append(sliced(degrees, first.sliced))
    if not hosts:
        faults.append(hosts_assumed(first.place))
        hosts = [replace(host, devices=first.devices) if first.devices else host for host in all_hosts(request.fabric, first.place)]
    exact = _exact(group, degrees.gpus * count)
    if exact:
        return [ProposedDeployment(named, first.place, tuple(_in_turn(exact, degrees, first)), first.settings())], faults
    nodes = first.options.whole("nnodes", len(group))
    per_host = -(-degrees.gpus * count // nodes) if nodes > 1 else None
    replicas = []
    for _ in range(count):
        gpus = seats.seat(hosts, degrees.gpus, None if per_host is None else min(per_host, degrees.gpus))
        missing = too_few(degrees.gpus, len(gpus), first.place)
        faults += missing
        replicas.append(ProposedReplica(degrees, stage_order(gpus, degrees, first.engine), first.place, None, first.partition))
        if missing:
            break
    return [ProposedDeployment(named, first.place, tuple(replicas), first.settings())], faults


def _named_gpus(request: Inquiry, command: EngineCommand) -> None:
    """Take the GPUs that a comment above a command names."""
    remark = request.remark_above("gpus", command.place.line) or request.remarks.get("gpus")
    if remark is not None and _beside(request, remark[1], command.place):
        command.gpus, wrong = gpus_of_words([(word, remark[1]) for word in remark[0].split()], request.fabric)
        command.faults += wrong


def _beside(request: Inquiry, remark: Place, command: Place) -> bool:
    """Whether a remark belongs to a command: no other command or remark about hosts stands between them."""
    hosts = request.remark_above("hosts", command.line)
    if remark.line is None or command.line is None or remark.line > command.line:
        return False
    return hosts is None or hosts[1].line is None or hosts[1].line <= remark.line


def _exact(group: Sequence[EngineCommand], ranks: int) -> list[ProposedGpu]:
    """GPUs of a launch whose every command names its host and its devices, in the order of the ranks; empty where one does not or they do not add up.

    A launcher that names several hosts for one command (mpirun) shows all of them the same devices.
    """
    if all(command.gpus for command in group):
        named = [gpu for command in group for gpu in command.gpus]
        return named if len(named) == ranks else []
    if not all(command.hosts and command.devices for command in group):
        return []
    found = [
        ProposedGpu(host.node, device, host.place)
        for command in group
        for host in dict.fromkeys(command.hosts)
        for device in command.devices or ()
    ]
    return found if len(found) == ranks else []


def _in_turn(gpus: Sequence[ProposedGpu], degrees: Degrees, first: EngineCommand) -> list[ProposedReplica]:
    """Replicas of a launch, each with the next GPUs."""
    size = degrees.gpus
    return [
        ProposedReplica(degrees, stage_order(gpus[start : start + size], degrees, first.engine), first.place, None, first.partition)
        for start in range(0, len(gpus), size)
    ]


def _hosts(group: Sequence[EngineCommand], general: Sequence[Host]) -> list[Host]:
    """Hosts of a launch with the devices each makes visible."""
    own = [replace(host, devices=command.devices) for command in group for host in command.hosts]
    return own or [replace(host, devices=group[0].devices) if group[0].devices else host for host in general]


def stage_order(gpus: Sequence[ProposedGpu], degrees: Degrees, engine: str = "vllm") -> tuple[ProposedGpu, ...]:
    """GPUs in our rank order (stage, dp rank, tp rank) from vLLM's (dp rank, stage, tp rank); the same unless both DP and PP are used.

    SGLang and TensorRT-LLM take data-parallel attention inside the tensor-parallel group of a stage, which is our own order.
    """
    tensor, pipeline, data = degrees.tensor_parallel, degrees.pipeline_parallel, degrees.data_parallel
    if engine != "vllm" or data == 1 or pipeline == 1 or len(gpus) != degrees.gpus:
        return tuple(gpus)
    return tuple(
        gpus[(rank * pipeline + stage) * tensor + index] for stage in range(pipeline) for rank in range(data) for index in range(tensor)
    )


def _shares(command: EngineCommand) -> list[Diagnostic]:
    """UNEVEN_NODES and the like: ranks that do not divide over the nodes of the launch."""
    nodes, ranks = command.options.whole("nnodes"), command.options.whole("tp") * command.options.whole("pp")
    found = []
    if nodes > 1 and ranks % nodes:
        message = f"{ranks} ranks over {nodes} nodes leave {ranks % nodes} over: every node runs as many"
        place = command.options.places.get("nnodes", command.place)
        found.append(Diagnostic("UNEVEN_NODES", message, f"choose degrees whose product {nodes} divides, or other nodes", place=place))
    data, tensor = command.options.whole("dp"), command.options.whole("tp")
    if command.engine == "sglang" and command.options.on("dp_attention") and tensor % data:
        message = f"TP {tensor} does not divide over {data} data-parallel attention ranks"
        place = command.options.places.get("dp", command.place)
        found.append(Diagnostic("ATTENTION_DP_LAYOUT", message, f"choose a dp size that divides {tensor}", place=place))
    return found


def sliced(degrees: Degrees, place: Place) -> Diagnostic:
    """MIG_NO_MULTI_INSTANCE: a replica of several ranks on slices of GPUs."""
    message = f"{degrees} over slices of GPUs (MIG): slices have neither NVLink nor peer access to one another"
    hint = "serve one replica of TP1 a slice, sized to the slice, or give whole cards"
    return Diagnostic("MIG_NO_MULTI_INSTANCE", message, hint, place=place)


def _deployment_of(request: Inquiry, command: EngineCommand, faults: list[Diagnostic]) -> str | None:
    """Deployment a command serves: by its served name, else by its model, else the only one there is."""
    deployments, architectures = request.loaded.problem.deployments, request.loaded.architectures
    served = command.options.text("served_name")
    if served is not None and request.deployment_index(served) is not None:
        return served
    only = request.only_deployment()
    named = command.model
    known: ModelArchitecture | None = None
    if named is not None:
        same = [asked.name for asked in deployments if named in {asked.model, asked.name}]
        if len(same) == 1:
            return same[0]
        try:
            known = model(named)
        except PlannerError:
            known = None
        if known is not None:
            alike = [asked.name for asked, own in zip(deployments, architectures, strict=True) if same_model(own, known)]
            if len(alike) == 1:
                return alike[0]
    if only is not None and named is not None:
        asked = request.deployment_index(only)
        wanted = deployments[asked].model if asked is not None else only
        if known is not None:
            message = f"the command serves {named}, deployment {only} is {wanted}"
            faults.append(Diagnostic("MODEL_MISMATCH", message, f"serve {wanted}, or change the problem", place=command.place))
        else:
            message = f"{named[:80]} is not in the catalog; it is taken to be {only}'s model, {wanted}"
            faults.append(warning("MODEL_ASSUMED", message, "check that it is the same model", command.place))
    return only


def looks_like_commands(text: str, file: str) -> bool:
    """Tell whether a text holds a command of an engine known here."""
    return any(find_engine(words) is not None for words in commands(text[:200_000], file))
