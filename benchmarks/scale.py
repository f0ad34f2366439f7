"""Scale targets: what is proved on synthetic fleets, in how many CPU seconds, in how much memory.

    python -m benchmarks.scale                          every row of the table, every seed
    python -m benchmarks.scale 1024x5:1-20 10240x50:2   GPUs x models, with seeds
    python -m benchmarks.scale 1024x20@0.8:1-8          every deployment keeps 80 % after the loss of any one leaf
    python -m benchmarks.scale 1024x20/latency:1-3      another objective: latency, throughput, gpus
    python -m benchmarks.scale --whole 10240x20:1       problem file to audited plan, on catalog models

Every instance runs in a process of its own, on default options. Times are CPU seconds of that process (user and system, all threads); imports and the drawing
of the fleet do not count. `proof` is the time until the cost is decided, `all` has the tie-breaking stages, the placement and the check too.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]


class Target(NamedTuple):
    """One row of the table: fleet, seeds, gap allowed [share], CPU seconds, memory [MB], share of the load left after the loss of any one leaf (0: not asked), objective."""

    gpus: int
    models: int
    seeds: range
    gap: float
    seconds: float
    memory: float | None = None
    keep: float = 0.0
    objective: str = "cost"

    @property
    def name(self) -> str:
        """Fleet, models, share to keep and objective as the command line names them."""
        kept, asked = f"@{self.keep:g}" if self.keep else "", "" if self.objective == "cost" else f"/{self.objective}"
        return f"{self.gpus}x{self.models}{kept}{asked}"


TARGETS = (
    Target(1_024, 5, range(1, 21), 0.0, 1.0),
    Target(1_024, 20, range(1, 9), 0.0, 1.0),
    Target(10_240, 20, range(1, 7), 2e-4, 5.0),
    Target(10_240, 50, range(1, 4), 2e-4, 5.0),
    Target(102_400, 50, range(1, 4), 5e-4, 10.0, 500),
    Target(1_000_000, 100, range(1, 2), 5e-4, 30.0, 1_000),
    *(
        Target(gpus, 20, range(1, 9), 8e-3 if keep == 1.0 else 4e-3, 15.0 if keep == 1.0 else 8.0, keep=keep)
        for gpus in (1_024, 10_240)
        for keep in (0.5, 0.8, 1.0)
    ),
)


def recheck(instance: Any, placed: Sequence[Any], cost: int, objective: str = "cost") -> None:
    """Check a placement against the instance alone, in exact integers: groups in free GPUs, loads served, the objective's value as told."""
    columns = instance.shapes
    shape = np.array([replica.shape for replica in placed], dtype=np.int64)
    counts = np.bincount(shape, minlength=len(columns))
    served = np.bincount(columns.deployment, weights=counts * columns.capacity, minlength=instance.deployments)
    share = np.bincount(columns.deployment, weights=counts * columns.share, minlength=instance.deployments)
    if objective == "throughput":
        assert int(share.min()) >= -cost, "less is served than the plan says"
    else:
        assert (served >= instance.loads).all(), "a load is not served"
        value = {"cost": counts @ columns.price, "gpus": counts @ columns.gpus, "latency": columns.tpot[counts > 0].max()}[objective]
        assert int(value) == cost, "the objective is not what the plan says"
    taken: dict[int, list[tuple[int, int]]] = {}
    for replica in placed:
        assert len(replica.groups) == columns.groups[replica.shape]
        for group in replica.groups:
            assert len(group.positions) == columns.size[replica.shape]
            taken.setdefault(int(columns.pool[replica.shape]), []).extend((group.scope, position) for position in group.positions)
    for pool, gpus in taken.items():
        used = np.array(gpus, dtype=np.int64)
        assert len(np.unique(used, axis=0)) == len(used), "a GPU is used twice"
        assert (used[:, 1] < instance.pools[pool].free[used[:, 0]]).all(), "a GPU is not free"


def kill(instance: Any, placed: Sequence[Any]) -> None:
    """Take the leaves away one at a time and see that the replicas without a GPU there serve what must be left."""
    columns = instance.shapes
    left: dict[int, int] = dict.fromkeys(range(instance.deployments), 0)
    lost: dict[tuple[int, int], int] = {}
    for replica in placed:
        deployment, serves = int(columns.deployment[replica.shape]), int(columns.capacity[replica.shape])
        leaf = instance.pools[int(columns.pool[replica.shape])].leaf
        left[deployment] += serves
        for dead in {int(leaf[group.scope]) for group in replica.groups}:
            lost[deployment, dead] = lost.get((deployment, dead), 0) + serves
    for (deployment, _), gone in lost.items():
        keep = instance.rules_of(deployment).resilience.keep
        assert left[deployment] - gone >= keep * int(instance.loads[deployment]), "too little is left without a leaf"


def one(gpus: int, models: int, seed: int, keep: float = 0.0, objective: str = "cost") -> dict[str, Any]:
    """Solve, place and check one synthetic fleet."""
    import ortools.linear_solver.pywraplp
    import ortools.sat.python.cp_model_helper  # noqa: F401

    from benchmarks.fleets import instance as draw
    from benchmarks.fleets import surviving
    from planner.solve import search
    from planner.solve.objectives import decide
    from planner.solve.options import SolveOptions
    from planner.solve.placement import place
    from planner.solve.rules import RULES

    instance = replace(draw(gpus, models, seed), objective=objective)
    if keep:
        instance = surviving(instance, Fraction(str(keep)))
    proved: list[float] = []
    primary = search.Search.primary

    def timed(self: Any, *arguments: Any) -> Any:
        found = primary(self, *arguments)
        proved.append(time.process_time() - begun)
        return found

    search.Search.primary = timed  # type: ignore[method-assign]
    begun = time.process_time()
    decision = decide(instance, SolveOptions(), RULES)
    decided = time.process_time()
    told: dict[str, Any] = {"status": decision.status.value, "proof": proved[0] if proved else decided - begun, "gap": 0.0}
    if decision.model is not None:
        stage = decision.stages[0]
        placed = place(decision.model, decision.values) if decision.placed is None else decision.placed
        told["place"] = time.process_time() - decided
        recheck(decision.model.instance, placed, stage.value, objective)
        if keep:
            kill(decision.model.instance, placed)
        told |= {"cost": stage.value, "bound": stage.bound, "gap": (stage.value - (stage.bound or 0)) / abs(stage.value)}
        told |= {
            "gaps": {
                other.name: 1.0 if other.bound is None else (other.value - other.bound) / max(1, other.value)
                for other in decision.stages[1:]
            }
        }
    elif decision.status.value != "infeasible":
        told["gap"] = 1.0
    return told | {"all": time.process_time() - begun, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def whole(gpus: int, models: int, seed: int) -> dict[str, Any]:
    """Problem document to audited plan: CPU seconds of every room."""
    import tempfile

    from benchmarks.fleet_problem import problem
    from planner.answer.document import plan_document
    from planner.audit.audit import audit
    from planner.candidates.menu import build_menu
    from planner.diagnostics import errors
    from planner.problem.load import load_problem
    from planner.solve import SolveOptions, solve

    laps: dict[str, Any] = {}

    def lap(name: str, begun: float) -> float:
        laps[name] = time.process_time() - begun
        return time.process_time()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        path.write_text(json.dumps(problem(gpus, models, seed)), encoding="utf-8")
        clock = time.process_time()
        loaded = load_problem(str(path))
    clock = lap("load", clock)
    menu = build_menu(loaded)
    clock = lap("menu", clock)
    outcome = solve(loaded.problem, loaded.fabric, menu.shapes, menu.loads, SolveOptions())
    clock = lap("solve", clock)
    plan = plan_document(loaded, menu, outcome, ())
    clock = lap("document", clock)
    found = errors(audit(loaded.problem, loaded.fabric, loaded.architectures, plan)) if outcome.replicas else ()
    lap("audit", clock)
    gap = None if outcome.objective is None else outcome.objective.gap
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"status": outcome.status.value, "gap": gap, "shapes": len(menu.shapes), "faults": len(found), **laps, "memory": memory}


def apart(way: str, target: Target, seed: int) -> dict[str, Any]:
    """Run one case in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", f"--{way}-here", f"{target.name}:{seed}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(targets: Sequence[Target]) -> None:
    """Print one line a seed, and one a row with medians, worst cases and what of the target is met."""
    for target in targets:
        found = []
        for seed in target.seeds:
            told = apart("one", target, seed)
            found.append(told)
            print(
                f"  {target.name:>14} seed {seed:<2} {told['status']:>10}  gap {100 * told['gap']:.4f} %  proof {told['proof']:6.2f} s"
                f"  place {told.get('place', 0.0):5.2f} s  all {told['all']:6.2f} s  {told['memory']:4.0f} MB"
                + ("" if target.objective == "cost" else _others(told)),
                flush=True,
            )
        met = sum(1 for told in found if told["gap"] <= target.gap and told["proof"] <= target.seconds)
        met_all = sum(1 for told in found if told["gap"] <= target.gap and told["all"] <= target.seconds)
        words = " ".join(
            f"{name} median {statistics.median(r[name] for r in found):.2f} worst {max(r[name] for r in found):.2f} s;"
            for name in ("proof", "all")
        )
        memory = max(told["memory"] for told in found)
        print(
            f"{target.name}: worst gap {100 * max(told['gap'] for told in found):.4f} % (allowed {100 * target.gap:g} %); {words}"
            f" {memory:.0f} MB; within {target.seconds:g} s by proof {met}, with all {met_all} of {len(found)}",
            flush=True,
        )


def _others(told: dict[str, Any]) -> str:
    """Money and ties after another objective, each with its gap."""
    return "  " + ", ".join(f"{name} {100 * gap:.3f} %" for name, gap in told.get("gaps", {}).items() if name != "order")


def cases(names: Sequence[str]) -> list[Target]:
    """Targets of the cases named, `GPUSxMODELS:FIRST-LAST`, or `GPUSxMODELS@KEEP:FIRST-LAST`, or `GPUSxMODELS/OBJECTIVE:FIRST-LAST`."""
    found = []
    for name in names:
        fleet, _, seeds = name.partition(":")
        fleet, _, objective = fleet.partition("/")
        fleet, _, keep = fleet.partition("@")
        gpus, models = map(int, fleet.split("x"))
        first, _, last = (seeds or "1").partition("-")
        row = next(
            (target for target in TARGETS if (target.gpus, target.models, target.keep) == (gpus, models, float(keep or 0))),
            Target(gpus, models, range(1), 0.0, 10.0, keep=float(keep or 0)),
        )
        row = row._replace(objective=objective or row.objective)
        found.append(row._replace(seeds=range(int(first), int(last or first) + 1)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--whole", action="store_true", help="problem file to audited plan")
    for way in ("one", "whole"):
        parser.add_argument(f"--{way}-here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    targets = cases(arguments.cases) or list(TARGETS)
    if arguments.one_here or arguments.whole_here:
        (target,) = targets
        fleet = (target.gpus, target.models, target.seeds[0])
        print(json.dumps(one(*fleet, target.keep, target.objective) if arguments.one_here else whole(*fleet)))
    elif arguments.whole:
        for target in targets:
            for seed in target.seeds:
                told = apart("whole", target, seed)
                told["gap"] = "none" if told["gap"] is None else f"{100 * told['gap']:.4f} %"
                words = "  ".join(f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}" for name, value in told.items())
                print(f"{target.gpus} x {target.models} seed {seed}: {words}", flush=True)
    else:
        table(targets)


if __name__ == "__main__":
    main()
