"""A CSV of prices -> what a node costs an hour, with the slips that published lists have caught.

Columns: gpu, count and usd_per_hour, with instance and provider where known; the names of SkyPilot's catalogue (AcceleratorName, AcceleratorCount,
Price, InstanceType) are read too. A row without a price is passed over; a row that cannot be right is an error.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.catalog.gpus import Gpu, find_gpu
from planner.catalog.hardware_names import instance as instance_named
from planner.diagnostics import Diagnostic, Place, raise_errors
from planner.topology.importers.facts import several
from planner.topology.importers.lines import check_size, refusal

LARGEST: Final = 8 * 2**20
MOST_ROWS: Final = 200_000
MOST_OFFERS: Final = 50_000
MOST_FAULTS: Final = 50
# No published hourly price of one GPU has been outside this range [USD]; SkyPilot marks prices it does not know with 700.0.
_CHEAPEST, _DEAREST, _PLACEHOLDER = 0.02, 60.0, 700.0
_SIZES: Final = frozenset({1, 2, 3, 4, 6, 8, 16})
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu": ("gpu", "AcceleratorName"),
    "count": ("count", "AcceleratorCount"),
    "price": ("usd_per_hour", "Price"),
    "instance": ("instance", "InstanceType"),
    "provider": ("provider",),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """One usable row: price of the whole instance [USD/h]."""

    line: int
    instance: str
    provider: str
    gpu: str
    gpus: int
    price: float


@dataclass(frozen=True, slots=True)
class PriceList:
    """All usable rows of one file."""

    file: str
    offers: tuple[Offer, ...]

    def of_node(self, instance: str | None, gpu: str, gpus: int) -> tuple[Offer, str] | None:
        """Offer for a node, and why that one: its instance type, else the lower median of nodes with the same GPUs; None where there is none."""
        named = [offer for offer in self.offers if instance and _plain(offer.instance) == _plain(instance)]
        if named:
            return named[0], f"line {named[0].line}, instance {named[0].instance}"
        alike = sorted(
            (offer for offer in self.offers if (offer.gpu, offer.gpus) == (gpu, gpus)), key=lambda offer: (offer.price, offer.line)
        )
        if not alike:
            return None
        chosen = alike[(len(alike) - 1) // 2]
        which = f"the lower median of {len(alike)} rows" if len(alike) > 1 else "the only row"
        return chosen, f"line {chosen.line}, {which} with {gpus} x {gpu}: {chosen.provider} {chosen.instance}".rstrip(": ")


def _plain(instance: str) -> str:
    return instance.partition("(")[0].strip().lower()


def read_prices(text: str, file: str) -> PriceList:
    """Read and check a price list.

    Raises
    ------
    PlannerError
        Every row that cannot be right: PRICE_COUNT_WRONG, PRICE_PLACEHOLDER, PRICE_UNLIKELY, PRICE_NOT_A_NUMBER, PRICE_GPU_UNKNOWN; and
        PRICE_COLUMNS_MISSING, PRICES_EMPTY.
    """
    check_size(text, file, LARGEST)
    if text.count("\n") > MOST_ROWS:
        raise refusal("FILE_TOO_LARGE", f"has more than {MOST_ROWS:,} lines", "keep the rows of instances with GPUs", file)
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff")))
    faults: list[Diagnostic] = []
    offers: list[Offer] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        columns = {key: next((header.index(name) for name in names if name in header), None) for key, names in _COLUMNS.items()}
        missing = [_COLUMNS[key][0] for key in ("gpu", "count", "price") if columns[key] is None]
        if missing:
            message = f"has no column {', '.join(missing)}"
            raise refusal("PRICE_COLUMNS_MISSING", message, "begin with provider,instance,gpu,count,usd_per_hour", file, 1)
        places = {key: place for key, place in columns.items() if place is not None}
        for row in reader:
            values = {key: row[place].strip() for key, place in places.items() if place < len(row)}
            offer = _offer(values, reader.line_num, file, faults) if values.get("price") and values.get("gpu") else None
            if offer is not None:
                offers.append(offer)
            if len(offers) > MOST_OFFERS:
                hint = "keep the rows of instances that are planned with"
                raise refusal("TOO_MANY_VALUES", f"holds more than {MOST_OFFERS:,} prices", hint, file, reader.line_num)
            if len(faults) >= MOST_FAULTS:
                break
    except csv.Error as error:
        raise refusal("CSV_SYNTAX", f"is not comma-separated values: {error}", "save the list as CSV", file, reader.line_num) from None
    raise_errors(faults)
    if not offers:
        raise refusal("PRICES_EMPTY", "holds no price", "write rows with gpu, count and usd_per_hour", file)
    return PriceList(file, tuple(offers))


def _offer(values: Mapping[str, str], line: int, file: str, faults: list[Diagnostic]) -> Offer | None:
    def fault(code: str, message: str, hint: str) -> None:
        faults.append(Diagnostic(code, message[:300], hint, place=Place(file, line)))

    name, instance = values["gpu"][:80], values.get("instance", "")[:120]
    if _number(values["price"]) == _PLACEHOLDER:
        message = f"{instance or name} costs {values['price']}, which stands for an unknown price"
        fault("PRICE_PLACEHOLDER", message, "leave the row out")
        return None
    gpu = find_gpu(name)
    if gpu is None:
        # A list may hold types nobody plans with; only a name that fits several types is ambiguous and must be mended.
        known = instance_named(instance)
        if known is not None:
            hint = f"write {known.gpu}, which {known.name} has" if known.gpu else "`planner catalog gpus` lists the names"
            fault("PRICE_GPU_UNKNOWN", f"{instance}: no GPU of the catalog is called {name!r}", hint)
        return None
    count, price = _number(values.get("count", "")), _number(values["price"].removeprefix("$"))
    if count is None or price is None or count != int(count) or count < 1:
        fault("PRICE_NOT_A_NUMBER", f"count `{values.get('count', '')}` or price `{values['price']}` is no number", "write 8 and 23.60")
        return None
    gpus = int(count)
    problem = _count_problem(instance, gpu, gpus)
    if problem:
        fault("PRICE_COUNT_WRONG", f"{instance or name} is listed with {gpus} GPUs: {problem}", "correct the count, or leave the row out")
        return None
    if not _CHEAPEST <= price / gpus <= _DEAREST:
        hint = f"prices are of the whole instance, and one GPU costs {_CHEAPEST:g} to {_DEAREST:g} USD an hour"
        fault("PRICE_UNLIKELY", f"{instance or name} costs {price:g} for {several(gpus, 'GPU')}", hint)
        return None
    return Offer(line, instance, values.get("provider", "")[:80], gpu.name, gpus, price)


def _count_problem(instance: str, gpu: Gpu, gpus: int) -> str:
    known = instance_named(instance) if instance else None
    if known is not None and known.gpus != gpus:
        return f"{known.name} has {known.gpus}"
    if known is None and gpus not in _SIZES and gpus != gpu.scale_up_domain:
        return f"no server is sold with {gpus} {gpu.name}"
    if known is None and gpu.scale_up_domain == 8 and gpus > 8 and gpu.architecture != "volta":
        return f"boards of {gpu.name} hold 8"
    return ""


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
