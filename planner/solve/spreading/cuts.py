"""What rules out counts that cannot be placed: limits that every plan keeps, and steps away from what found no place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from planner.solve.instance import Instance
from planner.solve.model import Model
from planner.solve.spreading.limit import Limit
from planner.solve.spreading.places import Places, Sites, all_free


@dataclass(frozen=True)
class Cut:
    """Sum of `weights` of shapes, by source, at most a `limit`, and `opening` more for every scope that is opened, by its (pool, free GPUs)."""

    weights: dict[int, int]
    limit: int
    opening: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def apply(self, model: Model) -> None:
        """Write the row of a cut."""
        sources = model.instance.source.tolist()
        row = {model.count[shape]: self.weights[source] for shape, source in enumerate(sources) if source in self.weights}
        limit = self.limit
        for pool in model.pools if self.opening else ():
            number = pool.layout.pool
            for key, variable in pool.opened.items():
                free = pool.layout.cells[key.cell].classes[key.group].free
                row[variable] = -self.opening.get((number, free), 0)
            if not pool.opened:
                # Here scopes have no price of their own: all may be used.
                classes = (group for cell in pool.layout.cells for group in cell.classes)
                limit += sum(self.opening.get((number, group.free), 0) * len(group.members) for group in classes)
        if row:
            model.program.add_row("spread", row, upper=limit)


def cut_of(instance: Instance, limit: Limit) -> Cut:
    """Give a limit on the shapes of an instance as a cut."""
    weights = zip(instance.source.tolist(), limit.weight.tolist(), strict=True)
    return Cut({source: weight for source, weight in weights if weight}, limit.most, limit.opening)


def steps_away(instance: Instance, asked: Instance, counts: Sequence[int], places: Places, step: int) -> Iterator[Cut]:
    """Rule out what failed: in even steps GPUs of the pools where replicas are missing, in odd ones replicas of the deployments whose domains are full.

    `counts` are of the shapes `asked`, those of the whole `instance` are cut. Such cuts are no limits of all plans.
    """
    columns = asked.shapes
    sites = Sites(asked, all_free(asked))
    for shape, spots in places.spots.items():
        for spot in spots:
            sites.take(shape, spot)
    lost: dict[int, int] = {}
    for shape, missing in places.missing.items():
        pool, size = int(columns.pool[shape]), int(columns.size[shape])
        lost[pool] = lost.get(pool, 0) + missing * int(columns.gpus[shape])
        if step % 2 and (sites.left[pool] >= size).any():
            alike = (columns.pool == pool) & (columns.deployment == columns.deployment[shape]) & (columns.size >= size)
            running = sum(counts[other] - places.missing.get(other, 0) for other in np.flatnonzero(alike).tolist())
            whole = instance.shapes
            own = (whole.pool == pool) & (whole.deployment == columns.deployment[shape]) & (whole.size >= size)
            yield Cut(dict.fromkeys(instance.source[own].tolist(), 1), running)
    for pool, gpus in lost.items() if step % 2 == 0 else ():
        used = sum(count * int(columns.gpus[shape]) for shape, count in enumerate(counts) if columns.pool[shape] == pool)
        mine = instance.of_pool(pool)
        weights = dict(zip(instance.source[mine].tolist(), instance.shapes.gpus[mine].tolist(), strict=True))
        yield Cut(weights, used - (1 if step == 0 else gpus * step // 2))
