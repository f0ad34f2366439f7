"""Deployments whose choices no covering knapsack tells: buckets that share replicas, spares of every shape in use.

Their rows speak of the deployment alone, so they stay together as a small program that CP-SAT prices. One covering row that every choice keeps stands
beside it, for the linear relaxation and for the counts that a plan may have. Of buckets it is the sum of their rows with weights lambda::

    sum_s q_s n_s >= sum_b lambda_b S,     q_s = max_b lambda_b U / w[s,b]

because a replica of s serves at most U / w[s,b] slices of b, of whatever mix of buckets: sum_b lambda_b x[s,b] <= sum_b (w[s,b] x[s,b]) q_s / U <= q_s n_s.
With lambda_b = min_s c_s w[s,b], what a slice costs where it is cheapest, the row loses nothing of the relaxation at the shapes' own costs.

Source: surrogate relaxation, Glover, "Surrogate constraints" (1968); symbols as in `rules/buckets.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from planner.solve import cpsat
from planner.solve.decomposition.knapsack import Cover, fractional
from planner.solve.instance import Instance
from planner.solve.program import Program, Row

RULES = frozenset({"buckets", "load", "replicas", "spares"})
"""Rules whose rows speak of one deployment each."""

EFFORT = 0.1
"""Effort of one pricing [solver units]."""

COST_BITS = 50
"""Bits that the cost of a choice may have, so that the solver's doubles tell its bound exactly."""

WEIGHT_BITS = 46
"""Bits that the load of the covering row may have."""


@dataclass(frozen=True)
class Alone:
    """The choices of one deployment as a program over its counts, which come first, and what follows from them; without `effort` only the covering row is asked.

    `beside` are the variables after the counts as the whole program numbers them. `capacities` and `load` are a covering row that every choice keeps.
    """

    capacities: tuple[int, ...]
    limits: tuple[int, ...]
    load: int
    program: Program
    beside: tuple[int, ...]
    effort: float = EFFORT
    priced: dict[tuple[int, ...], Cover] = field(default_factory=dict, compare=False, repr=False)
    known: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Values of all variables by the counts of the choices found."""

    def cheapest(self, costs: Sequence[int]) -> Cover:
        """Least cost by CP-SAT within its effort; what it leaves open is bounded by it and by fractions of replicas."""
        asked = tuple(costs)
        if asked not in self.priced:
            self.priced[asked] = self._price(asked)
        return self.priced[asked]

    def beside_of(self, counts: Sequence[int]) -> tuple[int, ...]:
        """Values of the variables beside the counts in a choice that was found."""
        return self.known[tuple(counts)][len(self.limits) :]

    def _price(self, costs: tuple[int, ...]) -> Cover:
        least = self._relaxed(costs)
        if not self.effort:
            return Cover(None, least)
        spent = sum(cost * limit for cost, limit in zip(costs, self.limits, strict=True))
        # Costs are rounded down, so that the bound holds for what was asked.
        shift = max(0, spent.bit_length() - COST_BITS)
        objective = {shape: cost >> shift for shape, cost in enumerate(costs) if cost >> shift}
        start = min(self.known, key=lambda counts: (_cost(costs, counts), counts), default=None)
        hint = None if start is None else dict(enumerate(self.known[start]))
        found = cpsat.minimise(self.program, objective, cpsat.Limits(self.effort), hint)
        if found.closed and found.values is None:
            return Cover(None, None)
        if found.bound is not None:
            least = max(least, found.bound << shift)
        if found.values is None:
            return Cover(start, least)
        counts = found.values[: len(self.limits)]
        self.known.setdefault(counts, found.values)
        if start is not None and _cost(costs, start) <= _cost(costs, counts):
            counts = start
        return Cover(counts, min(least, _cost(costs, counts)))

    def _relaxed(self, costs: tuple[int, ...]) -> int:
        """Cost of the covering row by fractions of replicas."""
        useful = [shape for shape, (serves, most) in enumerate(zip(self.capacities, self.limits, strict=True)) if serves and most]
        useful.sort(key=lambda shape: (Fraction(costs[shape], self.capacities[shape]), shape))
        q, c, u = ([column[shape] for shape in useful] for column in (self.capacities, costs, self.limits))
        return fractional(q, c, u, 0, self.load) or 0


def _cost(costs: Sequence[int], counts: Sequence[int]) -> int:
    return sum(cost * count for cost, count in zip(costs, counts, strict=True))


def stands_alone(instance: Instance, deployment: int) -> bool:
    """Whether the choices of a deployment are no covering knapsack."""
    return instance.slicing_of(deployment) is not None or instance.rules_of(deployment).spares > 0


def alone(
    program: Program,
    rows: Sequence[Row],
    mine: Sequence[int],
    covering: tuple[Sequence[int], int],
    beside: Sequence[int],
    effort: float = EFFORT,
) -> Alone:
    """Cut the program of one deployment out of the whole one.

    Parameters
    ----------
    program, rows
        The whole program, and those of its rows that speak of the deployment alone.
    mine, beside
        Its counts and its other variables, as the whole program numbers them.
    covering
        Capacities of its shapes and the load of a row that every choice keeps.
    effort
        Effort of one pricing.
    """
    variables = [*mine, *beside]
    place = {variable: number for number, variable in enumerate(variables)}
    own = Program([program.lower[variable] for variable in variables], [program.upper[variable] for variable in variables])
    for row in rows:
        own.add_row(row.rule, {place[v]: c for v, c in zip(row.variables, row.coefficients, strict=True)}, row.lower, row.upper)
    return Alone(tuple(covering[0]), tuple(program.upper[shape] for shape in mine), covering[1], own, tuple(beside), effort)


def covering_of_buckets(instance: Instance, deployment: int, mine: Sequence[int], cost: Mapping[int, int]) -> tuple[list[int], int]:
    """Capacities of the shapes of a deployment with buckets, and the load, of one row that covers all its buckets; nothing is asked where a bucket takes nothing."""
    slicing = instance.slicing_of(deployment)
    assert slicing is not None
    uses = [instance.served_buckets(shape) for shape in mine]
    nothing = [0] * len(mine), 0
    # Where nodes are paid for whole, shapes cost nothing by themselves: their GPUs tell which is dear.
    paid = [cost.get(shape, 0) for shape in mine]
    worth = paid if all(price > 0 for price, use in zip(paid, uses, strict=True) if use) else instance.shapes.gpus[list(mine)].tolist()
    weights = []
    for bucket in slicing.buckets:
        takes = [price * use[bucket] for price, use in zip(worth, uses, strict=True) if bucket in use]
        if not takes or min(takes) <= 0:
            return nothing
        weights.append(min(takes))
    shift = max(0, (sum(weights) * slicing.slices).bit_length() - WEIGHT_BITS)
    weights = [max(1, weight >> shift) for weight in weights]
    capacities = [max((-(-weights[bucket] * slicing.unit // take) for bucket, take in use.items()), default=0) for use in uses]
    return capacities, sum(weights) * slicing.slices
