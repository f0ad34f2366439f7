"""The plan as what is started: replicas with their share of each node, ranks in the engine's order, and ports that nobody else on a node has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.catalog.engines import Engine, engine
from planner.catalog.gpus import Gpu, gpu
from planner.diagnostics import Diagnostic, PlannerError
from planner.launch.checkpoints import Checkpoint, checkpoint_of, over_compressed_tokens
from planner.launch.companions import Speculation, companion_cautions, speculation_of
from planner.launch.directory import LaunchOptions, refusal
from planner.launch.names import name_faults, node_faults
from planner.plan.document import DeploymentDocument, MemoryDocument, PlanDocument, RankDocument, ReplicaDocument, ShapeDocument
from planner.plan.serving import AdaptersDocument, LimitsDocument, NodeDocument

FIRST_PORT = 8000
FIRST_RENDEZVOUS_PORT = 29500
# Engines take ports next to the ones they are given (SGLang: 233 to 240 above the port of its API with data-parallel attention).
PORTS_APART = 20
LARGEST_DEGREE = 4096


@dataclass(frozen=True, slots=True)
class Share:
    """What one node runs of a replica: its GPUs in the order of the engine's ranks, the first of which is `first_rank`."""

    node: NodeDocument
    gpus: tuple[int, ...]
    first_rank: int

    @property
    def whole(self) -> bool:
        """Whether the share is the whole node in its own order."""
        return self.gpus == tuple(range(self.node.gpus))


@dataclass(frozen=True)
class Replica:
    """One replica: the deployment's name and number make `name`; `rendezvous_port` is where its ranks meet, `port` where it answers."""

    name: str
    deployment: str
    number: int
    engine: Engine
    gpu: Gpu
    shape: ShapeDocument
    limits: LimitsDocument
    memory: MemoryDocument
    checkpoint: Checkpoint
    experts: bool
    shares: tuple[Share, ...]
    port: int
    rendezvous_port: int
    speculation: Speculation | None = None
    adapters: AdaptersDocument | None = None

    @property
    def path(self) -> str:
        """Where it stands in the plan."""
        return f"deployments.{self.deployment}.replicas.{self.number}"

    @property
    def head(self) -> NodeDocument:
        """Node of the first rank, which answers requests."""
        return self.shares[0].node

    @property
    def ranks(self) -> int:
        """GPUs of the replica."""
        return sum(len(share.gpus) for share in self.shares)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of its nodes, each once, in the order of the ranks."""
        return tuple(dict.fromkeys(share.node.name for share in self.shares))

    @property
    def even(self) -> bool:
        """Whether every share has as many GPUs."""
        return len({len(share.gpus) for share in self.shares}) == 1

    @property
    def sequences_per_rank(self) -> int:
        """Sequences of one data-parallel rank at the plan's batch."""
        return -(-self.shape.batch // self.shape.dp)

    @property
    def degrees(self) -> str:
        """Degrees as people write them: `tp8-pp2`."""
        shown = [f"{name}{value}" for name, value in self._degrees if value > 1 or name == "tp"]
        return "-".join(shown)

    @property
    def _degrees(self) -> tuple[tuple[str, int], ...]:
        shape = self.shape
        return (("tp", shape.tp), ("pp", shape.pp), ("ep", shape.ep), ("dp", shape.dp))


def replicas_of(plan: PlanDocument, options: LaunchOptions) -> tuple[list[Replica], list[Diagnostic]]:
    """Every replica of a plan, ready to be started, and what is to be known about their checkpoints.

    Raises
    ------
    PlannerError
        PLAN_WITHOUT_REPLICAS, PLAN_NOT_LAUNCHABLE, LAUNCH_NAME_UNSAFE, NODE_NAME_UNSAFE, MODEL_PATH_NEEDED, CHECKPOINT_NEEDED, or that engine or GPU is unknown.
    """
    faults: list[Diagnostic] = [*name_faults(plan, options), *node_faults(plan)]
    if not any(deployment.replicas for deployment in plan.deployments):
        hint = "solve a problem that has a plan; `planner solve` names the nearest misses"
        faults.append(refusal("PLAN_WITHOUT_REPLICAS", f"the plan is {plan.status} and starts nothing", hint, "deployments"))
    nodes = {node.name: node for node in plan.nodes}
    notes: list[Diagnostic] = []
    found: list[Replica] = []
    taken: dict[str, set[int]] = {}
    for deployment in plan.deployments:
        try:
            found += _deployment(deployment, nodes, options, taken, notes)
        except PlannerError as error:
            faults += error.diagnostics
    if faults:
        raise PlannerError(dict.fromkeys(faults))
    return found, list(dict.fromkeys(notes))


def _deployment(
    deployment: DeploymentDocument,
    nodes: dict[str, NodeDocument],
    options: LaunchOptions,
    taken: dict[str, set[int]],
    notes: list[Diagnostic],
) -> Iterator[Replica]:
    rules = engine(deployment.engine.name, deployment.engine.version)
    speculation, said = speculation_of(deployment, options.draft_paths.get(deployment.name))
    if deployment.replicas:
        notes += [*said, *companion_cautions(deployment.name, rules.name, speculation, deployment.adapters)]
    checkpoints: dict[tuple[str, str, float], Checkpoint] = {}
    for number, replica in enumerate(deployment.replicas):
        path = f"deployments.{deployment.name}.replicas.{number}"
        faults = list(_faults(deployment, replica, nodes, path))
        if faults:
            raise PlannerError(faults)
        shape, limits = replica.shape, replica.limits
        assert limits is not None
        key = (shape.weights_dtype, shape.kv_dtype, replica.memory.weights_gib)
        if key not in checkpoints:
            found, told = checkpoint_of(deployment, replica, rules, options.model_paths.get(deployment.name))
            checkpoints[key] = replace(found, compressed=over_compressed_tokens(deployment.model))
            notes += told
        shares = tuple(_shares(rules.name, shape, replica.ranks, nodes))
        slot = _free_slot(taken, [share.node.name for share in shares])
        yield Replica(
            name=f"{deployment.name}-{number}",
            deployment=deployment.name,
            number=number,
            engine=rules,
            gpu=gpu(shape.gpu),
            shape=shape,
            limits=limits,
            memory=replica.memory,
            checkpoint=checkpoints[key],
            experts=deployment.checkpoint is not None and deployment.checkpoint.experts > 0,
            shares=shares,
            port=FIRST_PORT + PORTS_APART * slot,
            rendezvous_port=FIRST_RENDEZVOUS_PORT + PORTS_APART * slot,
            speculation=speculation,
            adapters=deployment.adapters,
        )


def _faults(deployment: DeploymentDocument, replica: ReplicaDocument, nodes: dict[str, NodeDocument], path: str) -> Iterator[Diagnostic]:
    """What keeps a replica of a plan from being started."""
    shape = replica.shape
    hint = "solve the problem again with this planner"
    if replica.limits is None or deployment.checkpoint is None or deployment.request_tokens is None:
        yield refusal("PLAN_NOT_LAUNCHABLE", "the plan does not say with which limits and which checkpoint it was made", hint, path)
    degrees = (shape.tp, shape.pp, shape.ep, shape.dp)
    if min(degrees) < 1 or max(degrees) > LARGEST_DEGREE:
        yield refusal("PLAN_NOT_LAUNCHABLE", f"degrees {degrees} are none that a machine has", hint, f"{path}.shape")
        return
    size = shape.tp * shape.pp * shape.dp
    if len(replica.ranks) != size:
        yield refusal("PLAN_NOT_LAUNCHABLE", f"{len(replica.ranks)} ranks are listed, the degrees need {size}", hint, f"{path}.ranks")
        return
    if (shape.tp * shape.dp) % shape.ep:
        yield refusal("PLAN_NOT_LAUNCHABLE", f"EP {shape.ep} does not divide a stage of {shape.tp * shape.dp}", hint, f"{path}.shape")
    if shape.batch < 1 or len(shape.partition) not in {0, shape.pp} or min(shape.partition, default=1) < 1:
        yield refusal("PLAN_NOT_LAUNCHABLE", f"batch {shape.batch}, layers {list(shape.partition)}", hint, f"{path}.shape")
    if sorted({(rank.stage, rank.dp_rank, rank.tp_rank) for rank in replica.ranks}) != [
        (stage, data, tensor) for stage in range(shape.pp) for data in range(shape.dp) for tensor in range(shape.tp)
    ]:
        yield refusal("PLAN_NOT_LAUNCHABLE", "the ranks do not number stages, dp ranks and tp ranks from 0", hint, f"{path}.ranks")
    if len({(rank.node, rank.gpu) for rank in replica.ranks}) != size:
        yield refusal("PLAN_NOT_LAUNCHABLE", "two ranks are on one GPU", hint, f"{path}.ranks")
    for row, rank in enumerate(replica.ranks):
        node = nodes.get(rank.node)
        if node is None or not 0 <= rank.gpu < node.gpus:
            message = f"GPU {rank.gpu} of {rank.node[:60]!r} is on no node that the plan lists"
            yield refusal("PLAN_NOT_LAUNCHABLE", message, hint, f"{path}.ranks.{row}")
            return


def engine_order(name: str, ranks: Sequence[RankDocument]) -> list[RankDocument]:
    """Ranks as the engine numbers them.

    vLLM numbers data-parallel ranks first, stages in them, tensor-parallel ranks in these; SGLang and TensorRT-LLM take data-parallel attention inside the
    tensor-parallel group of a stage, which is the plan's own order.
    """
    if name == "vllm":
        return sorted(ranks, key=lambda rank: (rank.dp_rank, rank.stage, rank.tp_rank))
    return sorted(ranks, key=lambda rank: (rank.stage, rank.dp_rank, rank.tp_rank))


def _shares(name: str, shape: ShapeDocument, ranks: Sequence[RankDocument], nodes: dict[str, NodeDocument]) -> Iterator[Share]:
    """Runs of ranks on one node; a node that comes back later has a share of its own there.

    Data-parallel ranks of vLLM that fit a node are kept whole: a share never holds a part of one beside a whole one.
    """
    ordered = engine_order(name, ranks)
    first = 0
    for position in range(1, len(ordered) + 1):
        if position == len(ordered) or ordered[position].node != ordered[first].node or _parts(name, shape, ordered, position):
            yield Share(nodes[ordered[first].node], tuple(rank.gpu for rank in ordered[first:position]), first)
            first = position


def _parts(name: str, shape: ShapeDocument, ordered: Sequence[RankDocument], position: int) -> bool:
    """Whether a share ends here although the node goes on: where data-parallel ranks of vLLM over several nodes meet on one."""
    inside = shape.tp * shape.pp
    if name != "vllm" or shape.dp == 1 or position % inside:
        return False
    return any(len({rank.node for rank in ordered[start : start + inside]}) > 1 for start in range(0, len(ordered), inside))


def _free_slot(taken: dict[str, set[int]], nodes: Sequence[str]) -> int:
    """Smallest number that no other replica has on any of these nodes."""
    used = set().union(*(taken.setdefault(node, set()) for node in nodes))
    slot = next(number for number in range(len(used) + 1) if number not in used)
    for node in nodes:
        taken[node].add(slot)
    return slot
