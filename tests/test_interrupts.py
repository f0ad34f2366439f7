"""Ctrl-C is noted while a plan is made, stops foreign code, and is raised again afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from planner.answer.answering import Options, answer
from planner.interrupts import Interrupts, asked, run
from planner.plan.outcome import Status
from planner.solve import Progress, SolveOptions
from planner.solve.objectives import decide
from planner.solve.rules import RULES
from tests.solve.fleets import ShapeRow, free_pool, instance_of

ROOT = Path(__file__).parents[1]
SHIPPED = str(ROOT / "problems/two_node_h100.yaml")


@pytest.fixture
def holder():
    found = Interrupts()
    found.hold()
    yield found
    found.release()


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_noted_and_the_second_raised(holder):
    press()
    assert asked()
    with pytest.raises(KeyboardInterrupt):
        press()
    holder.release()
    assert not asked()
    with pytest.raises(KeyboardInterrupt):
        press()


def test_foreign_code_is_stopped(holder):
    """The work waits until it is told to stop; the answer and what goes wrong come back to the caller."""
    told = threading.Event()
    started = threading.Event()

    def work() -> str:
        started.set()
        press()
        told.wait()
        return "stopped"

    assert run(work, told.set) == "stopped"
    assert started.is_set()
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 // 0, told.set)


def test_another_holder_changes_nothing(holder):
    other = Interrupts()
    other.hold()
    other.release()
    press()
    assert holder.asked
    assert not other.asked


def test_a_search_interrupted_before_it_began_still_gives_a_plan(holder):
    instance = instance_of([ShapeRow(4), ShapeRow(8, capacity=2)], [2], [free_pool(8, 8)])
    press()
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.status is Status.FEASIBLE
    assert decision.stopped_by == "interrupt"
    assert [stage.name for stage in decision.stages] == ["cost"]


@pytest.mark.parametrize("phase", ["solving", "writing the plan down", "auditing"])
def test_from_the_search_on_there_is_an_audited_plan(phase):
    def reached(name: str) -> None:
        if name == phase:
            press()

    found = answer(SHIPPED, Options(phase=reached))
    assert found.outcome.interrupted
    assert found.audit_errors == ()
    assert found.plan.deployments
    assert found.plan.stopped_by == ("interrupt" if phase == "solving" else None)


@pytest.mark.parametrize("phase", ["reading", "evaluating shapes"])
def test_before_it_there_is_nothing_to_keep(phase):
    def reached(name: str) -> None:
        if name == phase:
            press()

    with pytest.raises(KeyboardInterrupt):
        answer(SHIPPED, Options(phase=reached))


def test_in_a_tie_the_proof_stays():
    """Interrupted while ties are broken: the cost is proved, and the plan says that it was interrupted."""

    def reached(progress: Progress) -> None:
        if progress.stage == "token_time" and not asked():
            press()

    found = answer(SHIPPED, Options(progress=reached))
    assert found.plan.status == "optimal"
    assert found.outcome.interrupted
    assert found.audit_errors == ()


PRESSING = """
import os, signal, sys
from planner.cli import watching
from planner.cli.app import run
inner = watching.Watch.phase
def phase(self, name):
    inner(self, name)
    if name == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGINT)
watching.Watch.phase = phase
sys.exit(run(["solve", sys.argv[2], "--json"]))
"""


@pytest.mark.parametrize(("phase", "shown"), [("evaluating shapes", False), ("solving", True), ("auditing", True)])
def test_the_command_ends_with_130(phase, shown):
    done = subprocess.run([sys.executable, "-c", PRESSING, phase, SHIPPED], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 130
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.stderr
    assert ('"deployments"' in done.stdout) == shown
