"""Failure domains of the nodes as numbers, for the kinds that a problem's rules name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from planner.solve.instance import IntArray

if TYPE_CHECKING:
    from planner.topology.fabric import Fabric


class DomainNumbers:
    """Numbers of the failure domains of a fabric, the same in all pools; counted from 0 in order of first use."""

    def __init__(self, fabric: Fabric, kinds: Iterable[str]) -> None:
        self.fabric, self.kinds = fabric, tuple(kinds)
        self._numbers: dict[str, dict[str, int]] = {kind: {} for kind in self.kinds}

    def of_scopes(self, scopes: IntArray) -> Mapping[str, tuple[tuple[int, ...], ...]]:
        """Domains of the nodes with free GPUs of every scope, by kind; of its first node where nothing is free."""
        table = self.fabric.scopes
        nodes = []
        for scope in scopes.tolist():
            free = tuple(dict.fromkeys(gpu.node for gpu in table.free_gpus(scope))) if len(table.rows(scope)) > 1 else ()
            nodes.append(free or table.nodes(scope)[:1])
        found = {node: self.fabric.failure_domains(node) for own in nodes for node in own} if self.kinds else {}
        return {
            kind: tuple(tuple(numbers.setdefault(found[node][kind], len(numbers)) for node in own) for own in nodes)
            for kind, numbers in self._numbers.items()
        }
