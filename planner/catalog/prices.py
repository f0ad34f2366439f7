"""Dated example prices, for topologies that state none.

Prices change weekly; these exist so that a first plan can be costed at all, and every report that uses one says whose and when it was.
A topology's own price always wins.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.read import read_table


@dataclass(frozen=True, slots=True)
class PriceExample:
    """One published price of an instance type.

    `per_gpu_hour` is the instance's price divided by its GPUs [USD/h]; `terms` is `on-demand` or `reserved`. `date` is as the source gives it.
    """

    provider: str
    instance: str
    gpu: str
    gpus: int
    per_gpu_hour: float
    terms: str
    date: str
    source: str
    note: str = ""


_ROWS: list[PriceExample] = []


def prices() -> tuple[PriceExample, ...]:
    """Every price row of the catalog, in file order."""
    if not _ROWS:
        for row in read_table("prices.json"):
            per_gpu = row.pop("per_hour") / row["gpus"]
            _ROWS.append(PriceExample(per_gpu_hour=per_gpu, **row))
    return tuple(_ROWS)


def example_price(gpu: str) -> PriceExample | None:
    """Choose the example price of a GPU type by its catalog name, or None where no row exists.

    The rule: the lower median, per GPU, of the on-demand rows. The median is not moved by one dear or one cheap provider, and the lower one of an
    even number is a price that somebody really asked, so provider, instance and date can be shown. Reserved rows are facts to look at, never examples.
    """
    offers = sorted(
        (row for row in prices() if row.gpu == gpu and row.terms == "on-demand"), key=lambda row: (row.per_gpu_hour, row.provider)
    )
    return offers[(len(offers) - 1) // 2] if offers else None
