"""What changes between two plans: which replicas start, stop and move, rank by rank, and what that does to GPUs and money."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from planner.plan.document import CurrentDocument, Frozen, PlanDocument


class RunningReplica(Frozen):
    """One replica as it runs: what it is, and the GPU of each rank as `node:index`, in rank order."""

    deployment: str
    model: str
    engine: str
    gpu: str
    tp: int
    pp: int
    ep: int
    dp: int
    batch: int
    weights_dtype: str
    kv_dtype: str
    ranks: tuple[str, ...]

    @property
    def kind(self) -> tuple[object, ...]:
        """What must be the same for a replica to go on running: everything but its batch and its place.

        A placement written by hand may have more or fewer ranks than its degrees ask for; such a replica is of a kind of its own.
        """
        degrees = (self.tp, self.pp, self.ep, self.dp, len(self.ranks))
        return (self.deployment, self.model, self.engine, self.gpu, *degrees, self.weights_dtype, self.kv_dtype)

    @property
    def words(self) -> str:
        """Degrees and GPU type: `TP8 x PP2 on h100-sxm-80gb`."""
        parts = [f"{name}{degree}" for name, degree in (("DP", self.dp), ("EP", self.ep)) if degree > 1]
        return " x ".join([f"TP{self.tp}", f"PP{self.pp}", *parts]) + f" on {self.gpu}"


class Snapshot(Frozen):
    """A plan reduced to what runs where and what it costs."""

    problem: str
    status: str
    cost_per_hour: float | None
    currency: str
    gpus: int
    replicas: tuple[RunningReplica, ...]

    @property
    def nodes(self) -> dict[str, None]:
        """Nodes in use, in the order of the plan."""
        return {rank.rpartition(":")[0]: None for replica in self.replicas for rank in replica.ranks}


class RankMove(Frozen):
    """One rank of a replica that leaves `before` and comes to `after` (`node:index`; None where it did not run or does not any more)."""

    rank: int
    before: str | None
    after: str | None


class ReplicaChange(Frozen):
    """One replica that starts, stops, moves, or stays with another batch.

    `before` and `after` count the replicas of the deployment in each plan from 0. `ranks` are those that change their GPU.
    """

    action: Literal["start", "stop", "move", "keep"]
    deployment: str
    shape: str
    before: int | None
    after: int | None
    batch_before: int | None
    batch_after: int | None
    ranks: tuple[RankMove, ...]


class DeploymentDifference(Frozen):
    """How many replicas of a deployment stay, move, start and stop, and how many of its ranks come to a GPU they did not run on."""

    name: str
    kept: int
    moved: int
    started: int
    stopped: int
    ranks_moved: int
    gpus_before: int
    gpus_after: int


class PlanDifference(Frozen):
    """All that changes from one plan to another. `cost_change` is None where one of them has no price, or the currencies differ.

    `current` is what the second plan was told about the plan that ran: the price of its moves.
    """

    format_version: Literal[1] = 1
    before: str
    after: str
    status_before: str
    status_after: str
    currency: str
    cost_before: float | None
    cost_after: float | None
    cost_change: float | None
    gpus_before: int
    gpus_after: int
    moves: int
    deployments: tuple[DeploymentDifference, ...]
    replicas: tuple[ReplicaChange, ...]
    nodes_opened: tuple[str, ...]
    nodes_emptied: tuple[str, ...]
    current: CurrentDocument | None = None


def snapshot(plan: PlanDocument) -> Snapshot:
    """Reduce a plan to what runs where."""
    return Snapshot(
        problem=plan.problem,
        status=plan.status,
        cost_per_hour=plan.cost_per_hour,
        currency=plan.currency,
        gpus=plan.gpus_used,
        replicas=tuple(
            RunningReplica(
                deployment=deployment.name,
                model=deployment.model,
                engine=f"{deployment.engine.name} {deployment.engine.version or ''}".strip(),
                gpu=replica.shape.gpu,
                tp=replica.shape.tp,
                pp=replica.shape.pp,
                ep=replica.shape.ep,
                dp=replica.shape.dp,
                batch=replica.shape.batch,
                weights_dtype=replica.shape.weights_dtype,
                kv_dtype=replica.shape.kv_dtype,
                ranks=tuple(f"{rank.node}:{rank.gpu}" for rank in replica.ranks),
            )
            for deployment in plan.deployments
            for replica in deployment.replicas
        ),
    )


def plan_difference(before: PlanDocument, after: PlanDocument) -> PlanDifference:
    """Difference of two plans; see `difference`."""
    return difference(snapshot(before), snapshot(after)).model_copy(update={"current": after.current})


def difference(before: Snapshot, after: Snapshot) -> PlanDifference:
    """Pair the replicas of two plans so that few ranks change their GPU, and tell what is left over.

    Replicas of the same kind are paired, first those on the very same GPUs, then those that share most; a pair with the same ranks on the same
    GPUs is kept, another one moves. What has no partner stops or starts. Pairs are chosen greedily, the largest overlap first.
    """
    changes: list[ReplicaChange] = []
    names = list(dict.fromkeys(replica.deployment for replica in (*before.replicas, *after.replicas)))
    rows: list[DeploymentDifference] = []
    for name in names:
        old = [replica for replica in before.replicas if replica.deployment == name]
        new = [replica for replica in after.replicas if replica.deployment == name]
        found = _changes(old, new)
        changes += [change for change in found if change.action != "keep" or change.batch_before != change.batch_after]
        actions = Counter(change.action for change in found)
        rows.append(
            DeploymentDifference(
                name=name,
                kept=actions["keep"],
                moved=actions["move"],
                started=actions["start"],
                stopped=actions["stop"],
                ranks_moved=sum(move.after is not None for change in found for move in change.ranks),
                gpus_before=sum(len(replica.ranks) for replica in old),
                gpus_after=sum(len(replica.ranks) for replica in new),
            )
        )
    comparable = before.cost_per_hour is not None and after.cost_per_hour is not None and before.currency == after.currency
    return PlanDifference(
        before=before.problem,
        after=after.problem,
        status_before=before.status,
        status_after=after.status,
        currency=after.currency,
        cost_before=before.cost_per_hour,
        cost_after=after.cost_per_hour,
        cost_change=(after.cost_per_hour or 0.0) - (before.cost_per_hour or 0.0) if comparable else None,
        gpus_before=before.gpus,
        gpus_after=after.gpus,
        moves=sum(row.ranks_moved for row in rows),
        deployments=tuple(rows),
        replicas=tuple(changes),
        nodes_opened=tuple(node for node in after.nodes if node not in before.nodes),
        nodes_emptied=tuple(node for node in before.nodes if node not in after.nodes),
    )


def _changes(old: Sequence[RunningReplica], new: Sequence[RunningReplica]) -> list[ReplicaChange]:
    partner = _pairs(old, new)
    found = [_paired(old[first], new[second], first, second) for first, second in sorted(partner.items())]
    found += [_alone(replica, "stop", index) for index, replica in enumerate(old) if index not in partner]
    taken = set(partner.values())
    found += [_alone(replica, "start", index) for index, replica in enumerate(new) if index not in taken]
    return found


def _pairs(old: Sequence[RunningReplica], new: Sequence[RunningReplica]) -> dict[int, int]:
    """Partner in `new` of each replica of `old` that has one."""
    holders: dict[tuple[object, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, replica in enumerate(new):
        for rank in replica.ranks:
            holders[replica.kind][rank].append(index)
    overlaps: list[tuple[int, int, int, int]] = []
    for first, replica in enumerate(old):
        shared: Counter[int] = Counter()
        for rank in replica.ranks:
            shared.update(holders[replica.kind].get(rank, ()))
        for second, count in shared.items():
            exact = sum(a == b for a, b in zip(replica.ranks, new[second].ranks, strict=True))
            overlaps.append((-exact, -count, first, second))
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, _, first, second in sorted(overlaps):
        if first not in partner and second not in taken:
            partner[first] = second
            taken.add(second)
    # Replicas without any GPU in common may still stand for one another: weights are loaded anew, the number of replicas stays.
    left: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for second, replica in enumerate(new):
        if second not in taken:
            left[replica.kind].append(second)
    for first, replica in enumerate(old):
        if first not in partner and left[replica.kind]:
            partner[first] = left[replica.kind].pop(0)
    return partner


def _paired(old: RunningReplica, new: RunningReplica, first: int, second: int) -> ReplicaChange:
    moves = tuple(
        RankMove(rank=rank, before=before, after=after)
        for rank, (before, after) in enumerate(zip(old.ranks, new.ranks, strict=True))
        if before != after
    )
    return ReplicaChange(
        action="move" if moves else "keep",
        deployment=new.deployment,
        shape=new.words,
        before=first,
        after=second,
        batch_before=old.batch,
        batch_after=new.batch,
        ranks=moves,
    )


def _alone(replica: RunningReplica, action: Literal["start", "stop"], index: int) -> ReplicaChange:
    starts = action == "start"
    return ReplicaChange(
        action=action,
        deployment=replica.deployment,
        shape=replica.words,
        before=None if starts else index,
        after=index if starts else None,
        batch_before=None if starts else replica.batch,
        batch_after=replica.batch if starts else None,
        ranks=tuple(
            RankMove(rank=rank, before=None if starts else gpu, after=gpu if starts else None) for rank, gpu in enumerate(replica.ranks)
        ),
    )
