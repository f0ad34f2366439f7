"""Node groups by the name a question gives them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.problem.dotted_paths import element_name
from planner.whatif.patching import Base
from planner.whatif.scenarios import Change
from planner.whatif.short_paths import nodes_of, unknown_path


@dataclass(frozen=True, slots=True)
class Group:
    """A node group (or builder) with the path of its number of nodes (racks of an NVL72 builder), and that number now."""

    name: str
    path: str
    nodes: int

    def change(self, count: int) -> Change:
        """Change to another number of nodes."""
        return Change(f"{self.path}.count", str(count))


def groups_of(base: Base) -> list[Group]:
    """All node groups and builders of a problem's topology."""
    topology = base.data["topology"]
    found = []
    for part in ("nodes", "build"):
        elements = topology.get(part) or []
        for index, element in enumerate(elements):
            name = element_name(elements, index)
            found.append(Group(name, f"{part}.{name}", nodes_of(element, part)))
    return found


def group_named(base: Base, name: str) -> Group:
    """Group of a name, or of its path.

    Raises
    ------
    PlannerError
        UNKNOWN_PATH with the nearest.
    """
    groups = groups_of(base)
    wanted = name.removesuffix(".count")
    for group in groups:
        if wanted in {group.name, group.path}:
            return group
    hint = f"there are {', '.join(group.name for group in groups[:10])}" if groups else "the topology has no node groups"
    raise unknown_path(f"nodes.{wanted.removeprefix('nodes.')}.count", base.data, hint)
