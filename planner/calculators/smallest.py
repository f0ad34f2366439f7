"""The smallest number of GPUs that holds a model, by GPU type or by memory alone, and what each number of GPUs must hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from planner.calculators.flags import FlagReader
from planner.calculators.layouts import Evaluated, evaluate_rows, findings, powers
from planner.calculators.question import Case, Question
from planner.calculators.room import Room, clamped, room
from planner.catalog.facts import Fact
from planner.catalog.gpus import Gpu, gpu
from planner.catalog.reported_memory import GIB, reported_by_driver
from planner.diagnostics import Diagnostic, errors
from planner.plan.shape import Degrees

DEFAULT_MOST: Final = 16
LARGEST_MOST: Final = 4096
PIPELINES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64)
MOST_MEMORY_GIB: Final = 4096
# What a GPU known by its memory alone is otherwise like; only the engine's rules about number formats look at it.
STAND_IN: Final = "h100-sxm-80gb"


@dataclass(frozen=True)
class Held:
    """One layout with its memory, and what forbids it."""

    degrees: Degrees
    room: Room
    findings: tuple[Diagnostic, ...]

    @property
    def legal(self) -> bool:
        """Whether the engine starts with these degrees."""
        return not errors(self.findings)


@dataclass(frozen=True)
class FrontierPoint:
    """What every rank must hold when the model is cut over `gpus` ranks by tensor parallelism: weights, context and the rest [B]."""

    gpus: int
    weights: float
    context: float
    other: float
    budget: float
    fits: bool


@dataclass(frozen=True)
class Smallest:
    """Answer for one case and batch.

    `by_memory` is the smallest power of two of ranks that holds the batch by tensor parallelism, legal or not; `held` the smallest legal layout that does (with
    pipeline stages where they are needed), None where none up to the limit does, and `nearest` then the layout that lacks least. `asked` answers layouts named by flags.
    """

    case: Case
    batch: int
    by_memory: int | None
    held: Held | None
    nearest: Held | None
    asked: tuple[Held, ...]
    frontier: tuple[FrontierPoint, ...]


def gpu_of_memory(nominal_gib: float) -> Gpu:
    """A GPU of which only the memory is known [GiB], as its driver would report it."""
    nominal = nominal_gib * GIB
    reported = Fact(max(reported_by_driver(nominal), 0.0), "assumed", "nominal size less what the driver keeps, by catalog.reported_memory")
    name = f"any-{nominal_gib:g}gb"
    return replace(gpu(STAND_IN), name=name, memory=reported, nominal_memory=nominal, price=None, aliases=())


def read_memories(reader: FlagReader, texts: tuple[str, ...]) -> tuple[Gpu, ...]:
    """Hypothetical GPUs by `--gpu-memory`: `80GB`, `80GiB` or plain `80`, all counted in GiB as vendors do."""
    found = []
    for text in reader.parts("--gpu-memory", texts):
        number = text
        for ending in ("GiB", "GB", "G"):
            number = number.removesuffix(ending)
        value = reader.number("--gpu-memory", number.strip(), MOST_MEMORY_GIB)
        if value is not None and value < 1.0:
            reader.fault("--gpu-memory", "OUT_OF_RANGE", f"{text!r} is less than any GPU has", "write at least 1GB")
        elif value is not None:
            found.append(gpu_of_memory(value))
    return tuple(found)


def smallest(question: Question, most: int = DEFAULT_MOST) -> tuple[Smallest, ...]:
    """Smallest numbers of GPUs of every case and batch, or the verdict on the layouts named by flags."""
    named = bool(question.tp or question.pp or question.ep or question.dp)
    return tuple(_smallest(case, batch, question.degrees() if named else (), most) for case in question.cases for batch in question.batches)


def _smallest(case: Case, batch: int, asked: tuple[Degrees, ...], most: int) -> Smallest:
    tensors = powers(most)
    cut = evaluate_rows(case, [(Degrees(tensor), batch) for tensor in tensors])
    frontier = tuple(_point(cut, row) for row in range(len(tensors)))
    by_memory = next((point.gpus for point in frontier if point.fits), None)
    if asked:
        table = evaluate_rows(case, [(degrees, batch) for degrees in asked])
        answers = tuple(Held(degrees, room(table, row), table.findings(row)) for row, degrees in enumerate(asked))
        return Smallest(case, batch, by_memory, None, None, answers, frontier)
    layers = case.setting.architecture.layers
    rows = [(Degrees(t, p), batch) for t in tensors for p in PIPELINES if t * p <= most and p <= layers and t <= case.hardware.domain]
    rows = [row for row in rows if not errors(findings(case, row[0]))]
    if not rows:
        return Smallest(case, batch, by_memory, None, None, (), frontier)
    table = evaluate_rows(case, rows)
    free = table.memory.free
    order = sorted(range(len(rows)), key=lambda row: (rows[row][0].gpus, rows[row][0].pipeline_parallel))
    fitting = next((row for row in order if free[row] >= 0.0), None)
    if fitting is not None:
        return Smallest(case, batch, by_memory, _held(table, fitting), None, (), frontier)
    return Smallest(case, batch, by_memory, None, _held(table, max(order, key=lambda row: float(free[row]))), (), frontier)


def _held(table: Evaluated, row: int) -> Held:
    return Held(table.rows[row][0], room(table, row), table.findings(row))


def _point(table: Evaluated, row: int) -> FrontierPoint:
    memory = table.memory
    return FrontierPoint(
        clamped(table.case, table.rows[row][0]).gpus,
        float(memory.weights[row]),
        float(memory.kv[row]),
        float(memory.other[row]),
        float(memory.budget[row]),
        bool(memory.free[row] >= 0.0),
    )
