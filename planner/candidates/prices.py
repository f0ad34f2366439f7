"""The price of a GPU-hour in every pool: the topology's own, else the catalog's dated example, and never a silent nothing."""

from __future__ import annotations

from planner.diagnostics import Diagnostic, PlannerError, Severity
from planner.problem.load import LoadedProblem


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
        price = pool.price_per_gpu
        prices.append(price)
        if price is None and asked:
            message = f"{pool.gpu.name} has no price, and the cost is asked"
            found.append(
                Diagnostic("PRICE_MISSING", message, "give the nodes a price, for example price: $24/h, or ask for objective: gpus")
            )
        elif price is not None and pool.price_source != "topology":
            message = f"{pool.gpu.name} has no price in the topology; an example is used: {price:.2f} a GPU-hour ({pool.price_source})"
            found.append(Diagnostic("PRICE_FROM_CATALOG", message, "give the nodes their own price", Severity.WARNING))
    if any(item.severity is Severity.ERROR for item in found):
        raise PlannerError(found)
    return tuple(prices), tuple(found)
