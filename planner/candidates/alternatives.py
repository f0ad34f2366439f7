"""Other ways to serve each deployment, ranked, and what makes each lose against the one chosen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

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
    load that must survive a loss (0: none), one replica more than serves that share. Where the most load is asked for, each fills the free GPUs of its pool.
    """
    answer: list[Alternative] = []
    own: dict[int, list[Shape]] = {}
    for shape in menu.shapes:
        own.setdefault(shape.deployment, []).append(shape)
    running: dict[int, list[Shape]] = {}
    for shape in chosen:
        running.setdefault(shape.deployment, []).append(shape)
    for deployment, load in enumerate(menu.loads):
        keep = keeps[deployment] if keeps else 0.0
        taken = running.get(deployment, [])
        base = _Base(taken, load) if taken else None
        skip = {(shape.pool, shape.degrees) for shape in taken}
        best: dict[tuple[int, Degrees], Shape] = {}
        for shape in _ranked(own.get(deployment, []), load, objective, keep, free_gpus):
            if (shape.pool, shape.degrees) not in skip:
                best.setdefault((shape.pool, shape.degrees), shape)
            if len(best) == most:
                break
        for shape in best.values():
            free = free_gpus[shape.pool]
            count = replicas_for(shape, load, keep) if objective != "throughput" else max(free // shape.degrees.gpus, 1)
            gpus = count * shape.degrees.gpus
            price = count * shape.price if priced else None
            reason = _reason(shape, count, free, base, load, priced=priced, most=objective == "throughput")
            answer.append(Alternative(shape, count, gpus, price, reason))
    return tuple(answer)


def replicas_for(shape: Shape, load: float, keep: float = 0.0) -> int:
    """Replicas of `shape` that carry `load` alone, at least one; with `keep` also that share of it without one of them."""
    survivors = math.ceil(keep * load / shape.capacity - 1e-9) + 1 if keep else 1
    return max(survivors, math.ceil(load / shape.capacity - 1e-9))


def _ranked(shapes: Sequence[Shape], load: float, objective: str, keep: float, free: Sequence[int]) -> Iterator[Shape]:
    """Shapes from the best to the worst, each serving the load alone: by money, GPUs and time per token in the order of the objective, then by `_further`.

    Where the most load is asked for, by what each serves on the free GPUs of its pool.
    """
    count = np.array([replicas_for(shape, load, keep) for shape in shapes], dtype=np.float64)
    price = count * np.array([shape.price for shape in shapes])
    gpus = count * np.array([shape.degrees.gpus for shape in shapes])
    tpot = np.array([shape.times.tpot for shape in shapes])
    less = np.array([-float(free[shape.pool] // shape.degrees.gpus) * shape.capacity for shape in shapes])
    asked = {"latency": (tpot, price, gpus), "gpus": (gpus, price, tpot), "throughput": (less, tpot, gpus)}.get(
        objective, (price, gpus, tpot)
    )
    order = np.lexsort(asked[::-1])
    ranked = np.stack(asked)[:, order]
    # Few shapes are looked at: only those that are the same by the objective are compared in all their figures, and only as far as is asked.
    starts = np.flatnonzero(np.append(True, (ranked[:, 1:] != ranked[:, :-1]).any(axis=0))[: len(shapes)])
    for start, end in pairwise([*starts.tolist(), len(shapes)]):
        yield from sorted((shapes[row] for row in order[start:end].tolist()), key=_further)


def _further(shape: Shape) -> tuple[float, ...]:
    """What tells shapes apart that are the same by the objective."""
    return (shape.times.ttft, float(shape.pool), *map(float, _degrees_key(shape.degrees)), shape.comm_seconds)


def _degrees_key(degrees: Degrees) -> tuple[int, int, int, int]:
    return (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)


class _Base:
    """What the plan spends on a deployment: price [$/h], GPUs, its slowest time per token [s], and what it serves as a share of the load."""

    def __init__(self, taken: Sequence[Shape], load: float) -> None:
        self.price = sum(shape.price for shape in taken)
        self.gpus = sum(shape.degrees.gpus for shape in taken)
        self.tpot = max(shape.times.tpot for shape in taken)
        self.serves = sum(shape.capacity for shape in taken) / load


def _reason(shape: Shape, count: int, free: int, base: _Base | None, load: float, *, priced: bool, most: bool) -> str:
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
    if most:
        alone = f"serves {serves:,.4g} times the load alone"
        words.append(f"{alone}, the plan {base.serves:,.4g} times" if serves < base.serves else f"{alone}, but not beside the others")
    elif priced and price < base.price - SAME_PRICE:
        words.append("cheaper alone, but not beside the others")
    elif serves < base.serves - SAME_ROOM and not dearer:
        words.append(f"less room: {serves:.0%} of the load instead of {base.serves:.0%}")
    return ", ".join(words) if words else "as good: the plan communicates less or keeps more domains whole"
