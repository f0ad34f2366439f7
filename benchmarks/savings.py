"""What a proved optimum saves against heuristics under the same rules, and how often these find no plan at all.

    python -m benchmarks.savings                   the table below
    python -m benchmarks.savings 128x5:1-40@0.75   GPUs x models, seeds, load as a share of the free GPUs

Two comparisons are kept apart: shapes mixed freely on both sides (one greedy pass, the best of 50), and one shape per deployment on both sides (per-model
enumeration, the best of 50 orders, against the optimum under the same rule).
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence

from benchmarks.fleets import instance, one_shape_each
from benchmarks.heuristics import enumerate_shapes, greedy
from planner.plan.outcome import Status
from planner.solve.instance import Instance
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.rules import RULES

DEFAULT = ("128x5:1-20@0.45", "128x5:1-20@0.75", "1024x5:1-12@0.75", "1024x20:1-8@0.6", "1024x20:1-8@0.75")


def optimum(question: Instance) -> tuple[Status, int | None, float]:
    """Status, cost [1e-6 $/h] and gap of the solver's plan."""
    decision = decide(question, SolveOptions(), RULES)
    if not decision.stages:
        return decision.status, None, 0.0
    stage = decision.stages[0]
    return decision.status, stage.value, (stage.value - (stage.bound or 0)) / stage.value


def told(name: str, heuristic: Sequence[int | None], optima: Sequence[int | None]) -> str:
    """One line: failures where a plan exists, and the savings in per cent of the heuristic's cost."""
    pairs = [(h, o) for h, o in zip(heuristic, optima, strict=True) if o is not None]
    saved = sorted(100 * (h - o) / h for h, o in pairs if h is not None)
    fails = sum(1 for h, _ in pairs if h is None)
    worse = sum(1 for h, o in pairs if h is not None and h < o)
    if not saved:
        return f"    {name:<44} no plan on {fails} of {len(pairs)}"
    middle, ninety = statistics.median(saved), saved[min(len(saved) - 1, int(0.9 * len(saved)))]
    equal = sum(1 for value in saved if value == 0)
    return (
        f"    {name:<44} no plan on {fails} of {len(pairs)}; saved median {middle:.2f} % p90 {ninety:.2f} % max {saved[-1]:.2f} %;"
        f" equal {equal}; cheaper than the solver {worse}"
    )


def compare(gpus: int, models: int, seeds: range, filled: float) -> None:
    """Print the comparison for one kind of fleet."""
    questions = [instance(gpus, models, seed, filled) for seed in seeds]
    free = [optimum(question) for question in questions]
    single = [optimum(one_shape_each(question)) for question in questions]
    print(f"{gpus} x {models}, load {filled:.0%}, {len(seeds)} seeds", flush=True)
    for name, found in (("shapes mixed", free), ("one shape each", single)):
        feasible = [gap for _, cost, gap in found if cost is not None]
        unknown = sum(1 for status, cost, _ in found if cost is None and status is not Status.INFEASIBLE)
        impossible = sum(1 for status, _, _ in found if status is Status.INFEASIBLE)
        print(
            f"    solver, {name}: plans {len(feasible)}, impossible {impossible}, unknown {unknown}, worst gap {100 * max(feasible, default=0):.4f} %"
        )
    mixed, one = [cost for _, cost, _ in free], [cost for _, cost, _ in single]
    print(told("one greedy pass, shapes mixed", [greedy(question, 1) for question in questions], mixed))
    print(told("best of 50 greedy starts, shapes mixed", [greedy(question) for question in questions], mixed))
    enumerated = [enumerate_shapes(question) for question in questions]
    print(told("enumeration (one shape) against mixed optimum", enumerated, mixed))
    print(told("enumeration against one-shape optimum", enumerated, one), flush=True)


def main(names: Sequence[str]) -> None:
    for name in names:
        fleet, _, rest = name.partition(":")
        seeds, _, filled = rest.partition("@")
        gpus, models = map(int, fleet.split("x"))
        first, _, last = seeds.partition("-")
        compare(gpus, models, range(int(first), int(last or first) + 1), float(filled or 0.75))


if __name__ == "__main__":
    main(sys.argv[1:] or DEFAULT)
