"""Same problem, same plan, byte for byte: the command run again and again, alone and beside busy cores.

    python -m benchmarks.same_plan problems/two_node_h100.yaml             ten runs alone, ten with the other cores busy
    python -m benchmarks.same_plan problem.json --runs 3

Every run is a process of its own. What it prints (`planner solve --json`) is compared by its SHA-256; exit codes must agree too.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Keep so many cores busy meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def plan(problem: str) -> tuple[str, int]:
    """SHA-256 of what the command prints for a problem, and its exit code."""
    command = [sys.executable, "-m", "planner", "solve", problem, "--json"]
    done = subprocess.run(command, check=False, capture_output=True, cwd=ROOT)
    return hashlib.sha256(done.stdout).hexdigest(), done.returncode


def plans(problem: str, runs: int, beside: int) -> Counter[tuple[str, int]]:
    """How often each answer came, in `runs` runs beside so many busy loops."""
    with busy(beside):
        return Counter(plan(problem) for _ in range(runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    differ = False
    for problem in arguments.problems:
        path = str(Path(problem).resolve())
        found: Counter[tuple[str, int]] = Counter()
        for beside in (0, max(1, (os.cpu_count() or 1) - 1)):
            now = plans(path, arguments.runs, beside)
            found += now
            answers = ", ".join(f"{digest[:12]} (exit {code}) {times} times" for (digest, code), times in sorted(now.items()))
            print(f"{problem}, {arguments.runs} runs beside {beside} busy loops: {answers}", flush=True)
        differ = differ or len(found) > 1
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
