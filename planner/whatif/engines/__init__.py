"""WHERE WORK IS DONE: in this process, in several on this machine, or on a Ray cluster; all give the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from planner.whatif.results import Solved
from planner.whatif.solving import Unit

Work = Mapping[str, Callable[[], Unit]]
"""Units still to be solved by their keys; each is made when its turn comes, so that a long sweep does not hold them all."""

Engine = Callable[[Work], Iterator[tuple[str, Solved]]]
"""Solves all of some work in any order, giving each answer as soon as it is there."""
