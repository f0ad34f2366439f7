"""Judge a placement as given: everything that breaks it, what it costs to be placed so, and what it is predicted to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.audit.audit import audit
from planner.candidates.legality import violations
from planner.candidates.menu import load_of
from planner.diagnostics import Diagnostic, Place, Severity, errors
from planner.placement.audited import audited
from planner.placement.distances import Distances, distances, known, parts
from planner.placement.figures import Replica, batches_at_load, replica_of
from planner.placement.given_plan import Placed, given_plan
from planner.placement.gpu_words import gpus_of_node
from planner.placement.memory_checks import memory_findings
from planner.placement.nearness import expert_findings, node_findings, pair_findings, stage_findings, unused_gpus
from planner.placement.places import located, places_of
from planner.placement.proposal import EngineSettings, Proposal, ProposedReplica, note
from planner.placement.settings import Running, running
from planner.placement.targets import target_findings
from planner.plan.document import PlanDocument
from planner.problem.load import LoadedProblem
from planner.topology.pools import Pool

# Distances are looked at for so many replicas of one kind; the others of that kind are alike but for their place.
MOST_LOOKED_AT = 200


@dataclass(frozen=True)
class Judgement:
    """The verdict on a placement: `plan` is the placement with its predicted figures, `diagnostics` everything found, errors first."""

    proposal: Proposal
    plan: PlanDocument
    diagnostics: tuple[Diagnostic, ...]

    @property
    def valid(self) -> bool:
        """Whether nothing stands against it; warnings do not count."""
        return not errors(self.diagnostics)

    @property
    def codes(self) -> frozenset[str]:
        """Codes of the errors."""
        return frozenset(item.code for item in errors(self.diagnostics))


def judge(loaded: LoadedProblem, proposal: Proposal) -> Judgement:
    """Judge a placement against the problem it is for.

    Parameters
    ----------
    loaded
        The problem, its fabric and models.
    proposal
        The placement, as `read_placement` gives it.

    Returns
    -------
    Judgement
        Every violation with its place; never raises for a placement that is merely wrong.
    """
    faults: list[Diagnostic] = list(proposal.diagnostics)
    placed = list(_survey(loaded, proposal, faults))
    if proposal.plan is None:
        faults += _not_stated(loaded, proposal)
        _at_load(loaded, placed)
        plan = given_plan(loaded, placed)
    else:
        plan = proposal.plan
        faults += _empty(proposal.file, plan)
        for one in placed:
            _at_batch(one, one.given.batch or 1)
    by_path = {one.path: one for one in placed}
    found: list[Diagnostic] = []
    # Of a load in buckets, or of figures of one's own, the auditor looks at every length and at what was measured; here is only the longest.
    asked = loaded.problem.deployments
    found += _of_kinds(placed, {index for index, deployment in enumerate(asked) if deployment.workload.buckets or deployment.throughput})
    found += _of_places(loaded, placed)
    if proposal.plan is None:
        found += audited(loaded, plan, by_path, counted=any(item.code == "GPU_COUNT_MISMATCH" for item in faults))
        places = places_of(placed, {item.name: item.place for item in proposal.deployments})
    else:
        found += audit(loaded.problem, loaded.fabric, loaded.architectures, plan, loaded.current)
        places = proposal.places
    found += _shared_domains(loaded, placed)
    every = _sorted([*faults, *located(found, places, by_path, proposal.file)])
    return Judgement(proposal, plan, every)


def _empty(file: str, plan: PlanDocument) -> Iterator[Diagnostic]:
    """Say of a plan without replicas that it places nothing, whatever else is right about it."""
    if not any(deployment.replicas for deployment in plan.deployments):
        hint = "solve a problem that has a plan; `planner solve` names what would help"
        yield Diagnostic("PLAN_WITHOUT_REPLICAS", f"the plan is {plan.status} and places nothing", hint, place=Place(file))


def _not_stated(loaded: LoadedProblem, proposal: Proposal) -> Iterator[Diagnostic]:
    """Say of a placement on GPUs alone that it leaves open what it is judged by: where the requests of every bucket go, what was measured."""
    for asked in loaded.problem.deployments:
        if asked.workload.buckets or asked.throughput:
            what = "where the requests of every bucket go" if asked.workload.buckets else "what its replicas were measured to serve"
            message = f"the placement does not say {what}, which {asked.name} is planned by"
            place = next((given.place for given in proposal.deployments if given.name == asked.name), None)
            yield Diagnostic("BUCKETS_NOT_STATED", message, "give a plan: `planner solve PROBLEM -o plan.json`", place=place)


def _sorted(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Errors, warnings, notes; of what two checks found in one place the first is kept."""
    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    kept: dict[tuple[object, ...], Diagnostic] = {}
    for item in sorted(diagnostics, key=lambda item: order[item.severity]):
        path = "" if item.place is None else item.place.path or str(item.place)
        many = item.code in {"FLAG_UNKNOWN", "FLAG_VALUE", "UNKNOWN_KEY", "SETTING_DIFFERS"} or (
            item.place is not None and not item.place.path
        )
        kept.setdefault((item.code, path, item.message if many else ""), item)
    return tuple(kept.values())


def _survey(loaded: LoadedProblem, proposal: Proposal, faults: list[Diagnostic]) -> Iterator[Placed]:
    """Every replica of a deployment that the problem has, described; replicas alike share their description."""
    index_of = {asked.name: index for index, asked in enumerate(loaded.problem.deployments)}
    numbers: dict[str, int] = defaultdict(int)
    kinds: dict[tuple[object, ...], Replica] = {}
    known_runs: dict[tuple[int, str], Running] = {}
    for deployment in proposal.deployments:
        index = index_of.get(deployment.name)
        if index is None:
            hint = f"name one of {', '.join(list(index_of)[:8])}"
            message = f"nobody asked for a deployment {deployment.name[:60]}"
            faults.append(Diagnostic("DEPLOYMENT_UNKNOWN", message, hint, place=deployment.place))
            continue
        key = (index, repr(deployment.settings))
        if key not in known_runs:
            known_runs[key], differences = running(loaded, index, deployment.settings)
            faults += [item if item.place is not None else replace(item, place=deployment.place) for item in differences]
        runs = known_runs[key]
        for given in deployment.replicas:
            number = numbers[deployment.name] if given.number is None else given.number
            numbers[deployment.name] = number + 1
            replica = _kind(loaded, runs, given, deployment.settings, kinds)
            yield Placed(index, given, replica, f"deployments.{deployment.name}.replicas.{number}")


def _kind(
    loaded: LoadedProblem, runs: Running, given: ProposedReplica, settings: EngineSettings, kinds: dict[tuple[object, ...], Replica]
) -> Replica:
    pools = _stage_pools(loaded, given)
    apart: Distances = distances(loaded.fabric, pools[0], given.degrees, given.gpus)
    key = (runs.index, repr(settings), given.degrees, tuple(pool.index for pool in pools), apart, given.partition)
    if key not in kinds:
        kinds[key] = replica_of(runs, given.degrees, pools, apart, given.partition)
    return kinds[key]


def _stage_pools(loaded: LoadedProblem, given: ProposedReplica) -> list[Pool]:
    """Pool of every stage: that of its GPU with the least memory, which decides; the first stage's where a stage is on no known GPU."""
    fabric, degrees = loaded.fabric, given.degrees
    found: list[Pool | None] = []
    groups = list(parts(given.gpus, degrees.stage_gpus))
    for number in range(degrees.pipeline_parallel):
        nodes = dict.fromkeys(gpu.node for gpu in groups[number]) if number < len(groups) else {}
        pools = [fabric.pool(node) for node in nodes if gpus_of_node(fabric, node)]
        found.append(min(pools, key=lambda pool: pool.gpu.memory.value, default=None))
    usual = next((pool for pool in found if pool is not None), None)
    largest = max(fabric.pools, key=lambda pool: pool.nodes * pool.gpus_per_node)
    return [pool or usual or largest for pool in found]


def _at_load(loaded: LoadedProblem, placed: Sequence[Placed]) -> None:
    """Give every replica its batch: as written, else what the load makes of it."""
    by_deployment: dict[int, list[Placed]] = defaultdict(list)
    for one in placed:
        by_deployment[one.index].append(one)
    for index, own in by_deployment.items():
        batches = batches_at_load([one.replica for one in own], load_of(loaded, index)[0])
        for one, batch in zip(own, batches, strict=True):
            _at_batch(one, one.given.batch or batch)


def _at_batch(one: Placed, batch: int) -> None:
    one.batch = batch
    one.times = one.replica.times_at(batch) if batch >= 1 else None


def _of_kinds(placed: Sequence[Placed], audited_alone: set[int]) -> Iterator[Diagnostic]:
    """What is true of a kind of replica wherever it stands: legality, memory, targets; told at the first of them with how many are alike."""
    groups: dict[tuple[int, int, int], list[Placed]] = defaultdict(list)
    for one in placed:
        groups[one.index, id(one.replica), one.batch].append(one)
    for alike in groups.values():
        first = alike[0]
        more = f" (and {len(alike) - 1} more replicas alike)" if len(alike) > 1 else ""
        for item, place in _kind_findings(first, legality_alone=first.index in audited_alone):
            yield replace(item, message=item.message + more, place=Place(path=place))


def _kind_findings(first: Placed, *, legality_alone: bool) -> Iterator[tuple[Diagnostic, str]]:
    replica, runs = first.replica, first.replica.running
    contexts = {stage.pool.gpu.name: stage for stage in replica.stages}
    for stage in contexts.values():
        precision, gpu = stage.setting.precision, stage.pool.gpu
        yield from ((item, first.path) for item in violations(runs.architecture, precision, runs.engine, gpu, replica.degrees))
    if legality_alone:
        return
    for item, number in memory_findings(replica, max(first.batch, replica.degrees.data_parallel)):
        rank = None if number is None else number * replica.degrees.stage_gpus
        yield item, first.path if rank is None or rank >= len(first.given.gpus) else f"{first.path}.ranks.{rank}"
    limit = replica.context.sequences_per_rank * replica.degrees.data_parallel
    if first.given.batch is not None and first.given.batch > limit:
        message = f"batch {first.given.batch} is above the {limit} sequences that the engine runs"
        yield Diagnostic("BATCH_ABOVE_ENGINE", message, "raise its largest number of sequences, or hold fewer"), first.path
    if first.times is not None:
        yield from ((item, first.path) for item in target_findings(replica, first.batch, first.times))


def _of_places(loaded: LoadedProblem, placed: Sequence[Placed]) -> Iterator[Diagnostic]:
    """What is true of a replica where it stands: pairs, stages, experts, nodes."""
    fabric = loaded.fabric
    unused = unused_gpus(fabric, (gpu for one in placed for gpu in known(fabric, one.given.gpus)))
    for one in placed[:MOST_LOOKED_AT]:
        replica, gpus = one.replica, one.given.gpus
        if not gpus:
            continue
        experts = list(expert_findings(fabric, replica, one.batch))
        apart = [] if experts else list(stage_findings(fabric, replica, gpus, one.batch, unused))
        found: list[Diagnostic] = [*pair_findings(fabric, replica, gpus, one.batch), *experts, *apart, *node_findings(replica, gpus)]
        if replica.distances.apart:
            hint = "give the nodes nics and the topology a fabric, or use nodes that are joined"
            found.append(Diagnostic("NOT_CONNECTED", "no network joins its GPUs", hint))
        yield from (replace(item, place=Place(path=one.path)) for item in found)


def _shared_domains(loaded: LoadedProblem, placed: Sequence[Placed]) -> Iterator[Diagnostic]:
    """Note deployments that one node's failure stops altogether; where the problem asks for spreading, the auditor says more."""
    for index, asked in enumerate(loaded.problem.deployments):
        own = [one for one in placed if one.index == index and one.given.gpus]
        shared = set.intersection(*({gpu.node for gpu in one.given.gpus} for one in own)) if own else set()
        shared = {node for node in shared if gpus_of_node(loaded.fabric, node)}
        if shared and len(loaded.fabric.nodes) > 1 and asked.spread is None and asked.resilience is None:
            node = min(shared)
            several = f"all {len(own)} replicas have" if len(own) > 1 else "its only replica has"
            message = f"{several} GPUs on {node}: when it fails, {asked.name} is down"
            yield note(
                "FAILURE_DOMAIN_SHARED", message, "ask for `spread: node` or `resilience: node`", Place(path=f"deployments.{asked.name}")
            )
