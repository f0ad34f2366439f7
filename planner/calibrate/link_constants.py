"""Fits of one link -> its constants in both profiles, and the collectives as they were timed.

The textbook's alpha is the start of one hop of the ring, its bandwidth what one rank gets. The calibrated profile's constants belong to a send between two GPUs: they are read
off send and receive where that was timed. Otherwise they are the catalog's, scaled so that the planner's own form gives the measured start and the measured largest times, so
that engines' kernels, which were not timed, move along with what was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.calibrate.fit import CollectiveFit, ring_hops
from planner.catalog.collectives import OPERATIONS
from planner.catalog.links import NIC_KINDS, Link, link, nic_link
from planner.cost.collectives_calibrated import collective_time
from planner.cost.collectives_network import LAUNCH
from planner.diagnostics import PlannerError
from planner.problem.profile_document import Collective, Constants, Group, LinkProfile, Piece
from planner.quantities.formatting import format_bandwidth
from planner.topology.paths import LinkPath

# A run over several nodes tells the NICs' bandwidth only where they, and not the links inside, pace it by this factor.
PACED: Final = 1.15
BITS: Final = 8.0


@dataclass
class LinkFit:
    """Everything learnt about one link: its part of a profile, and what was assumed and refused on the way."""

    name: str
    fits: tuple[CollectiveFit, ...]
    profile: LinkProfile
    assumed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def known_link(name: str) -> Link | None:
    """Entry of a link by its canonical name: the catalog's, or one derived from a NIC's kind and speed; None for links between processors."""
    kind, _, speed = name.rpartition("-")
    try:
        return link(name)
    except PlannerError:
        return nic_link(kind, float(speed) * 1e9 / BITS) if kind in NIC_KINDS else None


def fit_link(name: str, fits: Sequence[CollectiveFit]) -> LinkFit:
    """Constants and collectives of a link from the fits of all runs over it."""
    entry = known_link(name)
    found = LinkFit(name, tuple(fits), LinkProfile())
    single = [fit for fit in fits if ranks_inside(fit) == 1 or (entry is not None and entry.kind not in NIC_KINDS)]
    hockney = _textbook(single, found)
    calibrated = _calibrated(entry, fits, single, found) if entry is not None else None
    found.profile = LinkProfile(
        source=_source(fits), hockney=hockney, calibrated=calibrated, collectives=tuple(_collectives(entry, fits, found))
    )
    return found


def ranks_inside(fit: CollectiveFit) -> int:
    """Ranks that shared a node; 1 where every rank had its own, or all shared one and the link is inside it."""
    nodes = fit.identity.nodes
    return fit.identity.ranks // nodes if nodes is not None and 1 < nodes < fit.identity.ranks else 1


def _source(fits: Sequence[CollectiveFit]) -> str:
    runs = [f"{fit.identity.operation} over {fit.identity.ranks} ranks" for fit in fits]
    library = " ".join(part for part in (fits[0].library, fits[0].version) if part)
    return f"{library}: {', '.join(dict.fromkeys(runs))}"[:1000]


def _constants(alpha: float | None, bandwidth: float | None) -> Constants | None:
    """Constants of which one at least is known."""
    return None if alpha is None and bandwidth is None else Constants(alpha=alpha, bandwidth=bandwidth)


def _textbook(fits: Sequence[CollectiveFit], found: LinkFit) -> Constants | None:
    """Alpha and bandwidth of the textbook's ring: of the all-reduce over most ranks, else of what was timed."""
    if not fits:
        found.refused.append("hockney: a run of several GPUs a node over several nodes says nothing of one hop; time one GPU a node")
        return None
    order = {"all_reduce": 0, "reduce_scatter": 1, "all_gather": 2, "send_receive": 3, "all_to_all": 4}
    ranked = sorted(fits, key=lambda fit: (order[fit.identity.operation], -fit.identity.ranks))
    alpha = next((fit.alpha for fit in ranked if fit.alpha is not None), None)
    bandwidth = next((fit.bandwidth for fit in ranked if fit.bandwidth is not None), None)
    return _constants(alpha, bandwidth)


def _calibrated(entry: Link, fits: Sequence[CollectiveFit], single: Sequence[CollectiveFit], found: LinkFit) -> Constants | None:
    sends = [fit for fit in fits if fit.identity.operation == "send_receive"]
    if sends:
        return _constants(sends[0].start, sends[0].bandwidth)
    others = [fit for fit in single if fit.library == "nccl"]
    if not others:
        several = [fit for fit in fits if fit.library == "nccl"]
        return _across(several[-1], found) if several else None
    chosen = max(others, key=lambda fit: (fit.identity.operation == "all_reduce", fit.identity.ranks))
    if entry.kind in NIC_KINDS:
        return _constants(_network_alpha(chosen), chosen.bandwidth)
    return _scaled(entry, chosen, found)


def _scaled(entry: Link, fit: CollectiveFit, found: LinkFit) -> Constants | None:
    """The catalog's constants, scaled by measured over predicted start and by predicted over measured time of the largest size."""
    operation, ranks = fit.identity.operation, fit.identity.ranks
    path = _path(entry)
    largest = np.array([0.0, fit.sizes[-1]])
    start, time = (float(value) for value in collective_time(operation, path, "nccl", ranks, largest, gpu=_gpu_name(fit))[0])
    alpha = bandwidth = None
    if fit.start is not None and start > 0.0:
        alpha = entry.calibrated_alpha.value * fit.start / start
    if fit.bandwidth is not None and time > start:
        bandwidth = entry.calibrated_bandwidth.value * fit.bandwidth / (fit.volume * fit.sizes[-1] / (time - start))
    if alpha is None and bandwidth is None:
        return None
    found.assumed.append(f"calibrated: the catalog's send over {entry.name}, scaled as {operation} over {ranks} ranks came out")
    return _constants(alpha, bandwidth)


def _network_alpha(fit: CollectiveFit) -> float | None:
    """Alpha of a send for which the network's form gives the measured start."""
    if fit.start is None:
        return None
    ranks = fit.identity.ranks
    if fit.identity.operation == "all_reduce":
        hops = min(ring_hops("all_reduce", ranks), 2.0 * math.ceil(math.log2(ranks)))
    else:
        hops = 1.0 + math.log2(ranks) if fit.identity.operation == "all_to_all" else ranks - 1.0
    hop = fit.start / hops
    return hop + LAUNCH if hop >= LAUNCH else 2.0 * hop


def _across(fit: CollectiveFit, found: LinkFit) -> Constants | None:
    """Constants of NICs from a run of several GPUs on each of several nodes, by the hierarchical form: inside, across on every rail, inside."""
    part, inside = fit.identity.gpu, ranks_inside(fit)
    if part is None or fit.identity.operation != "all_reduce":
        found.refused.append(
            "calibrated: what the links inside the nodes take is not known; time one GPU a node, or all_reduce with a device list"
        )
        return None
    inner = _path(link(part.scale_up or part.pcie))
    scopes = fit.identity.ranks // inside
    sizes = np.array([0.0, fit.sizes[-1]])
    halves = [collective_time(operation, inner, "nccl", inside, sizes, gpu=part.name)[0] for operation in ("reduce_scatter", "all_gather")]
    start_inside = float(halves[0][0] + halves[1][0])
    one = collective_time("all_reduce", inner, "nccl", inside, sizes, gpu=part.name)[0]
    move_inside = min(float(halves[0][1] + halves[1][1]) - start_inside, float(one[1] - one[0]))
    alpha = bandwidth = None
    if fit.start is not None and fit.start > start_inside:
        hop = (fit.start - start_inside) / min(ring_hops("all_reduce", scopes), 2.0 * math.ceil(math.log2(scopes)))
        alpha = hop + LAUNCH if hop >= LAUNCH else 2.0 * hop
    if fit.bandwidth is not None:
        moved = fit.volume * fit.sizes[-1] / fit.bandwidth
        rail = 2.0 * (scopes - 1) / scopes * fit.sizes[-1] / inside / moved
        if moved > PACED * move_inside:
            bandwidth = rail
        else:
            found.refused.append(f"bandwidth of a NIC: the links inside pace the run; a GPU gets {format_bandwidth(rail)} or more across")
    found.assumed.append(f"calibrated: inside the nodes as the catalog has {inner.link.name}, one NIC a GPU, hierarchical")
    return _constants(alpha, bandwidth)


def _path(entry: Link) -> LinkPath:
    peer = entry.peer_bandwidth.value if entry.peer_bandwidth is not None else entry.bandwidth.value
    return LinkPath("domain", entry, entry.bandwidth.value, peer, 2)


def _gpu_name(fit: CollectiveFit) -> str | None:
    return None if fit.identity.gpu is None else fit.identity.gpu.name


def _collectives(entry: Link | None, fits: Sequence[CollectiveFit], found: LinkFit) -> list[Collective]:
    """Whole collectives, those of one operation and one form of group together."""
    grouped: dict[tuple[str, str, int], list[CollectiveFit]] = {}
    for fit in fits:
        if fit.identity.operation not in OPERATIONS:
            continue
        if fit.start is None:
            # Without small sizes the curve would be carried to messages that an engine sends and nobody timed.
            found.refused.append(f"{fit.identity.operation} over {fit.identity.ranks} ranks as a whole: no small sizes were timed")
            continue
        inside = ranks_inside(fit) if entry is not None and entry.kind in NIC_KINDS else 1
        grouped.setdefault((fit.identity.operation, fit.library, inside), []).append(fit)
    return [_collective(operation, library, inside, members) for (operation, library, inside), members in grouped.items()]


def _collective(operation: str, library: str, inside: int, members: Sequence[CollectiveFit]) -> Collective:
    by_ranks = {fit.identity.ranks: fit for fit in members}
    form, c0, alpha = start_form(operation, {ranks: fit.start for ranks, fit in by_ranks.items() if fit.start is not None})
    errors = [fit.held_out.median for fit in members if fit.held_out is not None]
    return Collective.model_validate(
        {
            "operation": operation,
            "library": library,
            "version": members[-1].version,
            "form": form,
            "c0": c0,
            "alpha": alpha,
            "ranks_inside": inside,
            "held_out": float(np.median(errors)) if errors else None,
            "groups": tuple(
                Group(
                    ranks=ranks,
                    pieces=tuple(Piece(below=one.below, last=one.last, start=one.start, bandwidth=one.bandwidth) for one in fit.segments()),
                )
                for ranks, fit in sorted(by_ranks.items())
            ),
        }
    )


def start_form(operation: str, starts: dict[int, float]) -> tuple[str, float, float]:
    """Form, c0 [s] and alpha [s] of starts over ranks: c0 + alpha x hops of the ring, or of the tree where that fits an all-reduce better."""
    ranks = np.array(sorted(starts), dtype=np.float64)
    times = np.array([starts[int(count)] for count in ranks])
    forms = {"ring": np.array([ring_hops(operation, int(count)) for count in ranks])}
    if operation == "all_reduce" and len(ranks) > 2:
        forms["tree"] = 2.0 * np.ceil(np.log2(ranks) - 1e-12)
    best = ("ring", 0.0, float(times[-1] / forms["ring"][-1]), math.inf)
    for form, hops in forms.items():
        if len(ranks) == 1:
            continue
        slope, intercept = (float(value) for value in np.polyfit(hops, times, 1, w=1.0 / times))
        c0, alpha = (intercept, slope) if intercept >= 0.0 and slope >= 0.0 else (0.0, float(np.median(times / hops)))
        error = float(np.mean(np.abs(c0 + alpha * hops - times) / times))
        if error < best[3]:
            best = (form, c0, alpha, error)
    return best[:3]
