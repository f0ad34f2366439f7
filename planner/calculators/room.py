"""Memory of one layout in words and terms: what the fullest rank holds, and whether it fits, how far, or by how much not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.calculators.layouts import Evaluated
from planner.calculators.question import Case
from planner.cost.memory_detail import CONTEXT_TERMS, StageMemory, longest_sequence, memory_by_stage, memory_diagnostics, reported_tokens
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees

GIB = 2.0**30
UNBOUNDED = 1 << 39  # tokens; a context that costs nothing once windows and states are full


@dataclass(frozen=True)
class Room:
    """Memory of the fullest rank of one layout at its batch.

    `verdict` is `fits`, `borderline` (it depends on where activations and communicators lie in their band), `fits fewer sequences` or `does not fit`;
    `words` say how many sequences and tokens, or which stage lacks how much. `tokens` is the longest lone sequence, None where its length costs nothing; `engine_tokens`
    is what an engine's log calls the size of its KV cache: sequences of its longest context that fit, in tokens.
    """

    stage: StageMemory
    stages: int
    sequences: int
    sequences_low: int
    sequences_high: int
    tokens: int | None
    engine_tokens: int
    verdict: str
    words: str
    findings: tuple[Diagnostic, ...]

    @property
    def fits(self) -> bool:
        """Whether the batch is held with the expected other terms."""
        return self.stage.free >= 0.0

    @property
    def shortfall(self) -> float:
        """Memory that one sequence lacks on the fullest rank [B]; 0 where at least one fits."""
        return 0.0 if self.sequences >= 1 else max(-self.stage.free, 0.0)


def clamped(case: Case, degrees: Degrees) -> Degrees:
    """Degrees with no more stages than layers: what a pipeline too deep would hold at least."""
    return replace(degrees, pipeline_parallel=min(degrees.pipeline_parallel, case.setting.architecture.layers))


def room(evaluated: Evaluated, row: int) -> Room:
    """Memory of one row of an evaluation."""
    case, (degrees, batch), table = evaluated.case, evaluated.rows[row], evaluated.memory
    held = clamped(case, degrees)
    partition = table.partitions[row]
    stages = memory_by_stage(case.setting, held, batch, partition)
    fullest = min(stages, key=lambda stage: stage.free)
    most = int(table.max_sequences[row])
    tokens: int | None = longest_sequence(case.setting, held, partition) if most else 0
    if tokens is not None and tokens >= UNBOUNDED:
        tokens = None
    context = sum(term.expected for term in fullest.terms if term.name in CONTEXT_TERMS)
    printed = reported_tokens(case.setting, replace(held, pipeline_parallel=1), max(fullest.free + context, 0.0) * len(stages))
    verdict, words = _words(fullest, len(stages), batch, most, tokens, borderline=bool(table.borderline[row]))
    return Room(
        fullest,
        len(stages),
        most,
        int(table.max_sequences_low[row]),
        int(table.max_sequences_high[row]),
        tokens,
        int(printed),
        verdict,
        words,
        memory_diagnostics(case.setting, held, batch, partition),
    )


def _words(stage: StageMemory, stages: int, batch: int, most: int, tokens: int | None, *, borderline: bool) -> tuple[str, str]:
    longest = "any length" if tokens is None else f"{tokens:,} tokens"
    room_for = f"at most {most:,} sequence{'s' if most != 1 else ''}, or one of {longest}" if most else "no sequence as expected"
    where = f"every rank of stage {stage.stage} (of {stages})" if stages > 1 else "every rank"
    largest = f"largest term {stage.largest.name}, {stage.largest.expected / GIB:.1f} GiB"
    if stage.free >= 0.0 and not borderline:
        return "fits", f"{stage.free / GIB:.1f} GiB free on {where}: {room_for}"
    if borderline:
        over = sum(term.high for term in stage.terms) - stage.budget
        words = f"{stage.free / GIB:+.1f} GiB as expected on {where}, short by {over / GIB:.1f} GiB at worst: {room_for}"
        return "borderline", words
    if most >= 1:
        words = f"batch {batch:,} is short by {-stage.free / GIB:.1f} GiB on {where}; {room_for}"
        return "fits fewer sequences", words
    return "does not fit", f"short by {-stage.free / GIB:.1f} GiB on {where}; {largest}"
