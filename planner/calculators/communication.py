"""Communication of one pass by its terms: which algorithm, how many calls, hops, bytes, alpha and beta, and what each term takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.calculators.layouts import shape_arrays
from planner.calculators.question import Case
from planner.catalog.dtypes import bytes_per_element
from planner.cost.collectives import all_reduce_volume, ring_hops, tree_hops
from planner.cost.hockney import ONE_SHOT_KINDS, SMALL_MESSAGE, link_constants
from planner.cost.paper import ONE_SHOT_START
from planner.cost.traffic import token_bytes, traffic
from planner.plan.shape import Degrees
from planner.topology.paths import LinkPath

HALF_RING: Final = "half-ring-across"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One kind of communication of a pass: `calls` of it, each with `hops` and `volume` bytes a rank [B], over `link`.

    `alpha` [s] is charged per hop (one-shot: per call), `beta` [s/B] per byte. `chosen` = this is the algorithm that runs. `latency` and `transfer`
    are the two terms of all calls together [s].
    """

    kind: str
    algorithm: str
    link: str
    calls: int
    message: float
    hops: float
    volume: float
    alpha: float
    beta: float
    latency: float
    transfer: float
    chosen: bool = True

    @property
    def total(self) -> float:
        """Both terms [s]."""
        return self.latency + self.transfer


def exchanges(case: Case, degrees: Degrees, tokens: float, chosen: str) -> tuple[Exchange, ...]:
    """Exchanges of a pass that carries `tokens` tokens a data-parallel rank; `chosen` names the all-reduce that runs.

    The textbook profile lists every legal algorithm beside the one that is fastest; the calibrated one has only what a library runs.
    """
    if case.setting.profile == "hockney":
        return (*_paper_reduces(case, degrees, tokens), *_paper_hops(case, degrees, tokens), *_paper_experts(case, degrees, tokens))
    return _measured(case, degrees, tokens, chosen)


def all_reduce_calls(case: Case, degrees: Degrees) -> int:
    """All-reduces of one pass through all layers: one after each mixer and one after each feed-forward part."""
    del degrees
    kinds = case.setting.architecture.kind_counts()
    return sum(
        count * ((kind.attention is not None or kind.recurrent is not None) + (kind.feed_forward is not None)) for kind, count in kinds
    )


def _message(case: Case, tokens: float) -> float:
    return tokens * case.setting.architecture.hidden_size * bytes_per_element(case.setting.precision.activations)


def _exchange(
    kind: str, algorithm: str, path: LinkPath, calls: int, message: float, hops: float, volume: float, start: float | None = None
) -> Exchange:
    """One exchange by alpha x hops + beta x volume; `start` is a flat alpha of a call in place of the link's."""
    alpha, bandwidth = link_constants(path)
    alpha = start if start is not None else alpha
    latency, transfer = calls * hops * alpha, calls * volume / bandwidth
    return Exchange(kind, algorithm, path.link.name, calls, message, hops, volume, alpha, 1.0 / bandwidth, latency, transfer)


def _paper_reduces(case: Case, degrees: Degrees, tokens: float) -> list[Exchange]:
    ranks, message = degrees.tensor_parallel, _message(case, tokens)
    if ranks == 1:
        return []
    calls = all_reduce_calls(case, degrees)
    path = case.hardware.path(case.hardware.layout(degrees).tp_level)
    volume = float(all_reduce_volume(ranks, message))
    if not path.across_scopes:
        return _inside(path, calls, ranks, message)
    half = _exchange("all-reduce", HALF_RING, path, calls, message, float(ring_hops(ranks)) / 2.0, volume / 2.0)
    inner = [item for item in case.setting.paths if not item.across_scopes and item.level != "gpu"]
    inside = min(_inside(inner[-1], calls, ranks, message), key=lambda item: item.total) if inner else None
    # A group across scopes never costs less than the same group inside one.
    return [half] if inside is None or half.total >= inside.total else [inside]


def _inside(path: LinkPath, calls: int, ranks: int, message: float) -> list[Exchange]:
    """Every legal algorithm inside a scope, the fastest marked as chosen."""
    volume = float(all_reduce_volume(ranks, message))
    found = [_exchange("all-reduce", "ring", path, calls, message, float(ring_hops(ranks)), volume)]
    if message <= SMALL_MESSAGE:
        found.append(_exchange("all-reduce", "tree", path, calls, message, float(tree_hops(ranks)), volume))
        if path.link.kind in ONE_SHOT_KINDS:
            found.append(_exchange("all-reduce", "one-shot", path, calls, message, 1.0, volume, ONE_SHOT_START))
    best = min(found, key=lambda item: item.total)
    return [replace(item, chosen=item is best) for item in found]


def _paper_hops(case: Case, degrees: Degrees, tokens: float) -> list[Exchange]:
    if degrees.pipeline_parallel == 1:
        return []
    path = case.hardware.path(case.hardware.layout(degrees).replica_level)
    message = _message(case, tokens)
    return [_exchange("pipeline hop", "send", path, degrees.pipeline_parallel - 1, message, 1.0, message)]


def _paper_experts(case: Case, degrees: Degrees, tokens: float) -> list[Exchange]:
    """Dispatch and combine of each MoE layer, or the gather and scatter of experts merely cut over data-parallel ranks."""
    ranks = degrees.expert_parallel if degrees.expert_parallel > 1 else degrees.stage_gpus if degrees.data_parallel > 1 else 1
    if ranks == 1:
        return []
    path = case.hardware.path(case.hardware.layout(degrees).stage_level)
    found = []
    for kind, count in case.setting.architecture.kind_counts():
        part = kind.feed_forward
        if part is None or not part.experts:
            continue
        if degrees.expert_parallel > 1:
            message = part.experts_per_token * _message(case, tokens)
            found.append(_exchange("experts", "all-to-all", path, 2 * count, message, ranks - 1.0, message))
        else:
            message = degrees.data_parallel * _message(case, tokens)
            volume = float(all_reduce_volume(ranks, message))
            found.append(_exchange("experts", "gather-scatter", path, count, message, float(ring_hops(ranks)), volume))
    return found


def _measured(case: Case, degrees: Degrees, tokens: float, chosen: str) -> tuple[Exchange, ...]:
    """Exchanges as the libraries were measured: latency is what the same call takes with one token, transfer the rest."""
    setting, layout = case.setting, case.hardware.layout(degrees)
    sent = traffic(setting, shape_arrays(case, [(degrees, max(degrees.data_parallel, 1))]))
    size, one = np.array([tokens]), np.array([1.0])
    found = []

    def add(kind: str, name: str, level: int, calls: int, hops: float, volume: float, seconds: tuple[float, float]) -> None:
        path = case.hardware.path(level)
        share = path.bandwidth / path.link.bandwidth.value
        alpha, beta = path.link.calibrated_alpha.value, 1.0 / (path.link.calibrated_bandwidth.value * share)
        message = tokens * token_bytes(setting)
        latency, transfer = calls * seconds[0], calls * max(seconds[1] - seconds[0], 0.0)
        found.append(Exchange(kind, name, path.link.name, calls, message, hops, volume, alpha, beta, latency, transfer))

    ranks = degrees.tensor_parallel
    if ranks > 1:
        name = chosen if chosen != "none" else str(sent.algorithm(size)[0])
        hops, volume = _library_terms(case, name, ranks, tokens * token_bytes(setting))
        seconds = (float(sent.reduce(one)[0]), float(sent.reduce(size)[0]))
        add("all-reduce", name, layout.tp_level, all_reduce_calls(case, degrees), hops, volume, seconds)
    if degrees.pipeline_parallel > 1:
        seconds = (float(sent.hop(one)[0]), float(sent.hop(size)[0]))
        volume = tokens * token_bytes(setting) / ranks
        add("pipeline hop", "send", layout.replica_level, degrees.pipeline_parallel - 1, 1.0, volume, seconds)
    moe = [
        (kind.feed_forward, count) for kind, count in setting.architecture.kind_counts() if kind.feed_forward and kind.feed_forward.experts
    ]
    if moe and degrees.data_parallel > 1:
        stage = size * degrees.data_parallel
        first = one * degrees.data_parallel
        seconds = (float(sent.exchange(first)[0]), float(sent.exchange(stage)[0]))
        volume = 2.0 * tokens * token_bytes(setting) * moe[0][0].experts_per_token
        name = "dispatch-combine" if degrees.expert_parallel > 1 else "gather-scatter"
        add("experts", name, layout.stage_level, sum(count for _, count in moe), degrees.stage_gpus - 1.0, volume, seconds)
    return tuple(found)


def _library_terms(case: Case, name: str, ranks: int, message: float) -> tuple[float, float]:
    """Hops and bytes a rank [B] of an all-reduce by the name of its algorithm; across scopes the hops of both levels, and the bytes over the network."""
    if name.startswith("hierarchical"):
        scopes = -(-ranks // case.hardware.domain)
        inside = -(-ranks // scopes)
        across = tree_hops(scopes) if "tree" in name else ring_hops(scopes)
        return float(across + ring_hops(inside)), float(all_reduce_volume(scopes, message / inside))
    hops = float(tree_hops(ranks)) if "tree" in name else float(ring_hops(ranks)) if "ring" in name else 1.0
    return hops, float(all_reduce_volume(ranks, message))
