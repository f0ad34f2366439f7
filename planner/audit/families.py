"""Replicas alike in deployment, pool and shape: what is true of one is true of all, so it is computed once."""

from __future__ import annotations

from dataclasses import dataclass

from planner.audit.columns import IntArray
from planner.audit.question import context_tokens
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import Engine
from planner.cost.setting import Precision, Setting
from planner.plan.document import ShapeDocument
from planner.plan.shape import Degrees
from planner.problem.documents import Deployment
from planner.topology.pools import Pool

# No replica has more ranks, and none holds more sequences; larger figures are reported instead of computed with.
LARGEST_DEGREE = 2**16
LARGEST_BATCH = 2**40


@dataclass(frozen=True)
class Family:
    """Replicas of one shape, with the question they answer.

    `rows` are their replica rows. `precision` is None when the deployment may not run in the shape's number formats.
    """

    question: Deployment
    architecture: ModelArchitecture
    engine: Engine
    pool: Pool
    precision: Precision | None
    shape: ShapeDocument
    rows: IntArray

    @property
    def degrees(self) -> Degrees:
        """Parallel degrees of the shape."""
        return Degrees(self.shape.tp, self.shape.pp, self.shape.ep, self.shape.dp)

    @property
    def title(self) -> str:
        """Shape in words, with how many replicas share it."""
        shared = f", {len(self.rows)} replicas" if len(self.rows) > 1 else ""
        return f"{self.question.name}: {self.degrees} on {self.shape.gpu}, batch {self.shape.batch}{shared}"


def believable(shape: ShapeDocument) -> bool:
    """Whether degrees and batch are positive and of a size that machines have."""
    degrees = (shape.tp, shape.pp, shape.ep, shape.dp)
    return min(*degrees, shape.batch) >= 1 and max(degrees) <= LARGEST_DEGREE and shape.batch <= LARGEST_BATCH


def well_partitioned(shape: ShapeDocument, architecture: ModelArchitecture) -> bool:
    """Whether the partition names one stage per pipeline rank, at least one layer each, and all layers of the model."""
    partition = shape.partition
    return len(partition) == shape.pp and min(partition) >= 1 and sum(partition) == architecture.layers


def setting_of(family: Family, precision: Precision, profile: str) -> Setting:
    """Setting the family's shape was promised in; the engine's published defaults where the deployment leaves them open."""
    question, rules = family.question, family.engine
    memory = question.memory
    length = context_tokens(question) if memory is None or memory.max_model_len is None else memory.max_model_len
    asked = None if memory is None else memory.max_batched_tokens
    batched = rules.batched_tokens(family.pool.gpu, length) if asked is None else asked
    share = rules.gpu_memory_utilization if memory is None or memory.gpu_memory_utilization is None else memory.gpu_memory_utilization
    return Setting(
        architecture=family.architecture,
        precision=precision,
        engine=rules.name if question.engine.version is None else f"{rules.name} {question.engine.version}",
        gpu=family.pool.gpu,
        paths=family.pool.paths,
        prompt_tokens=float(question.workload.prompt_tokens),
        output_tokens=float(question.workload.output_tokens),
        max_num_seqs=0 if memory is None or memory.max_num_seqs is None else memory.max_num_seqs,
        max_batched_tokens=batched,
        max_model_len=length,
        gpu_memory_utilization=share,
        prefix_cache_hit_rate=0.0 if memory is None else memory.prefix_cache_hit_rate,
        profile=profile,
    )
