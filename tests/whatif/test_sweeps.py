"""Sweeps that are killed, resumed, spread over processes and robbed of their workers end with the same answers, each counted once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.cli.app import run
from planner.whatif.engines import processes, worker
from planner.whatif.patching import check_all, open_base
from planner.whatif.scenarios import grid_scenarios, option_scenarios
from planner.whatif.solving import Limits, Unit
from planner.whatif.store import HEADER, Store
from planner.whatif.study import open_study, sweep
from planner.whatif.what_if import Request, respond

GRID = ["--grid", "load=" + ",".join(f"x{1 + step / 10:g}" for step in range(3)), "--grid", "prices=x1,+20%"]


def scenarios(count: int):
    loads = [f"x{1 + step / 1000:g}" for step in range(count // 2)]
    return grid_scenarios([("load", loads), ("prices", ["x1", "+20%"])])


def answers(document) -> dict[str, object]:
    return {item["name"]: (item["answer"], item["difference"]) for item in document["scenarios"]}


def whole(fleet, capsys, *options: str) -> dict[str, object]:
    assert run(["whatif", fleet, *GRID, "--json", "-q", *options]) == 0
    return answers(json.loads(capsys.readouterr().out))


def test_a_stored_sweep_solves_nothing_again(fleet, tmp_path, capsys, monkeypatch):
    store = str(tmp_path / "store")
    first = whole(fleet, capsys, "--store", store, "--jobs", "1")
    monkeypatch.setattr("planner.whatif.engines.serial.solve_unit", None)
    assert whole(fleet, capsys, "--store", store, "--jobs", "1") == first
    assert Path(store).read_bytes().count(b"\n") == 1 + 6


def test_two_names_of_one_problem_are_one_unit(fleet, tmp_path):
    store = tmp_path / "store"
    asked = [*option_scenarios(["load=x2"], []), *option_scenarios(["deployments.*.load=x2"], [])]
    response = respond(Request(fleet, asked, store=store, jobs=1))
    assert store.read_bytes().count(b"\n") == 1 + 1
    first, second = response.document.scenarios
    assert first.answer == second.answer


def test_processes_give_the_answers_of_one_process(fleet, capsys):
    assert whole(fleet, capsys, "--jobs", "2") == whole(fleet, capsys, "--jobs", "1")


def test_a_change_of_the_problem_is_not_answered_from_the_store(fleet, tmp_path, capsys):
    store = str(tmp_path / "store")
    whole(fleet, capsys, "--store", store, "--jobs", "1")
    other = whole(fleet, capsys, "--store", store, "--jobs", "1", "--set", "deployments.tags.workload.request_rate=25/s")
    assert Path(store).read_bytes().count(b"\n") == 1 + 12
    assert other == whole(fleet, capsys, "--jobs", "1", "--set", "deployments.tags.workload.request_rate=25/s")


def command(fleet: str, store: Path, count: int, jobs: int) -> list[str]:
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[4]); from tests.whatif.test_sweeps import scenarios; "
        "from planner.whatif.what_if import Request, respond; "
        "respond(Request(sys.argv[1], scenarios(int(sys.argv[3])), store=Path(sys.argv[2]), jobs=int(sys.argv[5])))"
    )
    return [sys.executable, "-c", code, fleet, str(store), str(count), str(Path(__file__).parents[2]), str(jobs)]


@pytest.mark.parametrize(
    ("count", "kills", "jobs"),
    [pytest.param(12, 2, 1, marks=pytest.mark.thorough), (12, 1, 2), pytest.param(1000, 10, 2, marks=pytest.mark.thorough)],
)
def test_a_sweep_killed_at_random_resumes_and_ends_with_the_same_answers(fleet, tmp_path, count, kills, jobs):
    store, draw = tmp_path / "store", random.Random(count + jobs)
    for _ in range(kills):
        process = subprocess.Popen(
            command(fleet, store, count, jobs), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        before = store.stat().st_size if store.exists() else len(HEADER)
        # Killed once it has stored something, at some moment of what it does then.
        while process.poll() is None and (store.stat().st_size if store.exists() else 0) <= before:
            time.sleep(0.02)
        time.sleep(draw.random() * count / 80)
        process.kill()
        assert process.wait() in {-signal.SIGKILL, 0}
    with Store(store) as opened:
        finished = len(opened)
    assert finished >= 1
    resumed = respond(Request(fleet, scenarios(count), store=store, jobs=jobs))
    fresh = respond(Request(fleet, scenarios(count), jobs=1))
    assert resumed.document == fresh.document
    assert resumed.document.complete
    assert len(resumed.document.scenarios) == count
    keys = [line.split(b" ")[1] for line in store.read_bytes().splitlines()[1:]]
    assert len(keys) == len(set(keys)) == count


def test_an_interrupted_sweep_keeps_what_it_has(fleet, tmp_path, capsys):
    store = tmp_path / "store"
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "whatif", fleet, *GRID, "--json", "--store", str(store), "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and (not store.exists() or store.read_bytes().count(b"\n") < 2):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    document = json.loads(out)
    stored = store.read_bytes().count(b"\n") - 1
    assert stored >= 1
    if process.returncode != 0:
        assert process.returncode == 130
        assert document["complete"] is False
        assert "goes on from there" in err
    assert len(document["scenarios"]) == stored
    assert whole(fleet, capsys, "--store", str(store), "--jobs", "1") == whole(fleet, capsys, "--jobs", "1")


def test_a_full_disk_tells_what_is_safe_and_shows_what_is_finished(fleet, tmp_path, capsys, monkeypatch):
    store, write = tmp_path / "store", os.pwrite
    left = [6_000]

    def nearly_full(descriptor, data, offset):
        if left[0] <= 0:
            raise OSError(28, "No space left on device")
        done = write(descriptor, data[: left[0]], offset)
        left[0] -= done
        return done

    monkeypatch.setattr(os, "pwrite", nearly_full)
    assert run(["whatif", fleet, *GRID, "--json", "-q", "--store", str(store), "--jobs", "1"]) == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert "STORE_NOT_WRITABLE" in captured.err
    assert document["complete"] is False
    monkeypatch.setattr(os, "pwrite", write)
    stored = store.read_bytes().count(b"\n") - 1
    assert 0 < stored < 6
    assert len(document["scenarios"]) == stored + 1
    finished = whole(fleet, capsys, "--store", str(store), "--jobs", "1")
    assert {name: finished[name] for name in answers(document)} == answers(document)
    assert store.read_bytes().count(b"\n") == 1 + 6


class Deadly(Unit):
    """A unit that takes the process it reaches with it: the first time (`once`) or every time (`always`)."""

    def __reduce__(self):
        return arrive, (self.key, self.loaded, self.limits, self.before, os.environ["PLANNER_TEST_MARKER"])


def by_value():
    """The pickling module of joblib, which used to come inside it."""
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return cloudpickle


def arrive(key, loaded, limits, before, path):
    marker = Path(path)
    if marker.name == "always" or not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Unit(key, loaded, limits, before)


@pytest.mark.parametrize("marker", ["once", pytest.param("always", marks=pytest.mark.thorough)])
def test_a_worker_that_dies_loses_nothing(fleet, tmp_path, monkeypatch, marker):
    monkeypatch.setenv("PLANNER_TEST_MARKER", str(tmp_path / marker))
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)  # this process goes on after the work, and hears Ctrl-C
    pickling = by_value()
    pickling.register_pickle_by_value(sys.modules[__name__])
    base, asked = open_base(fleet), grid_scenarios([("deployments.chat.load", [str(load) for load in range(46, 50)])])
    digests = check_all(base, asked)
    with Store() as store:
        study = open_study(base, store, Limits())
        third = list(asked)[2]

        def make_deadly(study_unit=study.unit):
            unit = study_unit(third)
            return Deadly(unit.key, unit.loaded, unit.limits, unit.before)

        def engine(work):
            return processes.processes({**work, study.key(digests[2]): make_deadly}, 2)

        swept = sweep(study, asked, digests, engine, shown=False)
        expected = sweep(
            open_study(base, Store(), Limits()),
            asked,
            digests,
            lambda work: ((key, worker.solve_here(make())) for key, make in work.items()),
            shown=False,
        )
    pickling.unregister_pickle_by_value(sys.modules[__name__])
    assert (tmp_path / marker).exists()
    statuses = [answer.status for answer in swept.answers]
    if marker == "once":
        assert swept.answers == expected.answers
    else:
        assert statuses.count("failed") == 1
        assert swept.answers[2].diagnostics[0].code == "WORKER_DIED"
        assert [answer for index, answer in enumerate(swept.answers) if index != 2] == [
            answer for index, answer in enumerate(expected.answers) if index != 2
        ]
