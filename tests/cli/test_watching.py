"""Progress on stderr: lines for those who wait, one live line on a terminal, nothing on stdout."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from planner.cli.app import run
from planner.cli.watching import Watch
from planner.solve import Progress

ROOT = Path(__file__).parents[2]
SHIPPED = str(ROOT / "problems/two_node_h100.yaml")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(**options: bool) -> list[str]:
    stream = io.StringIO()
    watch = Watch(stream, **options)
    watch.phase("solving")
    watch.progress(Progress("cost", None, 20.0, "money/h"))
    watch.progress(Progress("cost", 25.0, 20.0, "money/h"))
    watch.progress(Progress("token_time", 0.5, None, "s"))
    watch.close()
    watch.phase("afterwards")
    return [line.partition(" · ")[2] for line in stream.getvalue().splitlines()]


def test_lines_at_once_where_asked_for():
    expected = ["solving", "cost · bound 20.00/h", "cost · plan 25.00/h · bound 20.00/h · gap 20 %", "shortest time per token · plan 0.5 s"]
    assert lines(verbose=True) == expected
    assert lines(log=True) == expected


def test_nothing_for_what_is_answered_at_once():
    assert lines() == []
    assert lines(quiet=True, verbose=True) == []


def test_who_waits_is_told():
    stream = io.StringIO()
    watch = Watch(stream)
    watch.progress(Progress("cost", 25.0, 25.0, "money/h"))
    watch._begin()
    watch.close()
    assert stream.getvalue().endswith("cost · plan 25.00/h · bound 25.00/h · gap 0 %\n")


def test_a_bound_that_says_nothing_is_not_told():
    stream = io.StringIO()
    watch = Watch(stream, verbose=True)
    watch.progress(Progress("cost", None, 0.0, "money/h"))
    watch.progress(Progress("cost", 25.0, 0.0, "money/h"))
    watch.progress(Progress("unserved", 0.0, 0.0, "of the load"))
    watch.close()
    told = [line.partition(" · ")[2] for line in stream.getvalue().splitlines()]
    assert told == ["cost", "cost · plan 25.00/h", "load unserved · plan 0 of the load · bound 0 of the load · gap 0 %"]


def test_a_live_line_comes_and_goes():
    stream = Terminal()
    watch = Watch(stream)
    watch.progress(Progress("cost", 25.0, 20.0, "money/h"))
    watch._begin()
    watch.close()
    shown = stream.getvalue()
    assert "cost · plan 25.00/h · bound 20.00/h · gap 20 %" in shown
    assert shown.rstrip().endswith("\x1b[2K")


def test_standard_output_is_the_same_however_it_is_watched(capsys):
    def shown(*options: str) -> tuple[str, str]:
        assert run(["solve", SHIPPED, *options]) == 0
        found = capsys.readouterr()
        return found.out, found.err

    plain, silent = shown()
    verbose, told = shown("-v")
    assert plain == verbose
    assert silent == ""
    assert "evaluating shapes" in told
    assert "auditing" in told


def test_the_solvers_own_log_goes_to_stderr():
    done = subprocess.run(
        [sys.executable, "-m", "planner", "solve", SHIPPED, "--json", "--log"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("{")
    assert "CpSolverResponse summary" in done.stderr
