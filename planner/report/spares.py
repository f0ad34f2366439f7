"""GPUs that are kept free for lost replicas."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from planner.plan.document import DeploymentDocument, SpareDocument
from planner.report.words import per_hour, quantity_of, shape_words

MOST_PLACES = 4


def spare_lines(deployment: DeploymentDocument, currency: str) -> Iterator[str]:
    """One line for every shape that GPUs are kept free for: how many, where, and what they cost."""
    for shape, same in groupby(deployment.spares, key=lambda spare: spare.shape):
        spares = list(same)
        places = [_place(spare) for spare in spares]
        more = f" and {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
        prices = [spare.price_per_hour for spare in spares]
        price = None if None in prices else sum(price or 0.0 for price in prices)
        words = f"{shape_words(shape.tp, shape.pp, shape.ep, shape.dp)} on {shape.gpu}, {per_hour(price, currency)}"
        yield f"spares           {quantity_of(len(spares), 'set')} for {words}: {', '.join(places[:MOST_PLACES])}{more}"


def _place(spare: SpareDocument) -> str:
    """GPUs of one set by node."""
    nodes: dict[str, list[str]] = {}
    for rank in spare.ranks:
        nodes.setdefault(rank.node, []).append(str(rank.gpu))
    return " + ".join(f"{node} [{' '.join(gpus)}]" for node, gpus in nodes.items())
