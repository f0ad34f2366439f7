"""Links between GPUs: what the data sheet says, what the textbook profile uses and what was measured.

Bandwidths are bytes a second in one direction, per GPU for scale-up links (NVLink, xGMI, ICI, PCIe) and per port for NICs.
Four constants of two profiles ride on each link: `hockney_*` follow the alpha-beta calculator notes, `calibrated_*` are what a
point-to-point copy achieves. All come from `data/links.toml`, each with its basis and its public source.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Final

from planner.catalog.collectives import CollectiveSeries
from planner.catalog.facts import Fact
from planner.diagnostics import Diagnostic, PlannerError

KINDS: Final[tuple[str, ...]] = ("nvlink", "pcie", "xgmi", "ici", "infiniband", "roce", "efa", "ethernet")
NIC_KINDS: Final[tuple[str, ...]] = ("infiniband", "roce", "efa", "ethernet")

# Two speeds within this share of each other are one product: 63 and 64 GB/s, 50 GB/s and 400 Gb/s after encoding.
SAME_SPEED: Final = 0.02

_ALIASES: Final[dict[str, str]] = {
    "nvlink2": "nvlink2-v100",
    "nvlink3": "nvlink3-a100",
    "nvlink4": "nvlink4-h100",
    "nvlink4-h200": "nvlink4-h100",
    "nvlink5": "nvlink5-b200",
    "nvl72": "nvlink5-nvl72",
    "nvlink6": "nvlink6-rubin",
    "xgmi": "xgmi-mi300x",
    "xgmi-mi350x": "xgmi-mi355x",
    "pcie3": "pcie3-x16",
    "pcie4": "pcie4-x16",
    "pcie5": "pcie5-x16",
    "pcie6": "pcie6-x16",
    "ici": "ici-v5e",
    "infiniband": "infiniband-ndr-400",
    "infiniband-200": "infiniband-hdr-200",
    "infiniband-400": "infiniband-ndr-400",
    "infiniband-800": "infiniband-xdr-800",
    "infiniband-hdr": "infiniband-hdr-200",
    "infiniband-ndr": "infiniband-ndr-400",
    "infiniband-xdr": "infiniband-xdr-800",
    "efa-p4de": "efa-p4d",
    "efa-p5e": "efa-p5",
    "efa-p6-b200": "efa-p6",
}


@dataclass(frozen=True, slots=True)
class Link:
    """A kind of link with its nominal bandwidth and the constants of both profiles.

    `bandwidth` and `hockney_bandwidth`, `calibrated_bandwidth` [B/s] count one direction, per GPU or per port; the alphas [s] are per
    message. `peer_bandwidth` [B/s] is what one pair of GPUs gets at most, where that is less than `bandwidth` (a mesh reaches one peer through one
    of its links), else None. `measured` are collectives that somebody timed on links of his own; they stand before the catalog's series.
    """

    name: str
    kind: str
    bandwidth: Fact
    hockney_alpha: Fact
    hockney_bandwidth: Fact
    calibrated_alpha: Fact
    calibrated_bandwidth: Fact
    peer_bandwidth: Fact | None = None
    measured: tuple[CollectiveSeries, ...] = field(default=(), hash=False)


@dataclass(frozen=True, slots=True)
class Interconnect:
    """An interconnect of the communication cost study: alpha [s] and bandwidth [B/s], under the study's own name."""

    name: str
    alpha: float
    bandwidth: float
    source: str


@cache
def _table() -> Mapping[str, Any]:
    text = resources.files("planner.catalog").joinpath("data", "links.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _fact(entry: list[Any], sources: Mapping[str, str]) -> Fact:
    value, basis, source = entry[:3]
    return Fact(float(value), basis, sources[source], *entry[3:4])


@cache
def _links() -> dict[str, Link]:
    table = _table()
    sources: Mapping[str, str] = table["sources"]
    found: dict[str, Link] = {}
    for name, entry in table["links"].items():
        facts: dict[str, Any] = {key: _fact(value, sources) for key, value in entry.items() if key != "kind"}
        found[name] = Link(name=name, kind=entry["kind"], **facts)
    return found


def links() -> tuple[Link, ...]:
    """All links of the catalog in the order of the data file."""
    return tuple(_links().values())


def link(name: str) -> Link:
    """Look a link up by its catalog name or a short name ("nvlink4", "pcie5", "infiniband-400").

    Raises
    ------
    PlannerError
        UNKNOWN_LINK with the nearest names.
    """
    table = _links()
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    key = _ALIASES.get(key, key)
    if key in table:
        return table[key]
    near = difflib.get_close_matches(key, [*table, *_ALIASES], n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known links: {', '.join(table)}"
    raise PlannerError([Diagnostic("UNKNOWN_LINK", f"no link is called {name!r}", hint)])


def nic_link(kind: str, bytes_per_second: float) -> Link:
    """Find the link of a NIC of this kind and speed, or derive it from the nearest speed of the kind.

    Parameters
    ----------
    kind : str
        infiniband, roce, efa or ethernet.
    bytes_per_second : float
        Nominal speed of one port, one direction [B/s]; 400 Gb/s is 50e9.

    Returns
    -------
    Link
        The catalog's entry when one has that speed within 2 %; otherwise an entry named after kind and speed in Gb/s, whose alphas are those of the nearest
        speed of the kind (by ratio) and whose achieved bandwidth is the same share of nominal, with basis "derived".

    Raises
    ------
    PlannerError
        UNKNOWN_LINK_KIND, or BAD_LINK_SPEED for a speed that is not positive.
    """
    if kind not in NIC_KINDS:
        raise PlannerError([Diagnostic("UNKNOWN_LINK_KIND", f"no NIC is of kind {kind!r}", f"write one of {', '.join(NIC_KINDS)}")])
    if not 0.0 < bytes_per_second < float("inf"):
        message = f"a {kind} port of {bytes_per_second:g} B/s carries nothing"
        raise PlannerError([Diagnostic("BAD_LINK_SPEED", message, "write the speed of one port, such as 400Gb/s")])

    def distance(candidate: Link) -> float:
        ratio = candidate.bandwidth.value / bytes_per_second
        return max(ratio, 1.0 / ratio) - 1.0

    nearest = min((entry for entry in links() if entry.kind == kind), key=distance)
    if distance(nearest) <= SAME_SPEED:
        return nearest
    scale = bytes_per_second / nearest.bandwidth.value
    source = f"stated speed; shares and alphas of {nearest.name}"
    achieved = nearest.calibrated_bandwidth
    return Link(
        name=f"{kind}-{bytes_per_second * 8 / 1e9:g}",
        kind=kind,
        bandwidth=Fact(bytes_per_second, "derived", source),
        hockney_alpha=nearest.hockney_alpha,
        hockney_bandwidth=Fact(bytes_per_second, "derived", source),
        calibrated_alpha=nearest.calibrated_alpha,
        calibrated_bandwidth=Fact(achieved.value * scale, "derived", f"{source}: {achieved.source}"),
    )


@cache
def study_interconnects() -> dict[str, Interconnect]:
    """Interconnects of the communication cost study by its own names (pcie3_x16, pcie4_x16, nvlink3_a100, nvlink4_h100, gloo_measured).

    They are the constants that study prints and nothing else uses them: its NVLink figures are half the data sheet's.
    """
    study = _table()["study"]
    return {name: Interconnect(name, entry["alpha"], entry["bandwidth"], study["source"]) for name, entry in study["interconnects"].items()}
