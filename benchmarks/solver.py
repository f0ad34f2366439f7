"""Scale of the solver: gap, CPU seconds and memory on synthetic fleets.

    python -m benchmarks.solver                      the default table
    python -m benchmarks.solver 1024x5:1-8 10240x20  GPUs x models, with seeds

Columns: status, cost, gap to the proved bound, CPU seconds of choice and of placement, peak memory of the process, what stopped the search.
"""

from __future__ import annotations

import resource
import sys
import time

from benchmarks.solver_fleets import synthetic
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES

DEFAULT = ("16x1:1", "1024x5:1-4", "1024x20:1-2", "10240x20:1-2", "10240x50:1", "102400x50:1")


def cases(names: list[str]) -> list[tuple[int, int, int]]:
    """(GPUs, models, seed) of every case named."""
    found = []
    for name in names:
        fleet, _, seeds = name.partition(":")
        gpus, models = map(int, fleet.split("x"))
        first, _, last = (seeds or "1").partition("-")
        found += [(gpus, models, seed) for seed in range(int(first), int(last or first) + 1)]
    return found


def main(names: list[str]) -> None:
    """Solve the cases and print one row each."""
    print(
        f"{'GPUs':>8} {'models':>6} {'seed':>4} {'status':>10} {'cost $/h':>12} {'gap %':>8} {'choose s':>9} {'place s':>8} {'MB':>6}  stopped by"
    )
    for gpus, models, seed in cases(names or list(DEFAULT)):
        instance = synthetic(gpus, models, seed)
        started = time.process_time()
        decision = decide(instance, SolveOptions(), RULES)
        chosen = time.process_time()
        if decision.model is not None:
            place(decision.model, decision.values)
        placed = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        stage = decision.stages[0] if decision.stages else None
        cost = "" if stage is None else f"{stage.value / 1e6:.2f}"
        gap = "" if stage is None else f"{100 * (stage.value - (stage.bound or 0)) / stage.value:.4f}"
        print(
            f"{gpus:8} {models:6} {seed:4} {decision.status.value:>10} {cost:>12} {gap:>8} {chosen - started:9.2f} {placed - chosen:8.2f}"
            f" {memory:6.0f}  {decision.stopped_by or ''}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
