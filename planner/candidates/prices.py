"""The price of a GPU-hour in every pool: the topology's own, else the catalog's dated example, and never a silent nothing."""

from __future__ import annotations

from planner.diagnostics import Diagnostic, PlannerError, Severity
from planner.problem.load import LoadedProblem
from planner.topology.fabric import Pool


def price_of(pool: Pool) -> tuple[float | None, bool]:
    """Price of one GPU-hour of `pool` and whether it is the catalog's example; (None, False) when nobody names one."""
    if pool.price_per_gpu is not None:
        return pool.price_per_gpu, False
    if pool.gpu.price is not None:
        return pool.gpu.price.per_gpu_hour, True
    return None, False


def pool_prices(loaded: LoadedProblem) -> tuple[tuple[float | None, ...], tuple[Diagnostic, ...]]:
    """Prices per GPU-hour of all pools, with a warning for each example price used.

    Raises
    ------
    PlannerError
        PRICE_MISSING when the cost is to be minimised and a pool has no price at all.
    """
    prices, found = [], []
    asked = loaded.problem.objective == "cost" or (loaded.problem.budget is not None and loaded.problem.budget.per_hour is not None)
    for pool in loaded.fabric.pools:
        price, example = price_of(pool)
        prices.append(price)
        if price is None and asked:
            message = f"{pool.gpu.name} has no price, and the cost is asked"
            found.append(
                Diagnostic("PRICE_MISSING", message, "give the nodes a price, for example price: $24/h, or ask for objective: gpus")
            )
        elif example and pool.gpu.price is not None:
            source = pool.gpu.price
            message = f"{pool.gpu.name} has no price in the topology; an example is used: ${source.per_gpu_hour:.2f} a GPU-hour "
            message += f"({source.provider}, {source.date})"
            found.append(Diagnostic("PRICE_FROM_CATALOG", message, "give the nodes their own price", Severity.WARNING))
    if any(item.severity is Severity.ERROR for item in found):
        raise PlannerError(found)
    return tuple(prices), tuple(found)
