"""From the values of a solution to the cell, and the GPUs by block, of every group of a replica counted by failure domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.solve.layout import PoolLayout
from planner.solve.located import Located, Slot
from planner.solve.program import evaluate

Counted = tuple[tuple[tuple[int, ...], int], ...]
"""GPUs of one group by the nodes of its scope that they lie on; empty where that is not counted."""

GroupPlace = tuple[int, Counted]
"""Cell of a group, and its GPUs by block."""


def located_replicas(located: Located, layout: PoolLayout, shape: int, values: Sequence[int]) -> Iterator[list[GroupPlace]]:
    """Places of the groups of every replica of a shape, replica by replica."""
    for home in located.homes.get(shape, []):
        replicas = values[home.replicas]
        if replicas:
            cells = [cell for cell, terms in home.groups.items() for _ in range(evaluate(terms, values))]
            each = len(cells) // replicas
            for number in range(replicas):
                yield [(cell, ()) for cell in cells[number * each : (number + 1) * each]]
    for slot in located.slots.get(shape, []):
        if values[slot.used]:
            yield list(_slot_groups(slot, layout, values))


def _slot_groups(slot: Slot, layout: PoolLayout, values: Sequence[int]) -> Iterator[GroupPlace]:
    for cell, variable in slot.groups.items():
        groups = values[variable]
        blocks = layout.cells[cell].blocks
        gpus = [(blocks[number].nodes, values[taken]) for (owner, number), taken in slot.gpus.items() if owner == cell]
        if not gpus:
            yield from ((cell, ()) for _ in range(groups))
            continue
        size = sum(count for _, count in gpus) // max(groups, 1)
        for _ in range(groups):
            # The GPUs counted into the scope, handed out block after block.
            counted, need = [], size
            for position, (nodes, count) in enumerate(gpus):
                part = min(count, need)
                if part:
                    counted.append((nodes, part))
                    gpus[position] = (nodes, count - part)
                    need -= part
            yield cell, tuple(counted)
