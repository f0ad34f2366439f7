"""A second, independent look at a bound that calls a question impossible: every deployment's least cost again, as an integer program."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from planner.plan.outcome import Status
from planner.solve import cpsat, highs
from planner.solve.decomposition.columns import Generation, priced
from planner.solve.decomposition.knapsack import Covering
from planner.solve.decomposition.split import Parts
from planner.solve.program import Program
from planner.solve.result import Result
from planner.solve.survival.knapsack import SurvivingKnapsack
from planner.solve.survival.question import FAR

FACTORS = (1, 8, 64)
"""Multiples of the prices that are tried: where room is what is missing, dearer room says so more clearly."""

CLEAR = 1e-3
"""Share by which the second look may fall short of the first before replicas are split over domains as well."""

SPLIT_SHARE = 0.5
"""Share of the effort of one such look."""

PLACES = 2_000
"""Most variables of such a look."""


def confirmed(parts: Parts, generation: Generation, limits: cpsat.Limits) -> bool:
    """Whether HiGHS, or CP-SAT where it is not installed, agrees that no plan exists.

    The search by deployments calls a question impossible when some deployment has no choice, or when the bound at some prices exceeds what all free GPUs cost. The same
    prices, and integer programs in place of the search, must say so again.
    """
    best = generation.best
    if best is None or best.value <= generation.ceiling:
        return any(
            _least(_surviving(knapsack), parts.cost[mine].tolist(), limits).status is Status.INFEASIBLE
            for knapsack, mine in zip(parts.knapsacks, parts.shapes, strict=True)
        )
    for factor in FACTORS:
        prices = best.prices.astype(object) * factor
        total = -sum(price * room for price, room in zip(prices.tolist(), parts.room.tolist(), strict=True))
        for knapsack, costs in zip(parts.knapsacks, priced(parts, prices, best.scale), strict=True):
            found = _least(_surviving(knapsack), costs, limits)
            if found.status is Status.INFEASIBLE:
                return True
            bound, hoped = found.bound or 0, knapsack.cheapest(costs).bound
            if hoped is not None and bound < hoped * (1 - CLEAR):
                bound = max(bound, _least_split(_surviving(knapsack), costs, limits).bound or 0)
            total += bound
        if total > generation.ceiling * best.scale:
            return True
    return False


def _surviving(knapsack: Covering) -> SurvivingKnapsack:
    assert isinstance(knapsack, SurvivingKnapsack)
    return knapsack


def _least(knapsack: SurvivingKnapsack, costs: list[int], limits: cpsat.Limits) -> Result:
    """Least cost of one deployment's choices.

    ::

        sum q n >= L,   sum q n - M >= R,   sum_{s of g} q_s n_s <= D_g M,   q_s h_s <= M
    n_s <= sum_{d: held > j} h_s + sum_{d: held <= j} held_{s,d}          every number j that some domain holds, and 0
    """
    program, counts, loss = _loads(knapsack)
    if loss is not None:
        for group in knapsack.groups:
            if group.domains < FAR:
                inside = {counts[i]: knapsack.capacities[i] for i in sorted(group.shapes)}
                program.add_row("resilience", {**inside, loss: -group.domains}, upper=0)
        for variable, q, limit, held in zip(counts, knapsack.capacities, knapsack.limits, knapsack.held, strict=True):
            if limit:
                height = program.add_variable(0, limit)
                for step in sorted({0, *held}) if held else [0]:
                    higher = sum(number > step for number in held) if held else limit
                    if higher:
                        lower = sum(number for number in held if number <= step)
                        program.add_row("resilience", {variable: 1, height: -min(higher, limit)}, upper=lower)
                program.add_row("resilience", {height: q, loss: -1}, upper=0)
    shift, objective = _shifted(knapsack, counts, costs)
    found = (
        highs.minimise(program, objective, seconds=limits.seconds, seed=limits.seed)
        if highs.available()
        else cpsat.minimise(program, objective, limits)
    )
    return Result(found.status, bound=None if found.bound is None else found.bound << shift)


def _least_split(knapsack: SurvivingKnapsack, costs: list[int], limits: cpsat.Limits) -> Result:
    """Least cost of one deployment's choices, the replicas of each group split over its domains, the fullest domain first."""
    program, counts, loss = _loads(knapsack)
    if loss is None or sum(len(group.shapes) * group.domains for group in knapsack.groups) > PLACES:
        return Result(Status.UNKNOWN)
    for group in knapsack.groups:
        places = {i: [program.add_variable(0, knapsack.limits[i]) for _ in range(group.domains)] for i in sorted(group.shapes)}
        for shape, own in places.items():
            program.add_row("resilience", {counts[shape]: -1, **dict.fromkeys(own, 1)}, lower=0, upper=0)
        loads = [{own[domain]: knapsack.capacities[shape] for shape, own in places.items()} for domain in range(group.domains)]
        program.add_row("resilience", {**loads[0], loss: -1}, upper=0)
        for fuller, emptier in pairwise(loads):
            program.add_row("resilience", {**fuller, **{variable: -q for variable, q in emptier.items()}}, lower=0)
    shift, objective = _shifted(knapsack, counts, costs)
    found = cpsat.minimise(program, objective, replace(limits, effort=limits.effort * SPLIT_SHARE))
    return Result(found.status, bound=None if found.bound is None else found.bound << shift)


def _loads(knapsack: SurvivingKnapsack) -> tuple[Program, list[int], int | None]:
    """Program, counts, and the variable of the greatest loss (None where nothing must be left): what must be served, and left."""
    program = Program()
    counts = [program.add_variable(0, limit) for limit in knapsack.limits]
    served = dict(zip(counts, knapsack.capacities, strict=True))
    program.add_row("load", served, lower=knapsack.asked)
    if knapsack.minimum:
        program.add_row("replicas", dict.fromkeys(counts, 1), lower=knapsack.minimum)
    for cap in knapsack.caps:
        program.add_row("replicas", {counts[i]: 1 for i in sorted(cap.shapes)}, upper=cap.most)
    switches = [program.add_variable(0, 1) for _ in knapsack.families]
    for switch, family in zip(switches, knapsack.families, strict=True):
        for i in family:
            if knapsack.limits[i]:
                program.add_row("replicas", {counts[i]: 1, switch: -knapsack.limits[i]}, upper=0)
    if switches:
        program.add_row("replicas", dict.fromkeys(switches, 1), upper=1)
    if not knapsack.rest:
        return program, counts, None
    loss = program.add_variable(0, sum(q * limit for q, limit in zip(knapsack.capacities, knapsack.limits, strict=True)))
    program.add_row("resilience", {**served, loss: -1}, lower=knapsack.rest)
    return program, counts, loss


def _shifted(knapsack: SurvivingKnapsack, counts: list[int], costs: list[int]) -> tuple[int, dict[int, int]]:
    """Costs rounded down to multiples of a power of two that keeps their sums exact in doubles, as its exponent and their quotients."""
    worst = sum(cost * limit for cost, limit in zip(costs, knapsack.limits, strict=True))
    shift = max(0, worst.bit_length() - 50)
    return shift, {variable: cost >> shift for variable, cost in zip(counts, costs, strict=True) if cost >> shift}
