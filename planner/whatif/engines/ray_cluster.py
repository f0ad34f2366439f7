"""A Ray cluster, or Ray on this machine."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from typing import Any

from planner.diagnostics import Diagnostic, PlannerError
from planner.whatif.engines import Work
from planner.whatif.engines.worker import MOST_DEATHS, died, solve_here
from planner.whatif.results import Solved

SECONDS_TO_ANSWER = 10.0


def ray_cluster(work: Work, address: str | None, jobs: int | None) -> Iterator[tuple[str, Solved]]:
    """Solve the work as Ray tasks on the cluster at `address` (None = Ray on this machine, with `jobs` workers).

    Ray itself tries a task again when its worker or its node dies; one that Ray gives up several times is given up here too. The workers need
    the same version of the planner.

    Raises
    ------
    PlannerError
        EXTRA_MISSING when Ray is not installed, CLUSTER_NOT_REACHED when nothing answers at the address.
    """
    try:
        import ray
    except ImportError:
        hint = "install it: pip install 'llm-deployment-planner[ray]', or use --engine local"
        raise PlannerError([Diagnostic("EXTRA_MISSING", "--engine ray needs Ray, which is not installed", hint)]) from None

    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address, jobs)
    try:
        yield from _tasks(ray, work)
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None, jobs: int | None) -> None:
    try:
        if address is None:
            ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False, logging_level="error")
        else:
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        hint = "start a cluster with `ray start --head` and name its address, or leave --address out to use this machine"
        raise PlannerError([Diagnostic("CLUSTER_NOT_REACHED", f"no Ray cluster at {address}: {reason}", hint)]) from None


def _knock(address: str) -> None:
    """Refuse an address where nobody listens; Ray would try it for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()


def _tasks(ray: Any, work: Work) -> Iterator[tuple[str, Solved]]:
    solve = ray.remote(max_retries=MOST_DEATHS)(solve_here)
    window = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: list[str] = list(work)[::-1]
    running: dict[Any, str] = {}
    deaths: Counter[str] = Counter()
    while waiting or running:
        while waiting and len(running) < window:
            key = waiting.pop()
            running[solve.remote(work[key]())] = key
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            key = running.pop(reference)
            try:
                answer = ray.get(reference)
            except ray.exceptions.RayError:
                deaths[key] += 1
                if deaths[key] < MOST_DEATHS:
                    waiting.append(key)
                    continue
                answer = died(work[key]())
            yield key, answer
