"""Whether replicas could keep apart if they could be split into fractions; where not, a limit that every plan keeps and they break.

With y the replicas of a shape in the domains of a class (domains alike in room), for every class c, size k and deployment m that spreads::

    sum_c y[s,c] >= n_s
    sum_s g_s floor(k_s / k) y[s,c] <= |c| slots[c,k]
    sum_{s of m} max(1, g_s / slots[c,k_s]) y[s,c] <= most_m |c|

Whatever multipliers w, v >= 0 its rows have, every plan keeps::

    sum_s u_s n_s <= sum_{c,k} w[c,k] |c| slots[c,k] + sum_{m,c} v[m,c] most_m |c|,
    u_s = min_c (sum_k w[c,k] g_s floor(k_s / k) + v[m,c] max(1, g_s / slots[c,k_s]))

The multipliers are those of the linear program, rounded to integers, and the limit is worked out from them exactly.

========== ========== =====================================================================
n_s        replicas   replicas of shape s
g_s, k_s   groups, GPUs  groups of one replica, and the size of each
slots[c,k] groups     groups of size k that one domain of class c holds
|c|        domains    domains of the class
most_m     replicas   most replicas of deployment m in one domain
========== ========== =====================================================================

Source: feasibility cuts of J. F. Benders, "Partitioning procedures for solving mixed-variables programming problems" (1962); Farkas' lemma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.solve.instance import Instance, Spread
from planner.solve.spreading.limit import SCALES, SHORT, Limit, limit_of

PLACES = 100_000
"""Most variables of one linear program."""


@dataclass(frozen=True)
class Class:
    """`many` domains alike: `slots` maps a pool to the groups of each of its sizes that one of them holds [sizes]."""

    many: int
    slots: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class Area:
    """Pools whose domains of a `kind` meet, as classes of domains; `sizes` lists the group sizes asked of each pool."""

    kind: str
    sizes: dict[int, tuple[int, ...]]
    classes: tuple[Class, ...]


def areas_of(instance: Instance, kind: str, pools: Sequence[int]) -> tuple[Area, ...]:
    """Sort pools by the domains of a kind that they share; every scope lies in one."""
    return tuple(_area(instance, kind, together) for together in _meeting(instance, kind, pools))


def _meeting(instance: Instance, kind: str, pools: Sequence[int]) -> list[list[int]]:
    """Group pools whose domains of a kind are partly the same."""
    groups: list[tuple[list[int], set[int]]] = []
    for pool in pools:
        own = instance.pools[pool].label(kind)
        assert own is not None
        labels, members = set(own.tolist()), [pool]
        apart = []
        for other, theirs in groups:
            if labels & theirs:
                members, labels = other + members, labels | theirs
            else:
                apart.append((other, theirs))
        groups = [*apart, (members, labels)]
    return [sorted(members) for members, _ in groups]


def _area(instance: Instance, kind: str, pools: Sequence[int]) -> Area:
    sizes = {pool: tuple(np.unique(instance.shapes.size[instance.fresh_of_pool(pool)]).tolist()) for pool in pools}
    labels = {pool: instance.pools[pool].label(kind) for pool in pools}
    most = max(int(own.max()) for own in labels.values() if own is not None) + 1
    columns: list[NDArray[np.int64]] = []
    for pool in pools:
        free, own = instance.pools[pool].free, labels[pool]
        assert own is not None
        columns.extend(np.bincount(own, weights=free // size, minlength=most).astype(np.int64) for size in sizes[pool])
    rows, many = np.unique(np.array(columns).T, axis=0, return_counts=True)
    classes = []
    for row, number in zip(rows.tolist(), many.tolist(), strict=True):
        if any(row):
            slots, start = {}, 0
            for pool in pools:
                slots[pool] = tuple(row[start : start + len(sizes[pool])])
                start += len(sizes[pool])
            classes.append(Class(number, slots))
    return Area(kind, sizes, tuple(classes))


class Split:
    """Replicas of one area, split into fractions; those that spread over another kind of domain count as free of it."""

    def __init__(self, instance: Instance, area: Area) -> None:
        self.instance, self.area = instance, area
        columns = instance.shapes
        # Replicas that stay are listed as one group, wherever their groups stand: they are left out, and GPUs kept free, which may be anywhere.
        self.shapes = np.flatnonzero(np.isin(columns.pool, list(area.sizes)) & ~instance.kept & ~instance.spare).tolist()
        self.spread: list[Spread | None] = [
            spread if (spread := instance.rules_of(number).spread) is not None and spread.kind == area.kind else None
            for number in range(instance.deployments)
        ]
        self.takes = {
            shape: tuple(int(columns.groups[shape]) * (int(columns.size[shape]) // size) for size in area.sizes[int(columns.pool[shape])])
            for shape in self.shapes
        }

    def held(self, shape: int, number: int) -> int:
        """Groups of a shape that one domain of a class holds."""
        columns = self.instance.shapes
        pool = int(columns.pool[shape])
        return self.area.classes[number].slots[pool][self.area.sizes[pool].index(int(columns.size[shape]))]

    def broken(self, counts: Sequence[int]) -> Limit | None:
        """Find the limit that the counts break by most GPUs; None where they could be split."""
        from ortools.linear_solver import pywraplp

        used = [shape for shape in self.shapes if counts[shape]]
        if len(used) * len(self.area.classes) > PLACES:
            return None
        solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        room: dict[tuple[int, int, int], Any] = {}
        caps: dict[tuple[int, int], Any] = {}
        solver.Objective().SetMinimization()
        for shape in used:
            self._shape(solver, shape, counts[shape], room, caps)
        if solver.Solve() != solver.OPTIMAL or solver.Objective().Value() <= SHORT:
            return None
        for scale in SCALES:
            limit = self._limit(
                {key: round(max(0.0, -row.dual_value()) * scale) for key, row in room.items()},
                {key: round(max(0.0, -row.dual_value()) * scale) for key, row in caps.items()},
            )
            if sum(int(limit.weight[shape]) * counts[shape] for shape in used) > limit.most:
                return limit
        return None

    def _shape(self, solver: Any, shape: int, count: int, room: dict[tuple[int, int, int], Any], caps: dict[tuple[int, int], Any]) -> None:
        """Write the places of one shape."""
        columns = self.instance.shapes
        pool, deployment, groups = int(columns.pool[shape]), int(columns.deployment[shape]), int(columns.groups[shape])
        demand = solver.Constraint(float(count), solver.infinity())
        short = solver.NumVar(0.0, solver.infinity(), "")
        demand.SetCoefficient(short, 1.0)
        solver.Objective().SetCoefficient(short, float(columns.gpus[shape]))
        spread = self.spread[deployment]
        for number, own in enumerate(self.area.classes):
            held = self.held(shape, number)
            if not held:
                continue
            variable = solver.NumVar(0.0, solver.infinity(), "")
            demand.SetCoefficient(variable, 1.0)
            for position, takes in enumerate(self.takes[shape]):
                if takes:
                    key = pool, number, position
                    if key not in room:
                        room[key] = solver.Constraint(-solver.infinity(), float(own.many * own.slots[pool][position]))
                    room[key].SetCoefficient(variable, float(takes))
            if spread is not None:
                if (deployment, number) not in caps:
                    caps[deployment, number] = solver.Constraint(-solver.infinity(), float(spread.most * own.many))
                caps[deployment, number].SetCoefficient(variable, max(1.0, groups / held))

    def _limit(self, room: dict[tuple[int, int, int], int], caps: dict[tuple[int, int], int]) -> Limit:
        """Work out the limit of given multipliers, exactly."""
        columns = self.instance.shapes
        most = 0
        for (pool, number, position), times in room.items():
            own = self.area.classes[number]
            most += times * own.many * own.slots[pool][position]
        for (deployment, number), times in caps.items():
            spread = self.spread[deployment]
            most += times * (0 if spread is None else spread.most) * self.area.classes[number].many
        weight = np.zeros(len(columns), dtype=np.int64)
        for pool, sizes in self.area.sizes.items():
            mine = self.instance.fresh_of_pool(pool)
            mine = mine[~self.instance.spare[mine]]
            if not len(mine):
                continue
            slots = np.array([own.slots[pool] for own in self.area.classes], dtype=np.int64)
            each = np.array([[room.get((pool, number, position), 0) for position in range(len(sizes))] for number in range(len(slots))])
            groups = columns.groups[mine][:, None]
            takes = groups * (columns.size[mine][:, None] // np.array(sizes, dtype=np.int64))
            held = slots[:, np.searchsorted(sizes, columns.size[mine])].T
            capped = np.array(
                [[caps.get((deployment, number), 0) for number in range(len(slots))] for deployment in range(self.instance.deployments)],
                dtype=np.int64,
            )[columns.deployment[mine]]
            cost = takes @ each.T.astype(np.int64) + capped * np.maximum(held, groups) // np.maximum(held, 1)
            # What no domain holds is in no plan.
            weight[mine] = np.where(held > 0, cost, np.iinfo(np.int64).max).min(axis=1)
            weight[mine[(held == 0).all(axis=1)]] = 0
        return limit_of(weight, most, frozenset(deployment for (deployment, _), times in caps.items() if times))
