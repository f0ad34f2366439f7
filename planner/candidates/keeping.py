"""Which replicas of the current plan may stay where they run, as shapes evaluated on the GPUs they have, and why others may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.candidates.columns import evaluate_table, layout_table, most_sequences
from planner.candidates.degrees import Layout
from planner.candidates.direct_links import without_nvlink
from planner.candidates.legality import violations
from planner.candidates.load_times import Carried, with_load_times
from planner.candidates.settings import PoolSetting
from planner.diagnostics import PlannerError, errors
from planner.plan.outcome import NotKept, PlacedReplica, RankPlace
from planner.plan.shape import Degrees, Shape
from planner.problem.current_plan import RunningReplica
from planner.problem.documents import Deployment
from planner.problem.load import LoadedProblem
from planner.problem.named_gpus import usable_gpus
from planner.topology.fabric import Fabric, GpuId
from planner.topology.inventory import STATES

Settings = Mapping[tuple[int, int, str, str], PoolSetting]


class _CannotStayError(Exception):
    """One replica cannot stay: `code` of what is in the way, `message` in words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class _Question:
    """What a running replica would be from now on: whose it is, in which setting, cut how, laid out how."""

    context: PoolSetting
    layout: Layout
    partition: tuple[int, ...]


def keepable(
    loaded: LoadedProblem, settings: Settings, prices: Sequence[float | None], loads: Sequence[float], force: Degrees | None = None
) -> tuple[tuple[PlacedReplica, ...], tuple[NotKept, ...]]:
    """Replicas of the current plan that may stay, and those that may not with the reason.

    A replica stays with its GPUs, degrees, number formats and layers per stage; its batch is chosen anew, as for every other shape.
    `settings` are those of the menu, `prices` [$/h] of a GPU in every pool, `loads` those of the deployments, `force` the only degrees allowed.
    """
    asker = _Asker(loaded, settings, prices, loads, force)
    stay, lost = [], []
    for replica in loaded.current.replicas if loaded.current is not None else ():
        found = asker.ask(replica)
        if isinstance(found, PlacedReplica):
            stay.append(found)
        else:
            lost.append(NotKept(replica.deployment, replica.number, found.code, found.message))
    return tuple(stay), tuple(lost)


class _Asker:
    """Asks of one replica after another whether it may stay, evaluating replicas alike once."""

    def __init__(
        self, loaded: LoadedProblem, settings: Settings, prices: Sequence[float | None], loads: Sequence[float], force: Degrees | None
    ) -> None:
        self.loaded, self.settings, self.prices, self.loads, self.force = loaded, settings, prices, loads, force
        self.names = {deployment.name: index for index, deployment in enumerate(loaded.problem.deployments)}
        self.usable = {
            index: usable_gpus(deployment, loaded.fabric)[0]
            for index, deployment in enumerate(loaded.problem.deployments)
            if deployment.pin is not None or deployment.forbid is not None
        }
        self.evaluated: dict[tuple[int, int, str, str, Layout, tuple[int, ...]], Shape | _CannotStayError] = {}

    def ask(self, replica: RunningReplica) -> PlacedReplica | _CannotStayError:
        """The replica as it would stay, or what is in the way."""
        try:
            shape = self._shape(replica)
        except _CannotStayError as reason:
            return reason
        return PlacedReplica(shape, _ranks(self.loaded.fabric, shape.degrees, replica)) if isinstance(shape, Shape) else shape

    def _shape(self, replica: RunningReplica) -> Shape | _CannotStayError:
        index = self.names.get(replica.deployment)
        if index is None:
            return _CannotStayError("DEPLOYMENT_UNKNOWN", f"nobody asks for a deployment {replica.deployment} any more")
        _same_software(self.loaded, index, replica)
        pool = _pool_of(self.loaded.fabric, replica, self.usable.get(index))
        question = _question(self.loaded, index, pool, replica, self.settings)
        if self.force is not None and question.layout.degrees != self.force:
            return _CannotStayError("DEGREE_NOT_ALLOWED", f"only {self.force} is to be used")
        key = (index, pool, replica.weights_dtype, replica.kv_dtype, question.layout, question.partition)
        if key not in self.evaluated:
            self.evaluated[key] = _shape(self.loaded.problem.deployments[index], question, self.prices[pool], self.loads[index])
        return self.evaluated[key]


def _same_software(loaded: LoadedProblem, index: int, replica: RunningReplica) -> None:
    """Another model, or another engine, has to be started anew."""
    deployment, architecture = loaded.problem.deployments[index], loaded.architectures[index]
    if replica.model not in {deployment.model, architecture.name}:
        raise _CannotStayError("MODEL_MISMATCH", f"it serves {replica.model}, asked for is {deployment.model}")
    runs, wanted = (replica.engine, replica.engine_version), (deployment.engine.name, deployment.engine.version)
    if runs != wanted:
        said, should = (" ".join(word for word in words if word) for words in (runs, wanted))
        raise _CannotStayError("ENGINE_MISMATCH", f"it runs {said}, asked for is {should}")


def _pool_of(fabric: Fabric, replica: RunningReplica, usable: NDArray[np.bool_] | None) -> int:
    """Pool of a replica whose GPUs are all there, free, of one pool and of its type, and not kept from it."""
    inventory = fabric.inventory
    pools = set()
    for node, gpu in replica.ranks:
        row = inventory.index.get(node)
        if row is None:
            raise _CannotStayError("NODE_UNKNOWN", f"the topology has no node {node} any more")
        start, end = int(inventory.first_gpu[row]), int(inventory.first_gpu[row + 1])
        if gpu >= end - start:
            raise _CannotStayError("GPU_UNKNOWN", f"{node} has GPUs 0 to {end - start - 1}, not {gpu}")
        state = STATES[int(inventory.state[start + gpu])]
        if state != "free":
            raise _CannotStayError(f"GPU_{state.upper()}", f"GPU {node}:{gpu} is {state}")
        if usable is not None and not usable[start + gpu]:
            raise _CannotStayError("GPU_FORBIDDEN", f"the deployment may not use GPU {node}:{gpu} any more")
        pools.add(int(fabric.pool_of_node[row]))
    if len(pools) > 1:
        raise _CannotStayError("HETEROGENEOUS_TP", "its GPUs are of nodes unlike in type, wiring or price")
    (pool,) = pools
    if fabric.pools[pool].gpu.name != replica.gpu:
        raise _CannotStayError("GPU_TYPE_MISMATCH", f"its GPUs are {fabric.pools[pool].gpu.name} now, it was planned for {replica.gpu}")
    return pool


def _question(loaded: LoadedProblem, index: int, pool: int, replica: RunningReplica, settings: Settings) -> _Question:
    """What the replica would be, as far as it may be that at all."""
    context = settings.get((index, pool, replica.weights_dtype, replica.kv_dtype))
    if context is None:
        formats = f"{replica.weights_dtype} weights with {replica.kv_dtype} KV cache"
        raise _CannotStayError("PRECISION_NOT_ALLOWED", f"it runs {formats}, which is not what is asked for")
    degrees = Degrees(replica.tp, replica.pp, replica.ep, replica.dp)
    if len(replica.ranks) != degrees.gpus or degrees.stage_gpus % degrees.expert_parallel:
        raise _CannotStayError("GPU_COUNT_MISMATCH", f"{degrees} does not fit {len(replica.ranks)} ranks")
    asked = loaded.problem.deployments[index].parallelism
    for name in ("tp", "pp", "ep", "dp"):
        allowed = None if asked is None else getattr(asked, name)
        if allowed is not None and getattr(replica, name) not in allowed:
            words = " or ".join(map(str, allowed))
            raise _CannotStayError("DEGREE_NOT_ALLOWED", f"it runs {name} {getattr(replica, name)}, allowed is {words}")
    setting = context.setting
    broken = errors(violations(setting.architecture, setting.precision, context.engine, setting.gpu, degrees))
    if broken:
        raise _CannotStayError(broken[0].code, broken[0].message)
    if len(replica.partition) != degrees.pipeline_parallel or sum(replica.partition) != setting.architecture.layers:
        raise _CannotStayError("PARTITION_MISMATCH", f"{list(replica.partition)} does not split {setting.architecture.layers} layers")
    return _Question(context, _layout(loaded.fabric, degrees, replica, pool), replica.partition)


def _layout(fabric: Fabric, degrees: Degrees, replica: RunningReplica, pool: int) -> Layout:
    """How far apart the GPUs of the replica really are."""
    kind = fabric.pools[pool]
    gpus = [GpuId(node, gpu) for node, gpu in replica.ranks]
    tensor, stage = degrees.tensor_parallel, degrees.stage_gpus

    def widest(size: int) -> int:
        parts = [gpus[start : start + size] for start in range(0, len(gpus), size)]
        try:
            return max(kind.levels.index(fabric.level(part)) for part in parts)
        except (PlannerError, ValueError):
            raise _CannotStayError("NOT_CONNECTED", "no network joins its GPUs") from None

    def scopes(size: int) -> int:
        return max(len({fabric.scope_of(gpu.node) for gpu in gpus[start : start + size]}) for start in range(0, len(gpus), size))

    if scopes(tensor) > 1:
        where = "NVLink domain" if kind.scale_up_level == "domain" else kind.scale_up_level
        raise _CannotStayError("CROSS_NODE_TP", f"its TP group of {tensor} leaves the {where} of {kind.scope_size} GPUs")
    replica_level = widest(len(gpus))
    inside = scopes(len(gpus)) == 1
    return Layout(
        degrees=degrees,
        tp_level=widest(tensor),
        stage_level=widest(stage),
        stage_scopes=scopes(stage),
        replica_level=replica_level,
        group_level=replica_level if inside else widest(tensor),
        groups=1 if inside else len(gpus) // tensor,
        group_size=len(gpus) if inside else tensor,
    )


def _shape(deployment: Deployment, question: _Question, price_per_gpu: float | None, load: float) -> Shape | _CannotStayError:
    """The replica at its best batch under today's workload and targets, or what it misses."""
    context, layout = question.context, question.layout
    if (broken := without_nvlink(deployment, context.pool, layout)) is not None:
        return _CannotStayError(*broken)
    table = layout_table(context, [layout], [question.partition])
    found, refused = evaluate_table(context, table, most_sequences(context, table), price_per_gpu, every_batch=False)
    if not found:
        return _CannotStayError(refused[0].code, refused[0].message)
    return with_load_times([Carried(context, [layout], found, load)])[0][0]


def _ranks(fabric: Fabric, degrees: Degrees, replica: RunningReplica) -> tuple[RankPlace, ...]:
    """Ranks on the GPUs they have, numbered stage by stage, in a stage dp rank by dp rank, in it tp rank by tp rank."""
    tensor, stage = degrees.tensor_parallel, degrees.stage_gpus
    together = stage // degrees.expert_parallel
    found = []
    for rank, (node, gpu) in enumerate(replica.ranks):
        inside = rank % stage
        scope = fabric.scopes.name(fabric.scope_of(node))
        found.append(RankPlace(rank, rank // stage, inside % tensor, inside // tensor, inside // together, node, gpu, scope))
    return tuple(found)
