"""The stages of one solve after the objective, the linear expression that each makes least, and where to start from beside a running plan."""

from __future__ import annotations

from planner.solve import cpsat
from planner.solve.instance import Instance
from planner.solve.model import Model


def stages_after(instance: Instance) -> tuple[str, ...]:
    """Tie-breaking stages of an objective, in order: money or GPUs where they are not the objective, time per token, communication.

    Time per token goes before communication: of two shapes at the same price a pipeline communicates least and answers slowest.
    """
    money = "cost" if instance.priced else "gpus"
    first: dict[str, tuple[str, ...]] = {
        "cost": () if instance.move_price is None else ("moves",),
        "gpus": ("cost",) if instance.priced else (),
        "latency": (money,),
        "throughput": (money,),
    }
    return (*first[instance.objective], "token_time", "communication")


def expression(model: Model, name: str) -> dict[int, int]:
    """Linear expression of a stage: cost (with the price of moves), moves, gpus, throughput (negated share), token_time, communication, whole_scopes or order."""
    if name == "throughput":
        assert model.share is not None
        return {model.share: -1}
    if name == "cost":
        return model.spending()
    if name == "moves":
        return model.moves()
    if name == "gpus":
        return model.gpus()
    if name == "token_time":
        return model.token_time()
    if name == "communication":
        return model.communication()
    if name == "whole_scopes":
        return model.whole_scopes()
    return {variable: position + 1 for position, variable in enumerate(model.count)}


def running_start(model: Model, limits: cpsat.Limits) -> tuple[int, ...] | None:
    """Keep all that runs and add what is missing, else start from nothing; None where neither gives a plan within the limits."""
    seats = [variable for pool in model.pools for variable in pool.seats.values()]
    for stay in (True, False):
        fixed = model.program.copy()
        for variable in seats:
            fixed.lower[variable] = fixed.upper[variable] = fixed.upper[variable] if stay else 0
        found = cpsat.minimise(fixed, model.spending(), limits).values
        if found is not None:
            return found
    return None
