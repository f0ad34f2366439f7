"""Where time goes as GPUs are added: the map of compute- and communication-bound layouts over models, interconnects and degrees.

The ratio of a phase is its compute over its communication; above 1 the phase is bound by compute. With log-normal jitter of sigma on communication alone the
tail of a step follows from it, P99 / P50 = (r + e^(2.326 sigma)) / (r + 1), as in the communication cost study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.calculators.layouts import Evaluated, evaluate_rows
from planner.calculators.question import Case, Question
from planner.cost.paper_study import tail_ratio
from planner.plan.shape import Degrees

DEGREES: Final = (2, 4, 8)
SIGMA: Final = 0.12  # the study's


@dataclass(frozen=True)
class Phase:
    """Decode or prefill of one layout [s]; `ratio` = compute / communication, infinite where nothing is sent. `tail` = P99 / P50."""

    name: str
    compute: float
    communication: float
    ratio: float
    regime: str
    efficiency: float
    tail: float


@dataclass(frozen=True)
class Cell:
    """One cell of the map: a model on a link with some GPUs."""

    case: Case
    degrees: Degrees
    batch: int
    legal: bool
    crosses: bool
    phases: tuple[Phase, Phase]


def regimes(question: Question, sigma: float = SIGMA) -> tuple[Cell, ...]:
    """The map of every case, batch and degree."""
    cells = []
    for case in question.cases:
        for batch in question.batches:
            wanted = question.degrees(DEGREES)
            table = evaluate_rows(case, [(Degrees(1), batch), *((degrees, batch) for degrees in wanted)])
            cells += [_cell(table, row, sigma) for row in range(1, len(table.rows))]
    return tuple(cells)


def _cell(table: Evaluated, row: int, sigma: float) -> Cell:
    times, (degrees, batch) = table.times, table.rows[row]
    sent = float(times.tp_comm[row] + times.pp_comm[row] + times.ep_comm[row])
    decode = _phase("decode", float(times.tpot[row]) - sent, sent, float(times.efficiency[row]), sigma)
    alone = float(times.prefill_compute[0] + times.prefill_comm[0])
    compute, gathered = float(times.prefill_compute[row]), float(times.prefill_comm[row])
    prefill = _phase("prefill", compute, gathered, alone / (degrees.gpus * (compute + gathered)), sigma)
    return Cell(table.case, degrees, batch, table.legal(row), table.case.hardware.crosses(degrees), (decode, prefill))


def _phase(name: str, compute: float, communication: float, efficiency: float, sigma: float) -> Phase:
    if communication <= 0.0:
        return Phase(name, compute, 0.0, float("inf"), "compute", efficiency, 1.0)
    ratio = compute / communication
    return Phase(name, compute, communication, ratio, "compute" if ratio >= 1.0 else "communication", efficiency, tail_ratio(ratio, sigma))
