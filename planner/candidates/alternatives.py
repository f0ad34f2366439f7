"""Other ways to serve each deployment, ranked, and what makes each lose against the one chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from planner.candidates.menu import Menu
from planner.plan.shape import Degrees, Shape

# Below this the price of two shapes is the same to a person: cents an hour.
SAME_PRICE = 0.005
SAME_TIME = 0.05  # [ms]
SAME_ROOM = 0.01  # shares of the load


@dataclass(frozen=True, slots=True)
class Alternative:
    """A shape that would also serve its deployment: how many replicas, GPUs, at what price [$/h], and why it was not taken."""

    shape: Shape
    replicas: int
    gpus: int
    price: float | None
    reason: str


def ranked_alternatives(
    menu: Menu,
    chosen: Sequence[Shape],
    objective: str,
    free_gpus: Sequence[int],
    most: int = 5,
    priced: bool = True,
    keeps: Sequence[float] = (),
) -> tuple[Alternative, ...]:
    """Rank the shapes not chosen, at most `most` for each deployment, best first by the objective asked.

    `chosen` lists the shape of every replica of the plan, `free_gpus` the usable GPUs of each pool. Of shapes with the same degrees on the same
    pool only the best is kept. Each alternative serves its whole deployment alone with one kind of replica; where `keeps` gives a share of its
    load that must survive a loss (0: none), one replica more than serves that share.
    """
    answer: list[Alternative] = []
    own: dict[int, list[Shape]] = {}
    for shape in menu.shapes:
        own.setdefault(shape.deployment, []).append(shape)
    for deployment, load in enumerate(menu.loads):
        keep = keeps[deployment] if keeps else 0.0
        taken = [shape for shape in chosen if shape.deployment == deployment]
        base = _Base(taken, load) if taken else None
        skip = {(shape.pool, shape.degrees) for shape in taken}
        best: dict[tuple[int, Degrees], tuple[tuple[float, ...], Shape]] = {}
        for shape in own.get(deployment, ()):
            key = (shape.pool, shape.degrees)
            if key in skip:
                continue
            rank = _rank(shape, load, objective, keep)
            if key not in best or rank < best[key][0]:
                best[key] = rank, shape
        for _, shape in sorted(best.values(), key=itemgetter(0))[:most]:
            count = replicas_for(shape, load, keep)
            gpus = count * shape.degrees.gpus
            price = count * shape.price if priced else None
            reason = _reason(shape, count, free_gpus[shape.pool], base, load, priced=priced)
            answer.append(Alternative(shape, count, gpus, price, reason))
    return tuple(answer)


def replicas_for(shape: Shape, load: float, keep: float = 0.0) -> int:
    """Replicas of `shape` that carry `load` alone, at least one; with `keep` also that share of it without one of them."""
    survivors = math.ceil(keep * load / shape.capacity - 1e-9) + 1 if keep else 1
    return max(survivors, math.ceil(load / shape.capacity - 1e-9))


def _rank(shape: Shape, load: float, objective: str, keep: float) -> tuple[float, ...]:
    count = replicas_for(shape, load, keep)
    price, gpus, tpot = count * shape.price, float(count * shape.degrees.gpus), shape.times.tpot
    tail = (shape.times.ttft, float(shape.pool), *map(float, _degrees_key(shape.degrees)), shape.comm_seconds)
    if objective == "latency":
        return (tpot, price, gpus, *tail)
    if objective == "gpus":
        return (gpus, price, tpot, *tail)
    return (price, gpus, tpot, *tail)


def _degrees_key(degrees: Degrees) -> tuple[int, int, int, int]:
    return (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)


class _Base:
    """What the plan spends on a deployment: price [$/h], GPUs, its slowest time per token [s], and what it serves as a share of the load."""

    def __init__(self, taken: Sequence[Shape], load: float) -> None:
        self.price = sum(shape.price for shape in taken)
        self.gpus = sum(shape.degrees.gpus for shape in taken)
        self.tpot = max(shape.times.tpot for shape in taken)
        self.serves = sum(shape.capacity for shape in taken) / load


def _reason(shape: Shape, count: int, free: int, base: _Base | None, load: float, *, priced: bool) -> str:
    """Say in a few words what the plan has that this shape has not."""
    gpus, price, serves = count * shape.degrees.gpus, count * shape.price, count * shape.capacity / load
    if gpus > free:
        return f"needs {gpus} GPU{'s' if gpus > 1 else ''}, {free} {'is' if free == 1 else 'are'} free"
    if base is None:
        return "possible by itself"
    words = []
    dearer = priced and price > base.price + SAME_PRICE
    if dearer:
        counted = f"{gpus} GPU{'s' if gpus > 1 else ''}"
        words.append(f"dearer: {counted} instead of {base.gpus}" if gpus > base.gpus else f"dearer: {counted} at a higher price")
    elif gpus > base.gpus:
        words.append(f"{gpus} GPUs instead of {base.gpus}")
    slower = (shape.times.tpot - base.tpot) * 1e3
    if slower > SAME_TIME:
        words.append(f"slower by {slower:.1f} ms a token")
    elif slower < -SAME_TIME:
        words.append(f"faster by {-slower:.1f} ms a token")
    if priced and price < base.price - SAME_PRICE:
        words.append("cheaper alone, but not beside the others")
    elif serves < base.serves - SAME_ROOM and not dearer:
        words.append(f"less room: {serves:.0%} of the load instead of {base.serves:.0%}")
    return ", ".join(words) if words else "as good: the plan communicates less or keeps more domains whole"
