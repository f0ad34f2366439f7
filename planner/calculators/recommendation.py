"""What would be better than an asked layout, and why: the sentence at the end of the calculation.

Layouts are compared at the asked batch on each replica, as efficiency is defined: a smaller degree leaves GPUs for further replicas, which bring
the throughput. On the same load alone a wider layout always reads its weights for more sequences at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.calculators.layouts import Evaluated, Row, evaluate_rows, powers
from planner.calculators.question import Case
from planner.candidates.checklist import EFFICIENCY_LIMIT, OVERHEAD_LIMIT
from planner.candidates.legality import rulebook
from planner.plan.shape import Degrees

MOST_GPUS: Final = 64  # a layout that fits is looked for up to so many GPUs, or those asked where they are more
PIPELINES: Final = (1, 2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """`keep`, `change` to `degrees`, of which the asked GPUs hold `replicas`, or `none` where nothing fits; `message` says why with figures."""

    action: str
    message: str
    degrees: Degrees | None = None
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class _Option:
    """A layout with what one replica of it reaches at the asked batch."""

    degrees: Degrees
    tpot: float
    per_gpu: float
    overhead: float
    efficiency: float

    @property
    def good(self) -> bool:
        return self.overhead <= OVERHEAD_LIMIT and self.efficiency >= EFFICIENCY_LIMIT


def recommend(evaluated: Evaluated, row: int) -> Recommendation:
    """Compare a row with the legal layouts that hold its batch inside one scale-up domain.

    A layout that cannot run is answered with the fewest GPUs that can; one that leaves its domain with the fastest on as many GPUs; one above 30 % overhead or
    below 70 % efficiency with the fastest that keeps both limits.
    """
    case, (degrees, batch) = evaluated.case, evaluated.rows[row]
    asked = _option(evaluated, row)
    legal, fits = evaluated.legal(row), bool(evaluated.memory.free[row] >= 0.0)
    crosses = case.hardware.crosses(degrees)
    if legal and fits and asked.good and not crosses:
        message = f"{degrees} is a sound choice: overhead {asked.overhead:.0%}, efficiency {asked.efficiency:.0%}"
        return Recommendation("keep", message, degrees)
    most = degrees.gpus if legal and fits else max(MOST_GPUS, degrees.gpus)
    found = [option for option in _options(case, degrees, batch, most) if option.degrees != degrees]
    if not legal or not fits:
        why = f"{degrees} does not start" if not legal else f"{degrees} does not hold a batch of {batch}"
        if not found:
            return Recommendation("none", f"{why}, and no legal layout of up to {most} GPUs holds it")
        best = min(found, key=lambda option: (option.degrees.gpus, option.tpot))
        return Recommendation("change", f"{why}; the smallest that does: {_words(best)}", best.degrees, _replicas(degrees, best))
    if crosses:
        why = f"{degrees} leaves its scale-up domain: overhead {asked.overhead:.0%}, efficiency {asked.efficiency:.0%}"
        better = [option for option in found if option.tpot <= asked.tpot or option.per_gpu > asked.per_gpu]
    else:
        why = f"{degrees}: " + (
            f"overhead {asked.overhead:.0%} > 30 %" if asked.overhead > OVERHEAD_LIMIT else f"efficiency {asked.efficiency:.0%} < 70 %"
        )
        better = [option for option in found if option.good]
    if not better:
        return Recommendation("keep", f"{why}, but no layout on {degrees.gpus} GPUs does better at batch {batch}", degrees)
    best = min(better, key=lambda option: option.tpot)
    replicas = _replicas(degrees, best)
    count = f"{replicas} replicas of " if replicas > 1 else ""
    words = (
        f"{why}; {count}{_words(best, replicas)} (asked: {asked.tpot * 1e3:.1f}), {best.per_gpu / asked.per_gpu:.2f}x the tokens per GPU"
    )
    return Recommendation("change", words, best.degrees, replicas)


def _replicas(asked: Degrees, best: _Option) -> int:
    return max(asked.gpus // best.degrees.gpus, 1)


def _words(option: _Option, replicas: int = 1) -> str:
    count = option.degrees.gpus
    gpus = f"{count} GPU{'s' if count > 1 else ''}{' each' if replicas > 1 else ''}"
    return f"{option.degrees} on {gpus}: efficiency {option.efficiency:.0%}, overhead {option.overhead:.0%}, {option.tpot * 1e3:.1f} ms a token"


def _option(table: Evaluated, row: int) -> _Option:
    times, degrees = table.times, table.rows[row][0]
    per_gpu = float(times.throughput[row]) / degrees.gpus
    return _Option(degrees, float(times.tpot[row]), per_gpu, float(times.overhead[row]), float(times.efficiency[row]))


def _options(case: Case, asked: Degrees, batch: int, most: int) -> list[_Option]:
    """Legal layouts of up to `most` GPUs that hold the batch, TP inside one domain."""
    setting, domain = case.setting, case.hardware.domain
    book = rulebook(setting.architecture, setting.precision, case.context.engine, setting.gpu)
    nodes = case.hardware.nodes
    most = most if nodes is None else min(most, nodes * domain)
    rows: list[Row] = []
    for tensor in (size for size in sorted({*powers(domain), asked.tensor_parallel}) if size <= domain):
        for pipeline in (size for size in sorted({*PIPELINES, asked.pipeline_parallel}) if size <= setting.architecture.layers):
            for data in sorted({1, asked.data_parallel}):
                for expert in sorted({1, tensor * data} if book.question.expert_parts() else {1}):
                    degrees = Degrees(tensor, pipeline, expert, data)
                    if degrees.gpus <= most and book.legal(degrees):
                        rows.append((degrees, batch))
    if not rows:
        return []
    table = evaluate_rows(case, rows)
    return [_option(table, index) for index in range(len(rows)) if table.memory.free[index] >= 0.0]
