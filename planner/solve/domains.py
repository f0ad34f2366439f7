"""Failure domains of the nodes as numbers, for the kinds that a problem's rules name, and the GPUs that a deployment may use as one more kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from planner.problem.named_gpus import usable_gpus
from planner.solve.instance import BoolArray, IntArray

if TYPE_CHECKING:
    from planner.problem.documents import Problem
    from planner.topology.fabric import Fabric

PINNED = "pinned "
FORBIDDEN = "allowed "
"""Beginnings of the names of kinds that tell usable GPUs from others; no failure domain of a topology is named so and asked for."""


def allowed_gpus(problem: Problem, fabric: Fabric) -> dict[str, BoolArray]:
    """GPUs [G] that each deployment with `pin` or `forbid` may use, by the name of the kind that tells them from the others."""
    found: dict[str, BoolArray] = {}
    for deployment in problem.deployments:
        if deployment.pin is not None or deployment.forbid is not None:
            kind = FORBIDDEN if deployment.pin is None else PINNED
            found[kind + deployment.name] = usable_gpus(deployment, fabric)[0]
    return found


class DomainNumbers:
    """Numbers of the failure domains of a fabric, the same in all pools; counted from 0 in order of first use."""

    def __init__(self, fabric: Fabric, kinds: Iterable[str], masks: Mapping[str, BoolArray] | None = None) -> None:
        self.fabric, self.kinds, self.masks = fabric, tuple(kinds), dict(masks or {})
        self._numbers: dict[str, dict[str, int]] = {kind: {} for kind in self.kinds if kind not in self.masks}

    def parts(self, scope: int) -> list[list[int]]:
        """Free GPUs of a scope that lie in one node and are alike in who may use them, as positions in the scope's own order."""
        found: dict[tuple[str, tuple[bool, ...]], list[int]] = {}
        for position, gpu in enumerate(self.fabric.scopes.free_gpus(scope)):
            site = int(self.fabric.inventory.first_gpu[self.fabric.inventory.index[gpu.node]]) + gpu.gpu
            found.setdefault((gpu.node, tuple(bool(mask[site]) for mask in self.masks.values())), []).append(position)
        # Nodes keep their order; inside a node the parts do not matter.
        return list(found.values())

    def arranged(self, scopes: IntArray) -> dict[int, tuple[int, ...]]:
        """Order of the free GPUs of the scopes, by position in `scopes`, where the parts of a node are not runs of GPUs as they come."""
        found = {}
        for number, scope in enumerate(scopes.tolist()):
            parts = self.parts(scope)
            if len(parts) > len({gpu.node for gpu in self.fabric.scopes.free_gpus(scope)}):
                found[number] = tuple(position for part in parts for position in part)
        return found

    def of_scopes(self, scopes: IntArray, *, split: bool) -> Mapping[str, tuple[tuple[int, ...], ...]]:
        """Domains of every scope by kind: of each node or part with free GPUs where scopes are `split`, else of the scope's first node."""
        table, inventory = self.fabric.scopes, self.fabric.inventory
        firsts = []
        for scope in scopes.tolist():
            free = table.free_gpus(scope)
            parts = [free[part[0]] for part in self.parts(scope)] if split else list(free[:1])
            firsts.append(parts or list(table.gpus(scope)[:1]))
        found: dict[str, tuple[tuple[int, ...], ...]] = {}
        nodes = {gpu.node for own in firsts for gpu in own}
        named = {node: self.fabric.failure_domains(node) for node in nodes} if self._numbers else {}
        for kind in self.kinds:
            if kind in self.masks:
                sites = [[int(inventory.first_gpu[inventory.index[gpu.node]]) + gpu.gpu for gpu in own] for own in firsts]
                found[kind] = tuple(tuple(int(self.masks[kind][site]) for site in own) for own in sites)
            else:
                numbers = self._numbers[kind]
                found[kind] = tuple(tuple(numbers.setdefault(named[gpu.node][kind], len(numbers)) for gpu in own) for own in firsts)
        return found
