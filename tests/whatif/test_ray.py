"""Sweeps on Ray give the answers of one process, also when a worker is killed midway."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from planner.whatif.scenarios import grid_scenarios
from planner.whatif.what_if import Request, respond

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]


@pytest.fixture
def cluster():
    """A local Ray of two workers."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield ray
    ray.shutdown()


def scenarios(count: int = 16):
    return grid_scenarios([("load", [f"x{1 + step / 20:g}" for step in range(count // 2)]), ("prices", ["x1", "+20%"])])


def test_the_answers_are_those_of_one_process(fleet, cluster):
    expected = respond(Request(fleet, scenarios(), jobs=1))
    assert respond(Request(fleet, scenarios(), engine="ray")).document == expected.document


def test_a_worker_that_is_killed_midway_loses_nothing(fleet, cluster, tmp_path):
    store = tmp_path / "store"
    killed = []

    @cluster.remote
    def whoami():
        return os.getpid()

    def kill():
        while not store.exists() or store.read_bytes().count(b"\n") < 4:
            time.sleep(0.05)
        pid = cluster.get(whoami.remote())
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    response = respond(Request(fleet, scenarios(), engine="ray", store=store))
    killer.join(timeout=60)
    assert killed
    assert response.document == respond(Request(fleet, scenarios(), jobs=1)).document
    keys = [line.split(b" ")[1] for line in store.read_bytes().splitlines()[1:]]
    assert len(keys) == len(set(keys)) == 16


def test_a_cluster_that_is_not_there_is_told(fleet, capsys):
    from planner.cli.app import run

    assert run(["whatif", fleet, "--patch", "load=x2", "--engine", "ray", "--address", "127.0.0.1:1"]) == 1
    assert "CLUSTER_NOT_REACHED" in capsys.readouterr().err
