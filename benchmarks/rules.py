"""Rules at fleet size: what one rule costs beside the same problem without it, on catalog fleets.

    python -m benchmarks.rules                                   every rule on 1,024 GPUs with 5 and with 20 deployments
    python -m benchmarks.rules 1024x5:2 --rules "pin;current"  some rules on GPUs x models with a seed
    python -m benchmarks.rules 1024x5:2 --limit 20               with a time limit [s]

Every case runs in a process of its own. Times are CPU seconds (user and system): `menu` without the solver, `solve` from the question to placed replicas. `least` is
the same time without the rule. Every plan is audited; `faults` counts what the audit found.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fleet_problem import problem

ROOT = Path(__file__).parents[1]
CASES = ("1024x5:2", "1024x20:4")
LIMITED = {"h100-sxm-80gb": 0.5, "a100-sxm-80gb": 0.8}
"""GPU types that a budget limits, and how much of what the plan without it uses is left."""

Document = dict[str, Any]


def _each(document: Document, keys: Document, every: int = 1) -> None:
    for deployment in document["deployments"][::every]:
        deployment.update(keys)


def _buckets(document: Document, *parts: tuple[float, int]) -> None:
    """Split every load into buckets: factors of its lengths, with shares in per cent."""
    for deployment in document["deployments"]:
        workload = deployment["workload"]
        lengths = {name: workload.pop(name) for name in ("prompt_tokens", "output_tokens")}
        workload["buckets"] = [
            {"name": f"times-{factor}", **{name: int(tokens * factor) for name, tokens in lengths.items()}, "share": f"{share}%"}
            for factor, share in parts
        ]


def _billed(document: Document) -> None:
    for nodes in document["topology"]["nodes"]:
        nodes["billing"] = "node"


def _pinned(document: Document, every: int) -> None:
    """Leave some deployments two of three leaves each."""
    names = [nodes["name"] for nodes in document["topology"]["nodes"]]
    for number, deployment in enumerate(document["deployments"]):
        if number % every == 0:
            deployment["pin"] = [name for place, name in enumerate(names) if (place + number) % 3]


def _scaled(document: Document, factors: Sequence[float]) -> None:
    draw = random.Random(1)
    for deployment in document["deployments"]:
        workload = deployment["workload"]
        workload["request_rate"] = f"{float(workload['request_rate'].removesuffix('/s')) * draw.choice(factors):.3f}/s"


def _more(document: Document) -> None:
    """Ask half as much again, in three levels of importance, and let what does not fit go unserved."""
    _scaled(document, (1.5,))
    for number, deployment in enumerate(document["deployments"]):
        deployment.update(priority=number % 3, may_go_unserved=True)


RULES: dict[str, Callable[[Document], None]] = {
    "none": lambda _: None,
    "replicas": lambda document: _each(document, {"replicas": {"min": 4, "max": 40}}),
    "few replicas": lambda document: _each(document, {"replicas": {"max": 12}}),
    "one shape": lambda document: _each(document, {"replicas": {"one_shape": True}}),
    "degrees": lambda document: _each(document, {"parallelism": {"tp": [2, 4, 8], "pp": [1, 2]}}),
    "nvlink": lambda document: _each(document, {"require_nvlink": True}),
    "billing": _billed,
    "budget": lambda document: document.update(budget={"gpus": document["limits"]}),
    "two buckets": lambda document: _buckets(document, (0.5, 70), (2, 30)),
    "three buckets": lambda document: _buckets(document, (0.5, 50), (1, 30), (2, 20)),
    "spread nodes, 1": lambda document: _each(document, {"spread": "node"}),
    "spread nodes, 2": lambda document: _each(document, {"spread": {"over": "node", "most": 2}}),
    "spread leaves, 2": lambda document: _each(document, {"spread": {"over": "leaf", "most": 2}}),
    "spread leaves, 8": lambda document: _each(document, {"spread": {"over": "leaf", "most": 8}}),
    "spread, pin": lambda document: (_each(document, {"spread": "node"}), _pinned(document, every=4))[0],
    "spread, billing": lambda document: (_each(document, {"spread": "node"}), _billed(document))[0],
    "spread, current": lambda document: (_each(document, {"spread": "node"}), _scaled(document, (0.9, 1.1)))[0],
    "spares": lambda document: _each(document, {"spares": 1}),
    "some spares": lambda document: _each(document, {"spares": 1}, every=4),
    "unserved": lambda document: _each(document, {"may_go_unserved": True}),
    "overload": _more,
    "pin": lambda document: _pinned(document, every=4),
    "pin all": lambda document: _pinned(document, every=1),
    "current": lambda document: _scaled(document, (0.9, 1.1)),
    "current, billing": lambda document: (_scaled(document, (0.9, 1.1)), _billed(document))[0],
}
"""Changes of a problem document by the rule that they add."""

AFTER = {"budget", "current", "current, billing", "spread, current"}
"""Rules that speak of the plan without them."""


def one(gpus: int, models: int, seed: int, rule: str, limit: float | None) -> Document:
    """Solve, place and audit one problem under one rule."""
    import ortools.linear_solver.pywraplp
    import ortools.sat.python.cp_model_helper  # noqa: F401

    from planner.answer.document import plan_document
    from planner.audit.audit import audit
    from planner.candidates.menu import build_menu
    from planner.diagnostics import errors
    from planner.problem.load import load_problem
    from planner.solve import SolveOptions, search, solve

    sizes: list[int] = []
    build = search.build

    def counted(*arguments: Any) -> Any:
        model = build(*arguments)
        sizes.append(len(model.program.lower))
        return model

    search.build = counted
    document = problem(gpus, models, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"

        def answer(options: SolveOptions) -> tuple[Any, Any, float, float]:
            path.write_text(json.dumps(document), encoding="utf-8")
            loaded = load_problem(str(path))
            begun = time.process_time()
            menu = build_menu(loaded)
            chosen = time.process_time()
            outcome = solve(loaded.problem, loaded.fabric, menu.shapes, menu.loads, options, menu.running)
            done = time.process_time()
            plan = plan_document(loaded, menu, outcome, ())
            return loaded, (outcome, plan), chosen - begun, done - chosen

        if rule in AFTER:
            _, (_, before), _, _ = answer(SolveOptions())
            (Path(folder) / "running.json").write_text(before.model_dump_json(), encoding="utf-8")
            if rule == "budget":
                used = [rank.gpu for one in before.deployments for replica in one.replicas for rank in replica.ranks]
                assert used
                types = [(replica.shape.gpu, len(replica.ranks)) for one in before.deployments for replica in one.replicas]
                document["limits"] = {gpu: int(part * sum(count for name, count in types if name == gpu)) for gpu, part in LIMITED.items()}
            else:
                document["current"] = {"plan": "running.json", "price_per_move": "$3", "over": "24h"}
        RULES[rule](document)
        document.pop("limits", None)
        sizes.clear()
        begun = time.monotonic()
        loaded, (outcome, plan), menu, solved = answer(SolveOptions(time_limit=limit, explain=False))
        wall = time.monotonic() - begun
        found = errors(audit(loaded.problem, loaded.fabric, loaded.architectures, plan, loaded.current)) if outcome.replicas else ()
    objective = outcome.objective
    return {
        "status": outcome.status.value,
        "stopped": outcome.stopped_by,
        "value": None if objective is None else objective.value,
        "gap": None if objective is None else objective.gap,
        "variables": max(sizes, default=0),
        "menu": menu,
        "solve": solved,
        "wall": wall,
        "faults": len(found),
    }


def apart(case: str, rule: str, limit: float | None) -> Document:
    """Run one case in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.rules",
        case,
        "--rules",
        rule,
        "--here",
        *([] if limit is None else ["--limit", str(limit)]),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: Document = json.loads(done.stdout.splitlines()[-1])
    return found


def parsed(case: str) -> tuple[int, int, int]:
    """GPUs, models and seed of `GPUSxMODELS:SEED`."""
    fleet, _, seed = case.partition(":")
    gpus, models = fleet.split("x")
    return int(gpus), int(models), int(seed or 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--rules", default=";".join(RULES), help="names separated by semicolons")
    parser.add_argument("--limit", type=float, help="time limit of every solve [s]")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rules = [name.strip() for name in arguments.rules.split(";")]
    for case in arguments.cases:
        if arguments.here:
            print(json.dumps(one(*parsed(case), rules[0], arguments.limit)))
            return
        for rule in rules:
            told = apart(case, rule, arguments.limit)
            gap = "no plan" if told["gap"] is None else f"gap {100 * told['gap']:.4f} %"
            print(
                f"{case:>12}  {rule:<16} {told['status']:>10}  {gap:<14} {told['value'] or 0:10.2f}  variables {told['variables']:>7}"
                f"  menu {told['menu']:5.1f} s  solve {told['solve']:6.1f} s  (whole {told['wall']:.0f} s by the clock)  faults {told['faults']}"
                + (f"  stopped by {told['stopped']}" if told["stopped"] else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
