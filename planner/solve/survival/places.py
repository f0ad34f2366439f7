"""From counts to bins: what all replicas serve is then known, hence how much of a deployment one failure domain may hold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.solve.instance import BoolArray, Container, IntArray
from planner.solve.survival.question import FAR, PoolBins, Question

Spanning = tuple[int, tuple[tuple[int, int], ...]]
"""A shape whose replica spans bins, and its (bin, groups)."""


@dataclass
class Places:
    """Where replicas stand: the number of each (shape, bin) that stay in one bin, those that span several, and how many of each shape found no place."""

    inside: dict[tuple[int, int], int] = field(default_factory=dict)
    spanning: list[Spanning] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)


@dataclass
class Taken:
    """Slots that are `left` of all bins by pool, and by deployment what every domain that may be lost `carried` and the `replicas` in every domain they spread over."""

    left: dict[int, IntArray]
    carried: list[IntArray]
    replicas: list[IntArray]


class Room:
    """What is left of the bins, and what every deployment has in every failure domain, while replicas are placed."""

    def __init__(self, question: Question) -> None:
        self.question = question
        columns = question.instance.shapes
        self.capacity: list[int] = columns.capacity.tolist()
        self.deployment: list[int] = columns.deployment.tolist()
        self.pool: list[int] = columns.pool.tolist()
        self.groups: list[int] = columns.groups.tolist()
        self.place: dict[tuple[int, str], IntArray] = {}
        self.domains: dict[str, int] = {}
        rules = [question.instance.rules_of(deployment).spread for deployment in range(question.instance.deployments)]
        self.apart = [("", 0) if rule is None else (rule.kind, rule.most) for rule in rules]
        for kind in sorted({*question.kinds, *(kind for kind, _ in self.apart)}):
            owners = [(pool, bins.domains[kind]) for pool, bins in question.bins.items() if kind in bins.domains]
            if owners:
                labels, where = np.unique(np.concatenate([own for _, own in owners]), return_inverse=True)
                self.domains[kind] = len(labels)
                starts = np.cumsum([0, *(len(own) for _, own in owners)])
                for (pool, _), start, end in zip(owners, starts, starts[1:], strict=False):
                    self.place[pool, kind] = where.reshape(-1)[start:end]
        # Slots of every size that one group takes.
        self.takes = [
            np.array([size // k for k in question.bins[pool].sizes], dtype=np.int64)
            for size, pool in zip(columns.size.tolist(), self.pool, strict=True)
        ]

    def domain(self, shape: int) -> IntArray | None:
        """Failure domain of every bin of a shape's pool, as its deployment may lose it; None where it loses nothing by domain."""
        return self.place.get((self.pool[shape], self.question.kinds[self.deployment[shape]]))

    def caps(self, counts: IntArray) -> list[int]:
        """Most of every deployment that one domain may hold: what all its replicas serve beyond what must be left."""
        served = np.zeros(len(self.question.rest), dtype=np.int64)
        np.add.at(served, self.question.instance.shapes.deployment, counts * self.question.instance.shapes.capacity)
        return [total - rest for total, rest in zip(served.tolist(), self.question.rest, strict=True)]

    def spread(self, shape: int) -> tuple[IntArray | None, int]:
        """Domain of every bin of a shape's pool that its deployment spreads over, None where it does not, and the most replicas in one."""
        kind, most = self.apart[self.deployment[shape]]
        return self.place.get((self.pool[shape], kind)), most

    def empty(self) -> Taken:
        """Tell that nothing is taken."""
        left = {pool: bins.slots.copy() for pool, bins in self.question.bins.items()}
        return Taken(
            left,
            [np.zeros(self.domains.get(kind, 0), dtype=np.int64) for kind in self.question.kinds],
            [np.zeros(self.domains.get(kind, 0), dtype=np.int64) for kind, _ in self.apart],
        )

    def used(self, places: Places) -> Taken:
        """Tell what some places take."""
        taken = self.empty()
        whole = ((shape, ((chosen, self.groups[shape]),), count) for (shape, chosen), count in places.inside.items())
        for shape, parts, count in (*whole, *((shape, parts, 1) for shape, parts in places.spanning)):
            for chosen, groups in parts:
                taken.left[self.pool[shape]][chosen] -= self.takes[shape] * (groups * count)
            self.add(taken, shape, [chosen for chosen, _ in parts], count)
        return taken

    def add(self, taken: Taken, shape: int, bins: list[int], count: int = 1) -> None:
        """Count replicas of a shape that touch some bins in their domains."""
        deployment = self.deployment[shape]
        if (domain := self.domain(shape)) is not None:
            for label in {int(domain[chosen]) for chosen in bins}:
                taken.carried[deployment][label] += self.capacity[shape] * count
        if (apart := self.spread(shape)[0]) is not None:
            for label in {int(apart[chosen]) for chosen in bins}:
                taken.replicas[deployment][label] += count

    def open(self, taken: Taken, shape: int, cap: int) -> BoolArray:
        """Bins of a shape's pool that may hold one more replica of it, as far as its deployment's rules go; `cap` is what one domain may carry [bins]."""
        free, deployment = self.question.allowed(shape), self.deployment[shape]
        if (domain := self.domain(shape)) is not None:
            free = free & (taken.carried[deployment][domain] + self.capacity[shape] <= cap)
        apart, most = self.spread(shape)
        return free if apart is None else free & (taken.replicas[deployment][apart] < most)


def greedy(room: Room, counts: IntArray) -> Places:
    """Place replicas largest first, each where its deployment has least for the size of the bin; among alike those first that have fewer bins."""
    columns = room.question.instance.shapes
    caps = room.caps(counts)
    taken = room.empty()
    places = Places()
    gpus, sizes = columns.gpus.tolist(), columns.size.tolist()
    bins = {shape: int(room.question.allowed(shape).sum()) for shape in np.flatnonzero(counts).tolist()}

    def order(s: int) -> tuple[float, ...]:
        confined = bins[s] < len(room.question.bins[room.pool[s]])
        return (
            -gpus[s] if room.groups[s] > 1 else 0,
            -sizes[s],
            bins[s] if confined else FAR,
            -room.capacity[s] / max(1, caps[room.deployment[s]]),
            s,
        )

    for shape in sorted(bins, key=order):
        _place(room, shape, int(counts[shape]), caps[room.deployment[shape]], taken, places)
    return places


def _place(room: Room, shape: int, count: int, cap: int, taken: Taken, places: Places) -> None:
    """Place the replicas of one shape."""
    bins = room.question.bins[room.pool[shape]]
    slack, size = taken.left[bins.pool], np.maximum(bins.slots[:, 0], 1)
    need = room.takes[shape] * room.groups[shape]
    position = bins.sizes.index(int(room.question.instance.shapes.size[shape]))
    own, domain = taken.carried[room.deployment[shape]], room.domain(shape)
    fits: BoolArray = np.asarray((slack >= need).all(axis=1))
    for number in range(count):
        ready = np.flatnonzero(fits & room.open(taken, shape, cap))
        if not len(ready):
            placed = 0
            if room.groups[shape] > 1:
                placed = _span(room, bins, shape, count - number, cap, taken, places)
            if number + placed < count:
                places.missing[shape] = count - number - placed
            return
        level = np.zeros(len(ready)) if domain is None else own[domain[ready]] / size[ready]
        chosen = int(ready[np.lexsort((-slack[ready, position], level))[0]])
        slack[chosen] -= need
        fits[chosen] = (slack[chosen] >= need).all()
        room.add(taken, shape, [chosen])
        places.inside[shape, chosen] = places.inside.get((shape, chosen), 0) + 1


def _span(room: Room, bins: PoolBins, shape: int, count: int, cap: int, taken: Taken, places: Places) -> int:
    """Place replicas over several bins of one container, as few domains each as comes of itself; the number placed."""
    takes, domain, slack = room.takes[shape], room.domain(shape), taken.left[bins.pool]
    own = taken.carried[room.deployment[shape]]
    ids = bins.containers[Container(int(room.question.instance.shapes.container[shape]))]
    asked = takes > 0
    size = np.maximum(bins.slots[:, 0], 1)
    for placed in range(count):
        holds = np.where(room.open(taken, shape, cap), (slack[:, asked] // takes[asked]).min(axis=1), 0)
        level = np.zeros(len(bins)) if domain is None else own[domain] / size
        labels, where = np.unique(ids, return_inverse=True)
        held = np.bincount(where.reshape(-1), weights=holds, minlength=len(labels))
        enough = (held >= room.groups[shape])[where.reshape(-1)] & (holds > 0)
        if not enough.any():
            return placed
        order = np.lexsort((-holds, level))
        home = ids[next(chosen for chosen in order.tolist() if enough[chosen])]
        parts, wanted = [], room.groups[shape]
        for chosen in order.tolist():
            groups = min(wanted, int(holds[chosen])) if ids[chosen] == home else 0
            if groups:
                parts.append((chosen, groups))
                slack[chosen] -= takes * groups
                wanted -= groups
        room.add(taken, shape, [chosen for chosen, _ in parts])
        places.spanning.append((shape, tuple(parts)))
    return count
