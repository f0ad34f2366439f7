"""The store keeps what is finished through torn lines, damage, a full disk and two sweeps at once."""

from __future__ import annotations

import errno
import os
import random

import pytest

from planner.diagnostics import PlannerError
from planner.plan.diff import Snapshot
from planner.whatif.results import Solved
from planner.whatif.store import HEADER, Store, line_of, read_line


def solved(number: int = 0) -> Solved:
    plan = Snapshot(problem="p", status="infeasible", cost_per_hour=None, currency="USD", gpus=number, replicas=())
    return Solved(
        problem_sha256=f"{number:064x}",
        status="infeasible",
        stopped_by=None,
        objective=None,
        gpus_total=number,
        deployments=(),
        misses=(),
        diagnostics=(),
        plan=plan,
    )


def filled(path, count=5):
    with Store(path) as store:
        for number in range(count):
            store.add(f"key-{number}", solved(number))
    return path.read_bytes()


def codes(caught) -> list[str]:
    return [item.code for item in caught.value.diagnostics]


def test_answers_come_back(tmp_path):
    path = tmp_path / "store"
    filled(path)
    with Store(path) as store:
        assert len(store) == 5
        assert store.get("key-3") == solved(3)
        assert store.get("key-9") is None
        assert store.fresh == 0


def test_the_same_key_is_one_answer(tmp_path):
    path = tmp_path / "store"
    with Store(path) as store:
        store.add("key", solved(1))
        store.add("key", solved(1))
        assert (len(store), store.fresh) == (1, 1)
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_cut_off_only_whole_answers_count(tmp_path, seed):
    path = tmp_path / "store"
    whole = filled(path)
    end = random.Random(seed).randrange(len(whole))
    path.write_bytes(whole[:end])
    finished = max(0, whole[:end].count(b"\n") - 1)
    with Store(path) as store:
        assert len(store) == finished
        store.add("after", solved(9))
    with Store(path) as store:
        assert len(store) == finished + 1
        assert store.damaged == 0
        assert store.get("after") == solved(9)


def test_a_damaged_line_is_skipped_and_counted(tmp_path):
    path = tmp_path / "store"
    lines = filled(path).splitlines(keepends=True)
    lines[2] = lines[2].replace(b"infeasible", b"infeasibel", 1)
    path.write_bytes(b"".join(lines))
    with Store(path) as store:
        assert (len(store), store.damaged) == (4, 1)


def test_a_file_that_is_no_store_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(PlannerError) as caught:
        Store(path).__enter__()
    assert codes(caught) == ["STORE_NOT_READABLE"]
    assert path.read_text() == "my notes\n"


def test_two_sweeps_do_not_write_one_store(tmp_path):
    path = tmp_path / "store"
    with Store(path), pytest.raises(PlannerError) as caught:
        Store(path).__enter__()
    assert codes(caught) == ["STORE_IN_USE"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(PlannerError) as caught:
        Store(tmp_path / "nowhere" / "store").__enter__()
    assert codes(caught) == ["STORE_NOT_WRITABLE"]


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path, monkeypatch):
    path = tmp_path / "store"
    filled(path)
    write = os.pwrite

    def full(descriptor, data, offset):
        if len(data) > 40:
            return write(descriptor, data[:40], offset)
        raise OSError(errno.ENOSPC, "No space left on device")

    with Store(path) as store:
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(PlannerError) as caught:
            store.add("late", solved(7))
        assert codes(caught) == ["STORE_NOT_WRITABLE"]
        assert "No space left" in str(caught.value)
        assert store.get("late") == solved(7)
        monkeypatch.setattr(os, "pwrite", write)
        store.add("later", solved(8))
    with Store(path) as store:
        assert len(store) == 6
        assert store.damaged == 0
        assert "late" not in store


def test_lines_tell_when_they_are_not_whole():
    line = line_of("key", solved(1))
    assert read_line(line) == ("key", solved(1))
    assert read_line(line[:-1]) is None
    assert read_line(line[:30] + b"x" + line[31:]) is None
    assert read_line(HEADER) is None
