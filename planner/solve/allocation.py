"""GPUs of one scope for the groups it was given: whole parts first, neighbours together, in index order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.solve.patterns import parts_hold


class PlacementError(RuntimeError):
    """A plan that the rows allow found no GPUs: a fault of the formulation, never of the input."""


class Asked(NamedTuple):
    """One group to place in a scope: its size, whether it must sit inside one part, and how many GPUs it takes of which blocks where counted."""

    size: int
    within_part: bool
    counted: tuple[tuple[tuple[int, ...], int], ...] = ()


def allocate(blocks: Sequence[Sequence[int]], asked: Sequence[Asked], parts: int = 0) -> tuple[tuple[int, ...], ...]:
    """Give every group its positions in the scope, in the order asked.

    `blocks` are the free positions by part (pair, mesh) or by node; the first `parts` of them are parts. Groups counted by block take theirs first. Groups
    bound to a part take one that holds them, by exact search; then the others, largest first, each the tightest block that holds it alone, or else the fullest blocks.

    Raises
    ------
    PlacementError
        If the scope cannot hold the groups.
    """
    free = [list(block) for block in blocks]
    given: list[tuple[int, ...]] = [() for _ in asked]
    for number, group in enumerate(asked):
        for nodes, need in group.counted:
            given[number] += _take(free, nodes, need)
    order = sorted(range(len(asked)), key=lambda number: (-asked[number].size, number))
    bound = [number for number in order if asked[number].within_part]
    chosen = parts_hold(tuple(len(block) for block in free[:parts]), tuple(asked[number].size for number in bound))
    if chosen is None:
        raise PlacementError("the parts of a scope do not hold the groups that were counted into them")
    for number, block in zip(bound, chosen, strict=True):
        given[number] = tuple(free[block][: asked[number].size])
        del free[block][: asked[number].size]
    for number in order:
        if asked[number].within_part or asked[number].counted:
            continue
        need = asked[number].size
        fitting = [block for block in range(len(free)) if len(free[block]) >= need]
        sources: Sequence[int]
        if fitting:
            sources = [min(fitting, key=lambda block: (len(free[block]), block))]
        else:
            sources = sorted(range(len(free)), key=lambda block: (-len(free[block]), block))
        given[number] = _take(free, sources, need)
    return tuple(tuple(sorted(positions)) for positions in given)


def _take(free: list[list[int]], sources: Sequence[int], need: int) -> tuple[int, ...]:
    """Take positions out of blocks, in the order of the blocks."""
    taken: list[int] = []
    for block in sources:
        part = free[block][: need - len(taken)]
        del free[block][: len(part)]
        taken.extend(part)
    if len(taken) < need:
        raise PlacementError("a scope does not hold the groups that were counted into it")
    return tuple(sorted(taken))
