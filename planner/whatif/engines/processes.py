"""Several processes on this machine, through joblib."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from planner.diagnostics import Diagnostic, PlannerError
from planner.whatif.engines import Work
from planner.whatif.engines.worker import MOST_DEATHS, died, solve_here
from planner.whatif.results import Solved
from planner.whatif.solving import Unit


def processes(work: Work, jobs: int) -> Iterator[tuple[str, Solved]]:
    """Solve the work in `jobs` processes.

    When a process dies, what was in flight is solved again. A unit that was in flight several times when that happened is tried alone, and given
    up with an answer that says so when it takes its process with it once more.

    Raises
    ------
    PlannerError
        EXTRA_MISSING when joblib is not installed.
    """
    try:
        from joblib import Parallel, delayed
    except ImportError:
        hint = "install it: pip install 'llm-deployment-planner[sweep]', or use --jobs 1"
        raise PlannerError([Diagnostic("EXTRA_MISSING", "several processes need joblib, which is not installed", hint)]) from None

    def answers(keys: list[str]) -> Iterator[tuple[str, Solved]]:
        # With one process joblib would solve in this one, which must outlive whatever the work does.
        pool = Parallel(n_jobs=max(jobs, 2), backend="loky", return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
        yield from pool(delayed(_keyed)(key, left[key]()) for key in keys)

    left = dict(work)
    suspected: Counter[str] = Counter()
    while left:
        try:
            for key, answer in answers(list(left)):
                yield key, answer
                del left[key]
        except BrokenProcessPool:
            suspected.update(islice(left, 2 * max(jobs, 2)))
        for key in [key for key, count in suspected.items() if count >= MOST_DEATHS and key in left]:
            try:
                yield from answers([key])
            except BrokenProcessPool:
                yield key, died(left[key]())
            del left[key]


def _keyed(key: str, unit: Unit) -> tuple[str, Solved]:
    return key, solve_here(unit)
