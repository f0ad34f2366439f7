"""What a replica holds and how fast it is as it is placed: memory by stage, the batch it runs at, times at its real distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from planner.candidates.batches import efficient_batch, largest_batch
from planner.candidates.settings import PoolSetting
from planner.cost.evaluation import evaluate
from planner.cost.memory import MemoryTable, memory
from planner.cost.memory_detail import StageMemory, longest_sequence, memory_by_stage
from planner.cost.partition import engine_partition
from planner.cost.setting import IntArray, Setting, ShapeArrays, TimesTable
from planner.placement.distances import Distances
from planner.placement.settings import Running
from planner.plan.shape import Degrees
from planner.topology.pools import Pool

# Names of the cost model's terms of memory.
CONTEXT_TERMS = frozenset({"KV cache", "recurrent states"})
WEIGHT_TERMS = frozenset({"layers", "embedding", "head", "vision tower"})


@dataclass(frozen=True)
class Replica:
    """One kind of replica: the same deployment, degrees, GPU types, distances and layers per stage.

    `context` is its setting on its (slowest) pool, `stages` those on the pools of its stages (the smallest GPU of each). `room` is the most
    sequences that memory and the engine hold, all dp ranks together; 0 where memory holds none. `sound` tells that memory and times could be asked
    for at all: degrees and partition fit the model.
    """

    running: Running
    degrees: Degrees
    context: PoolSetting
    stages: tuple[PoolSetting, ...]
    distances: Distances
    partition: tuple[int, ...]
    own_split: bool
    sound: bool
    room: int = 0
    known: dict[int, TimesTable | None] = field(default_factory=dict, compare=False, repr=False)
    memories: dict[int, MemoryTable] = field(default_factory=dict, compare=False, repr=False)

    @property
    def pool(self) -> Pool:
        """Pool of the replica; where its stages are on several, the slowest."""
        return self.context.pool

    @property
    def setting(self) -> Setting:
        """What the cost model is asked with."""
        return self.context.setting

    def shapes(self, batches: Sequence[int] | IntArray, distances: Distances | None = None) -> ShapeArrays:
        """The replica at several batches, at its own distances or at others."""
        return (distances or self.distances).shapes(self.degrees, np.asarray(batches, dtype=np.int64))

    def times(self, batches: Sequence[int] | IntArray, distances: Distances | None = None) -> TimesTable:
        """Times at several batches."""
        return evaluate(self.setting, self.shapes(batches, distances))

    def times_at(self, batch: int) -> TimesTable | None:
        """Times at one batch, kept for the replicas alike; None where none can be told."""
        if batch not in self.known:
            self.known[batch] = self.times([batch]) if self.sound else None
        return self.known[batch]

    @cached_property
    def within_targets(self) -> int:
        """Largest batch within memory, the load and the targets; 0 where there is none."""
        return _within_targets(self)

    def held(self, batch: int) -> MemoryTable:
        """Memory at one batch, as columns of one row; kept for the replicas alike."""
        if batch not in self.memories:
            self.memories[batch] = memory(self.setting, self.shapes([batch]), [self.partition])
        return self.memories[batch]

    @property
    def mixed(self) -> bool:
        """Whether its stages are on several pools."""
        return len({stage.pool.index for stage in self.stages}) > 1

    def by_stage(self, batch: int, context: int | None = None) -> tuple[StageMemory, ...]:
        """Memory of every stage term by term, each on its own GPU type; `context` is a length of the sequences other than the workload's [tokens]."""
        tables: dict[int, tuple[StageMemory, ...]] = {}
        for stage in self.stages:
            if stage.pool.index not in tables:
                setting = stage.setting if context is None else replace(stage.setting, prompt_tokens=float(context), output_tokens=0.0)
                tables[stage.pool.index] = memory_by_stage(setting, self.degrees, batch, self.partition)
        return tuple(tables[stage.pool.index][number] for number, stage in enumerate(self.stages))

    def longest(self) -> int:
        """Tokens that a lone sequence may have before the tightest stage is full."""
        if not self.mixed:
            return longest_sequence(self.setting, self.degrees, self.partition)
        low, high = 0, 1 << 24
        while low < high:
            middle = (low + high + 1) // 2
            if all(stage.free >= 0.0 for stage in self.by_stage(self.degrees.data_parallel, middle)):
                low = middle
            else:
                high = middle - 1
        return low


def replica_of(
    running: Running, degrees: Degrees, pools: Sequence[Pool], distances: Distances, partition: tuple[int, ...] | None
) -> Replica:
    """Describe one kind of replica; `pools` are those of its stages, the first stage's first."""
    architecture = running.architecture
    contexts = {pool.index: running.on(pool) for pool in pools}
    # Steps are paced by the slowest stage; distances are levels of the first pool, so only a pool of the same levels can stand for it.
    alike = [pool for pool in pools if pool.levels == pools[0].levels]
    context = contexts[min(alike, key=lambda pool: pool.gpu.memory_bandwidth.value).index]
    stages = degrees.pipeline_parallel
    own_split = partition is None
    if own_split and stages <= architecture.layers:
        partition = engine_partition(running.engine, architecture.layers, stages)
    layers = partition or ()
    whole = len(layers) == stages and min(layers, default=0) >= 1 and sum(layers) == architecture.layers
    found = Replica(running, degrees, context, tuple(contexts[pool.index] for pool in pools), distances, layers, own_split, whole)
    return replace(found, room=_room(found)) if whole else found


def _room(replica: Replica) -> int:
    """Most sequences that every stage holds on its own GPU, and that the engine runs."""
    data = replica.degrees.data_parallel
    shapes = replica.shapes([data])
    if not replica.mixed:
        held = int(memory(replica.setting, shapes, [replica.partition]).max_sequences[0])
    else:
        held = min(_stage_room(stage) for stage in replica.by_stage(data)) * data
    limit = min(stage.sequences_per_rank for stage in replica.stages) * data
    return max(min(held, limit), 0)


def _stage_room(stage: StageMemory) -> int:
    """Sequences one rank of a stage holds, from its terms at one sequence."""
    per_sequence = sum(term.expected for term in stage.terms if term.name in CONTEXT_TERMS)
    free = stage.free + per_sequence
    return max(int(free // max(per_sequence, 1.0)), 0) if free >= 0.0 else 0


def batches_at_load(replicas: Sequence[Replica], load: float) -> list[int]:
    """Batch of every replica of a deployment.

    The planner's own reading where it carries the load: the largest batch within memory and targets. Else the batch each would run at if the load were
    shared in proportion to that, so that what is missed shows at the load asked.
    """
    within = [replica.within_targets for replica in replicas]
    carried = [_capacity(replica, batch) for replica, batch in zip(replicas, within, strict=True)]
    total = math.fsum(carried)
    if total >= load * (1 - 1e-9):
        return within
    weights = carried if total > 0 else [float(replica.degrees.gpus) for replica in replicas]
    whole = math.fsum(weights)
    return [_batch_for(replica, load * weight / whole) for replica, weight in zip(replicas, weights, strict=True)]


def _most(replica: Replica) -> int:
    return replica.room if replica.context.concurrency is None else min(replica.room, replica.context.concurrency)


def _within_targets(replica: Replica) -> int:
    """Largest batch within memory and targets; 0 where there is none."""
    most = _most(replica) if replica.sound else 0
    if most < 1:
        return 0

    def times_of(_: IntArray, batch: IntArray) -> TimesTable:
        return replica.times(batch)

    batch = largest_batch(times_of, np.array([most]), replica.context.targets)
    return int(efficient_batch(times_of, batch, replica.context.targets)[0])


def _capacity(replica: Replica, batch: int) -> float:
    if batch < 1 or not replica.sound:
        return 0.0
    return float(batch) if replica.context.concurrency is not None else _throughput(replica, batch)


def _throughput(replica: Replica, batch: int) -> float:
    times = replica.times_at(batch)
    return 0.0 if times is None else float(times.throughput[0])


def _batch_for(replica: Replica, share: float) -> int:
    """Batch at which a replica carries its share of the load, as far as its memory goes; at least one sequence on every dp rank."""
    least = replica.degrees.data_parallel
    most = max(replica.room, least)
    if replica.context.concurrency is not None:
        return min(max(math.ceil(share - 1e-9), least), most)
    low, high = least, most
    if not replica.sound or _capacity(replica, most) < share:
        return most
    while low < high:  # throughput grows with the batch
        middle = (low + high) // 2
        if _capacity(replica, middle) >= share:
            high = middle
        else:
            low = middle + 1
    return low
