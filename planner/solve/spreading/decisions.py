"""Decisions whose replicas were placed apart: on their GPUs, valued in another model, with the bound that holds for the question as asked."""

from __future__ import annotations

from dataclasses import replace

from planner.plan.outcome import Status
from planner.solve.model import Model
from planner.solve.placement import PoolPlacement
from planner.solve.program import evaluate
from planner.solve.search import Decision, Stage
from planner.solve.seating import Placed, in_order
from planner.solve.spreading.places import Places
from planner.solve.stages import expression


def seated(decision: Decision, places: Places) -> tuple[Placed, ...]:
    """Replicas on concrete GPUs of their scopes."""
    assert decision.model is not None
    model = decision.model
    pools = {pool.layout.pool: PoolPlacement(model, pool, decision.values) for pool in model.pools}
    for shape, spots in places.spots.items():
        placement = pools[int(model.instance.shapes.pool[shape])]
        for spot in spots:
            for group, scope in zip(placement.add(shape), spot, strict=True):
                group.scope = scope
    return in_order(model.instance, (replica for placement in pools.values() for replica in placement.seated()))


def valued(decision: Decision, model: Model, values: tuple[int, ...]) -> Decision:
    """Give a decision with its replicas in another model, its stages valued there."""
    stages, sure = [], True
    for stage in decision.stages:
        if stage.name in {"whole_scopes", "order"}:
            continue
        value = stage.value if stage.name in {"latency", "first_token", "unserved"} else evaluate(expression(model, stage.name), values)
        stages.append(Stage(stage.name, value, stage.bound if sure else None))
        sure = sure and value == stage.value
    return settled(replace(decision, model=model, values=values, stages=stages))


def bounded_by(decision: Decision, bound: int | None) -> Decision:
    """Give a decision of a question with cuts, with the bound of the one without them."""
    stages = [replace(stage, bound=None) for stage in decision.stages]
    stages[0] = replace(stages[0], bound=bound)
    return settled(replace(decision, stages=stages))


def at_best(decision: Decision) -> Decision:
    """Give a decision that nothing beats."""
    return settled(replace(decision, stages=[replace(decision.stages[0], bound=decision.stages[0].value), *decision.stages[1:]]))


def settled(decision: Decision) -> Decision:
    """Say optimal where the objective is at its bound, else feasible, with what stopped the search."""
    if proved(decision):
        return replace(decision, status=Status.OPTIMAL, stopped_by=None)
    return replace(decision, status=Status.FEASIBLE, stopped_by=decision.stopped_by or "effort")


def proved(decision: Decision) -> bool:
    """Whether the objective is at its bound."""
    return decision.stages[0].bound == decision.stages[0].value


def opened(decision: Decision) -> dict[int, dict[int, int]]:
    """Scopes that a decision opens for a price, by pool and free GPUs."""
    assert decision.model is not None
    found: dict[int, dict[int, int]] = {}
    for pool in decision.model.pools:
        if pool.layout.scopes.node_price is not None and pool.opened:
            own = found.setdefault(pool.layout.pool, {})
            for key, variable in pool.opened.items():
                free = pool.layout.cells[key.cell].classes[key.group].free
                own[free] = own.get(free, 0) + decision.values[variable]
    return found
