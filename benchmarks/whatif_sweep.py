"""What a scenario of a sweep costs beside a cold `planner solve`: CPU seconds of both, on a fleet of 1,024 GPUs, in one run.

Usage: python benchmarks/whatif_sweep.py [SCENARIOS]. The scenarios are evenly taken from a grid of 1,000 (25 loads, 10 prices, 4 lost nodes).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planner.whatif.engines.serial import serial
from planner.whatif.patching import check_all, open_base
from planner.whatif.scenarios import grid_scenarios
from planner.whatif.solving import Limits
from planner.whatif.store import Store
from planner.whatif.study import open_study, sweep

NICS = {"count": 8, "speed": "400Gb/s"}
NODES = [
    {"name": "h100-[01-32]", "gpu": "h100-sxm-80gb", "leaf": "leaf-1", "price": "$24/h"},
    {"name": "h100-[33-64]", "gpu": "h100-sxm-80gb", "leaf": "leaf-2", "price": "$24/h"},
    {"name": "a100-[01-32]", "gpu": "a100-sxm-80gb", "leaf": "leaf-3", "price": "$14/h"},
    {"name": "h200-[01-32]", "gpu": "h200-sxm-141gb", "leaf": "leaf-4", "price": "$32/h"},
]
LOADS = [
    ("chat", "llama-3.1-405b", 2048, 512, {"concurrency": 400}, "60ms"),
    ("code", "qwen3-32b", 2048, 256, {"concurrency": 900}, "60ms"),
    ("tags", "llama-3.1-8b", 512, 32, {"request_rate": "200/s"}, "40ms"),
    ("help", "llama-3.1-70b", 1024, 256, {"concurrency": 1500}, "50ms"),
    ("deep", "deepseek-v3", 1024, 512, {"concurrency": 600}, "80ms"),
]
COLD_RUNS = 3


def problem() -> dict[str, object]:
    """Five models on 128 nodes of three types, a few GPUs taken."""
    nodes = [{**node, "gpus": 8, "nics": NICS, "spine": "spine-1"} for node in NODES]
    topology = {
        "name": "fleet",
        "nodes": nodes,
        "fabric": {"kind": "infiniband", "oversubscription": 2},
        "taken": ["h100-02:[0-3]", "h200-07:3"],
    }
    deployments = [
        {"name": name, "model": model, "workload": {"prompt_tokens": prompt, "output_tokens": output, **load}, "slo": {"tpot": tpot}}
        for name, model, prompt, output, load, tpot in LOADS
    ]
    return {"name": "fleet-1024", "topology": topology, "deployments": deployments}


def main() -> None:
    """Print CPU seconds of a cold solve, of a scenario, and their ratio."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        path.write_text(json.dumps(problem()))
        for _ in range(COLD_RUNS):
            subprocess.run([sys.executable, "-m", "planner", "solve", str(path), "-q", "--json"], check=True, stdout=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cold = (used.ru_utime + used.ru_stime) / COLD_RUNS
        base = open_base(str(path))
    loads = [f"x{0.8 + step / 50:.2f}" for step in range(25)]
    prices = [f"x{1 + step / 20:.2f}" for step in range(10)]
    grid = grid_scenarios([("load", loads), ("prices", prices), ("lose", ["h100-05", "h100-40", "a100-07", "h200-09"])])
    chosen = grid[:: max(1, len(grid) // count)][:count]
    started = time.process_time()
    with Store() as store:
        study = open_study(base, store, Limits())
        swept = sweep(study, chosen, check_all(base, chosen), lambda work: serial(work, study.memory), shown=False)
    each = (time.process_time() - started) / len(chosen)
    found = sum(answer is not None and answer.found for answer in swept.answers)
    print(
        f"cold solve {cold:.2f} CPU s, scenario {each:.2f} CPU s (the base plan included), ratio {each / cold:.2f}; {found} of {len(chosen)} have a plan"
    )


if __name__ == "__main__":
    main()
