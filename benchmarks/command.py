"""How long the whole command takes, as a multiple of importing the solver, measured in turn in one run.

Usage: python benchmarks/command.py [PROBLEM] [--runs N]. The target for two nodes and one model: at most 1.5 x the time of
`import ortools.sat.python.cp_model`, plus 0.5 s.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORT = [sys.executable, "-c", "import ortools.sat.python.cp_model"]


def seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", nargs="?", default="problems/two_node_h100.yaml")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    solve = [sys.executable, "-m", "planner", "solve", arguments.problem]
    version = [sys.executable, "-m", "planner", "--version"]
    for command in (IMPORT, solve, version):
        seconds(command)  # warm the file cache
    rows = [(seconds(IMPORT), seconds(solve), seconds(version)) for _ in range(arguments.runs)]
    imports, solves, versions = (list(column) for column in zip(*rows, strict=True))
    base = statistics.median(imports)
    whole = statistics.median(solves)
    print(f"import cp_model   median {base:.2f} s  ({min(imports):.2f}-{max(imports):.2f})")
    print(f"planner solve     median {whole:.2f} s  ({min(solves):.2f}-{max(solves):.2f})  {whole / base:.2f} x import")
    print(f"planner --version median {statistics.median(versions):.2f} s")
    allowed = 1.5 * base + 0.5
    print(f"allowed           1.5 x {base:.2f} + 0.5 = {allowed:.2f} s: {'met' if whole <= allowed else 'missed'}")


if __name__ == "__main__":
    main()
