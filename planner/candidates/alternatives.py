"""Other ways to serve each deployment, ranked, and what makes each lose against the one chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.candidates.menu import Menu
from planner.plan.shape import Degrees, Shape

# Below this the price of two shapes is the same to a person: cents an hour.
SAME_PRICE = 0.005


@dataclass(frozen=True, slots=True)
class Alternative:
    """A shape that would also serve its deployment: how many replicas, GPUs, at what price [$/h], and why it was not taken."""

    shape: Shape
    replicas: int
    gpus: int
    price: float | None
    reason: str


def ranked_alternatives(
    menu: Menu, chosen: Sequence[Shape], objective: str, free_gpus: Sequence[int], most: int = 5, priced: bool = True
) -> tuple[Alternative, ...]:
    """Rank the shapes not chosen, at most `most` for each deployment, best first by the objective asked.

    `chosen` lists the shape of every replica of the plan, `free_gpus` the usable GPUs of each pool. Of shapes with the same degrees on the same
    pool only the best is kept. Each alternative serves its whole deployment alone with one kind of replica.
    """
    answer: list[Alternative] = []
    for deployment in range(len(menu.loads)):
        taken = [shape for shape in chosen if shape.deployment == deployment]
        base_price = sum(shape.price for shape in taken)
        base_gpus = sum(shape.degrees.gpus for shape in taken)
        base_tpot = max((shape.times.tpot for shape in taken), default=math.inf)
        skip = {(shape.pool, shape.degrees) for shape in taken}
        best: dict[tuple[int, Degrees], Shape] = {}
        for shape in menu.shapes:
            key = (shape.pool, shape.degrees)
            if shape.deployment != deployment or key in skip:
                continue
            if key not in best or _rank(shape, menu.loads[deployment], objective) < _rank(best[key], menu.loads[deployment], objective):
                best[key] = shape
        order = sorted(best.values(), key=lambda shape: _rank(shape, menu.loads[deployment], objective))
        for shape in order[:most]:
            count = replicas_for(shape, menu.loads[deployment])
            gpus = count * shape.degrees.gpus
            price = count * shape.price if priced else None
            free = free_gpus[shape.pool]
            reason = _reason(shape, gpus, count * shape.price, free, base_gpus, base_price, base_tpot, priced)
            answer.append(Alternative(shape, count, gpus, price, reason))
    return tuple(answer)


def replicas_for(shape: Shape, load: float) -> int:
    """Replicas of `shape` that carry `load` alone, at least one."""
    return max(1, math.ceil(load / shape.capacity - 1e-9))


def _rank(shape: Shape, load: float, objective: str) -> tuple[float, ...]:
    count = replicas_for(shape, load)
    price, gpus, tpot = count * shape.price, float(count * shape.degrees.gpus), shape.times.tpot
    tail = (shape.times.ttft, float(shape.pool), *map(float, _degrees_key(shape.degrees)), shape.comm_seconds)
    if objective == "latency":
        return (tpot, price, gpus, *tail)
    if objective == "gpus":
        return (gpus, price, tpot, *tail)
    return (price, gpus, tpot, *tail)


def _degrees_key(degrees: Degrees) -> tuple[int, int, int, int]:
    return (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)


def _reason(shape: Shape, gpus: int, price: float, free: int, base_gpus: int, base_price: float, base_tpot: float, priced: bool) -> str:
    """Say in a few words what the plan has that this shape has not."""
    if gpus > free:
        return f"needs {gpus} GPUs, {free} are free"
    words = []
    if priced and base_gpus and price > base_price + SAME_PRICE:
        words.append(f"dearer: {gpus} GPUs instead of {base_gpus}" if gpus > base_gpus else f"dearer: {gpus} GPUs at a higher price")
    elif base_gpus and gpus > base_gpus:
        words.append(f"{gpus} GPUs instead of {base_gpus}")
    slower = (shape.times.tpot - base_tpot) * 1e3
    if base_gpus and slower > 0.05:
        words.append(f"slower by {slower:.1f} ms a token")
    elif base_gpus and slower < -0.05:
        words.append(f"faster by {-slower:.1f} ms a token")
    if priced and base_gpus and price < base_price - SAME_PRICE:
        words.append("cheaper alone, but not beside the others" if gpus <= free else "cheaper")
    return ", ".join(words) if words else "as good: the plan communicates less or keeps more domains whole"
