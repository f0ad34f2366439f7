"""The stages of one solve after the objective, and the linear expression that each of them makes least."""

from __future__ import annotations

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
