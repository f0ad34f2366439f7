"""Where the replicas of some deployments stand, counted exactly, for rules that speak of failure domains.

A replica that lies in one domain whatever happens is counted by its home: the cell, or the container, that holds it. A replica that
may reach into several gets a slot of its own, with the groups it has in every cell and a switch for every domain it touches; counting
groups alone would not do, as groups of different replicas in a domain cost different replicas or the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.solve.program import add_term


@dataclass
class Slot:
    """One replica that may exist: whether it does, its groups in every cell, its GPUs in every (cell, block) where a cell has several."""

    used: int
    groups: dict[int, int] = field(default_factory=dict)
    gpus: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass
class Home:
    """Replicas of one shape that stay inside `cells`, and their groups in each of them as linear expressions."""

    replicas: int
    groups: dict[int, dict[int, int]]


@dataclass
class Located:
    """Located replicas of one pool, by shape: their homes or slots, and how many touch each failure domain as linear expressions."""

    homes: dict[int, list[Home]] = field(default_factory=dict)
    slots: dict[int, list[Slot]] = field(default_factory=dict)
    touching: dict[tuple[int, str], dict[int, dict[int, int]]] = field(default_factory=dict)

    def groups(self, shape: int) -> dict[int, dict[int, int]]:
        """Groups of a shape in every cell as linear expressions."""
        found: dict[int, dict[int, int]] = {}
        for home in self.homes.get(shape, []):
            found.update(home.groups)
        for slot in self.slots.get(shape, []):
            for cell, variable in slot.groups.items():
                add_term(found.setdefault(cell, {}), variable, 1)
        return found

    def __bool__(self) -> bool:
        return bool(self.homes or self.slots)

    def __contains__(self, shape: int) -> bool:
        return shape in self.homes or shape in self.slots
