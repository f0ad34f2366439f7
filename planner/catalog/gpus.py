"""GPUs: what each can hold, how fast it reads and computes, and how it is joined to its neighbours.

Every figure is a `Fact`. FLOP/s are dense ones (vendors like to print twice that, for 2:4 sparse weights) and, on GeForce cards, those with
fp32 accumulation, which is how inference engines multiply.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from planner.catalog.facts import Fact
from planner.catalog.nearest import plain, unknown_name
from planner.catalog.prices import PriceExample, example_price
from planner.catalog.read import read_table
from planner.catalog.reported_memory import GIB, MIB, reported_by_amd_driver, reported_by_driver, shown_by_smi


@dataclass(frozen=True)
class Gpu:
    """One type of GPU (or TPU chip).

    `memory` is the total its driver reports to a process [B], which budgets are taken from; `nominal_memory` the number in its name, counted in GiB
    as vendors count it [B]. `memory_bandwidth` is the peak of its HBM or GDDR [B/s]. `flops` maps a dtype of `catalog.dtypes` to dense FLOP/s (int8: operations/s);
    a dtype that is missing has no native arithmetic. `scale_up` names the link of its scale-up fabric in `catalog.links`, None where there is
    only PCIe, and `scale_up_domain` how many GPUs that fabric joins at most (2 = optional bridge between two cards). `pcie` names its host link.
    """

    name: str
    vendor: str
    memory: Fact
    nominal_memory: float
    memory_bandwidth: Fact
    flops: Mapping[str, Fact]
    compute_capability: float | None
    architecture: str
    scale_up: str | None
    scale_up_domain: int
    pcie: str
    price: PriceExample | None
    source: str
    aliases: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Number formats it multiplies natively."""
        return tuple(self.flops)

    def computes(self, dtype: str) -> bool:
        """Tell whether it multiplies this number format natively; weights in other formats are expanded first."""
        return dtype in self.flops

    def __hash__(self) -> int:
        return hash(self.name)


def _memory(row: Mapping[str, Any], note: str) -> Fact:
    nominal = row["nominal_gib"] * GIB
    known = row.get("memory", {})
    if "reported_gib" in known:
        return Fact(known["reported_gib"] * GIB, known.get("basis", "measured"), known["source"], note)
    if "nvidia_smi_mib" in known:
        return Fact(
            reported_by_driver(known["nvidia_smi_mib"] * MIB),
            "derived",
            known["source"],
            note or "nvidia-smi total less the driver's reserve",
        )
    rule = "nominal size less what ECC and the driver keep, by catalog.reported_memory"
    if row["vendor"] == "amd":
        return Fact(reported_by_amd_driver(nominal), "assumed", row["source"], note or rule)
    return Fact(reported_by_driver(shown_by_smi(nominal, row["memory_kind"])), "assumed", row["source"], note or rule)


def _gpu(row: Mapping[str, Any]) -> Gpu:
    basis, sources, notes = row.get("basis", {}), row.get("sources", {}), row.get("notes", {})

    def fact(figure: str, value: float) -> Fact:
        return Fact(value, basis.get(figure, "datasheet"), sources.get(figure, row["source"]), notes.get(figure, ""))

    return Gpu(
        name=row["name"],
        vendor=row["vendor"],
        memory=_memory(row, notes.get("memory", "")),
        nominal_memory=row["nominal_gib"] * GIB,
        memory_bandwidth=fact("bandwidth", row["bandwidth"]),
        flops={dtype: fact("flops", value) for dtype, value in row["flops"].items()},
        compute_capability=row["compute_capability"],
        architecture=row["architecture"],
        scale_up=row["scale_up"],
        scale_up_domain=row["scale_up_domain"],
        pcie=row["pcie"],
        price=example_price(row["name"]),
        source=row["source"],
        aliases=tuple(row.get("aliases", ())),
        notes=dict(notes),
    )


@cache
def gpus() -> tuple[Gpu, ...]:
    """Every GPU of the catalog, oldest generation first."""
    return tuple(_gpu(row) for row in read_table("gpus.json"))


@cache
def _by_name() -> Mapping[str, Gpu]:
    named: dict[str, Gpu] = {}
    for found in gpus():
        for name in (found.name, *found.aliases):
            named[plain(name)] = found
    # "l40s" for "l40s-48gb", but never "a100-sxm", which comes in two sizes.
    short: dict[str, list[Gpu]] = {}
    for found in gpus():
        short.setdefault(plain(found.name.rpartition("-")[0]), []).append(found)
    for name, candidates in short.items():
        if len(candidates) == 1:
            named.setdefault(name, candidates[0])
    return named


def gpu(name: str) -> Gpu:
    """Look up a GPU by catalog name, alias or the name its driver prints, without regard to case and punctuation.

    Raises
    ------
    PlannerError
        UNKNOWN_GPU, with the nearest names; also for a name that fits several ("A100" comes in two sizes and two forms).
    """
    found = find_gpu(name)
    if found is None:
        raise unknown_name("UNKNOWN_GPU", "GPU", name, [known.name for known in gpus()], "planner catalog gpus")
    return found


@lru_cache(maxsize=4096)
def find_gpu(name: str) -> Gpu | None:
    """GPU as `gpu` finds it, None where there is none: without the search for near names, for lists of many."""
    wanted = plain(name)
    for prefix in ("nvidia", "nvidiageforce", "geforce", "amd", "google"):
        if wanted.startswith(prefix) and wanted not in _by_name():
            wanted = wanted.removeprefix(prefix)
    return _by_name().get(wanted)
