"""What a pass sends: all-reduces of a tensor-parallel group, dispatch to experts and back, hops between pipeline stages.

Times come from `cost.collectives_calibrated`, `collectives_hierarchical` and `collectives_experts`. Each is read off once per pair of paths and group size into a
curve over the message size (16 points an octave) and interpolated from there, so a million shapes cost one interpolation. A curve never falls: where a library has a
faster algorithm for more bytes it could pad a smaller message, and a smaller batch is never charged more than a larger one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.dtypes import bytes_per_element
from planner.cost.collectives_calibrated import collective_time, send_time
from planner.cost.collectives_experts import expert_exchange_time
from planner.cost.collectives_hierarchical import hierarchical_time
from planner.cost.distinct import distinct
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays
from planner.topology.paths import LinkPath

_PER_OCTAVE: Final = 16
_LOG_SIZES: Final = np.linspace(0.0, 40.0, 40 * _PER_OCTAVE + 1)  # 1 B (or one token) to 1 TiB

_SHARED_LANES: Final = (0.72, 0.6)

Curve = tuple[FloatArray, NDArray[np.str_]]


def _rising(times: FloatArray, names: NDArray[np.str_]) -> Curve:
    return np.maximum.accumulate(times), names


@lru_cache(maxsize=1024)
def _collective(operation: str, inner: LinkPath, outer: LinkPath | None, engine: str, inside: int, scopes: int, gpu: str) -> Curve:
    """Times [s] and algorithms of one collective over the sizes of `_LOG_SIZES` [B]."""
    sizes = 2.0**_LOG_SIZES
    if outer is None:
        times, names = collective_time(operation, inner, engine, inside, sizes, gpu=gpu)
        return _rising(np.maximum(times, _pcie_floor(operation, inner, inside, sizes)), names)
    return _rising(*hierarchical_time(operation, inner, outer, engine, inside, scopes, sizes, gpu=gpu))


@lru_cache(maxsize=1024)
def _experts(
    inner: LinkPath, outer: LinkPath | None, engine: str, ranks: int, scopes: int, gpu: str, hidden: int, active: int, experts: int
) -> Curve:
    """Times [s] of dispatch and combine over tokens a rank, by the faster of the kernels for few and for many tokens."""
    tokens = 2.0**_LOG_SIZES
    best = np.full(tokens.shape, np.inf)
    for kernel in ("low_latency", "throughput"):
        exchange = expert_exchange_time(
            inner, outer, engine, ranks, scopes, tokens, hidden, active, experts, kernel=kernel, gpu=gpu
        )  # fmt: skip
        best = np.minimum(best, exchange.dispatch + exchange.combine)
    return _rising(best, np.full(tokens.shape, "experts"))


def _pcie_floor(operation: str, path: LinkPath, ranks: int, sizes: FloatArray) -> FloatArray:
    """Least time of a collective over PCIe [s]: its ring volume at what the lanes carry while all ranks use them; 0 for other or measured links.

    Series of PCIe boxes end at small messages. A box of four keeps 0.72 of the copy bandwidth, one of eight over two sockets 0.6: 14 and 12 GB/s behind
    x16 of the fourth generation, which Llama-3-70B shows on four and eight A100 (TensorRT-LLM 0.14 performance overview, mean of eight lengths).
    """
    if path.link.kind != "pcie" or path.link.measured or ranks <= 1:
        return np.zeros(sizes.shape)
    volume = (2.0 if operation == "all_reduce" else 1.0) * (ranks - 1) / ranks * sizes
    share = _SHARED_LANES[0] if ranks <= 4 else _SHARED_LANES[1]
    achieved = path.link.calibrated_bandwidth.value / path.link.bandwidth.value * path.bandwidth
    return np.asarray(volume / (achieved * share), dtype=np.float64)


def _read(curve: FloatArray, sizes: FloatArray) -> FloatArray:
    """Times of messages by their size [s]; below one byte or token as for one."""
    return np.asarray(np.interp(np.log2(np.maximum(sizes, 1.0)), _LOG_SIZES, curve), dtype=np.float64)


def _inner(setting: Setting) -> LinkPath:
    """Largest level inside a scale-up scope."""
    inside = [path for path in setting.paths if not path.across_scopes]
    return inside[-1] if inside else setting.paths[0]


def group_scopes(shapes: ShapeArrays) -> IntArray:
    """Scale-up scopes that one tensor-parallel group spans, a stage's GPUs lying evenly over its scopes."""
    per_scope = np.maximum(shapes.tensor_parallel * shapes.data_parallel // np.maximum(shapes.stage_scopes, 1), 1)
    return np.asarray(-(-shapes.tensor_parallel // per_scope), dtype=np.int64)


def token_bytes(setting: Setting) -> float:
    """Bytes of the hidden state of one token, in the model's own 16 bits whatever the weights are [B]."""
    return setting.architecture.hidden_size * min(bytes_per_element(setting.architecture.dtype), 2.0)


@dataclass(frozen=True)
class _Route:
    """Rows of shapes whose groups are joined alike, and the curve of what they run."""

    rows: NDArray[np.int64] | slice
    curve: Curve


def _routes(
    setting: Setting,
    level: IntArray,
    ranks: IntArray,
    scopes: IntArray,
    curve: Callable[[LinkPath, LinkPath | None, int, int], Curve],
) -> tuple[_Route, ...]:
    """Routes of all groups of more than one rank."""
    codes = np.where(ranks > 1, (level * 4096 + scopes) * 65536 + ranks, 0)
    found = []
    for code in distinct(codes)[0].tolist():
        if not code:
            continue
        rows = np.flatnonzero(codes == code)
        path, count = setting.paths[int(level[rows[0]])], int(ranks[rows[0]])
        over = min(max(int(scopes[rows[0]]), 2), count) if path.across_scopes else 1
        sent = curve(_inner(setting), path, count, over) if path.across_scopes else curve(path, None, count, over)
        found.append(_Route(slice(None) if rows.size == codes.size else rows, sent))
    return tuple(found)


def _times(routes: tuple[_Route, ...], sizes: FloatArray) -> FloatArray:
    times = np.zeros(sizes.shape)
    for route in routes:
        times[route.rows] = _read(route.curve[0], sizes[route.rows])
    return times


@dataclass(frozen=True)
class Traffic:
    """Everything that the shapes of one call send, ready to be asked for times at any number of tokens."""

    token_bytes: float
    data_parallel: FloatArray
    reductions: tuple[_Route, ...]
    dispatches: tuple[_Route, ...]
    gathers: tuple[_Route, ...]
    scatters: tuple[_Route, ...]
    hops: tuple[tuple[NDArray[np.int64], LinkPath, FloatArray], ...]

    def reduce(self, rank_tokens: FloatArray) -> FloatArray:
        """Time of one all-reduce of `rank_tokens` hidden states over the tensor-parallel group [s], shape [n]."""
        return _times(self.reductions, rank_tokens * self.token_bytes)

    def exchange(self, stage_tokens: FloatArray) -> FloatArray:
        """Time of one dispatch to the experts and one combine [s], shape [n]; 0 without data parallelism.

        With expert parallelism a rank sends its share of the stage's tokens to their experts and gets the answers back. Without, experts are cut over the whole
        stage: all tokens are gathered and the sums scattered.
        """
        seconds = np.zeros(stage_tokens.shape)
        if self.dispatches:
            seconds += _times(self.dispatches, stage_tokens / self.data_parallel)
        if self.gathers:
            sizes = stage_tokens * self.token_bytes
            seconds += _times(self.gathers, sizes) + _times(self.scatters, sizes)
        return seconds

    def hop(self, rank_tokens: FloatArray) -> FloatArray:
        """Time of one hop between neighbouring pipeline stages [s], shape [n]; 0 with one stage. Every rank sends its part over its own path."""
        seconds = np.zeros(rank_tokens.shape)
        for rows, path, share in self.hops:
            seconds[rows] = send_time(path, rank_tokens[rows] * share)
        return seconds

    def algorithm(self, rank_tokens: FloatArray) -> NDArray[np.str_]:
        """Name of the all-reduce that runs in a decode step, shape [n]; "none" without tensor parallelism."""
        names = np.full(rank_tokens.shape, "none", dtype="<U32")
        index = np.rint(np.log2(np.maximum(rank_tokens * self.token_bytes, 1.0)) * _PER_OCTAVE).astype(np.int64)
        np.clip(index, 0, _LOG_SIZES.size - 1, out=index)
        for route in self.reductions:
            names[route.rows] = route.curve[1][index[route.rows]]
        return names


def traffic(setting: Setting, shapes: ShapeArrays) -> Traffic:
    """Look up what the groups of every shape send through."""
    engine, card, architecture = setting.engine, setting.gpu.name, setting.architecture

    def collective(operation: str) -> Callable[[LinkPath, LinkPath | None, int, int], Curve]:
        return lambda inner, outer, count, over: _collective(operation, inner, outer, engine, -(-count // over), over, card)

    routed = [kind.feed_forward for kind in architecture.layer_kinds if kind.feed_forward is not None and kind.feed_forward.experts]
    dispatches: tuple[_Route, ...] = ()
    gathers: tuple[_Route, ...] = ()
    scatters: tuple[_Route, ...] = ()
    if routed and (shapes.data_parallel > 1).any():
        part = routed[0]
        ranks = np.where(shapes.data_parallel > 1, shapes.tensor_parallel * shapes.data_parallel, 1)
        spread = shapes.expert_parallel > 1

        def experts(inner: LinkPath, outer: LinkPath | None, count: int, over: int) -> Curve:
            return _experts(inner, outer, engine, count, over, card, architecture.hidden_size, part.experts_per_token, part.experts)

        level, scopes = shapes.stage_level, shapes.stage_scopes
        dispatches = _routes(setting, level, np.where(spread, ranks, 1), scopes, experts)
        gathers = _routes(setting, level, np.where(spread, 1, ranks), scopes, collective("all_gather"))
        scatters = _routes(setting, level, np.where(spread, 1, ranks), scopes, collective("reduce_scatter"))
    size = token_bytes(setting) * architecture.residual_streams
    piped = shapes.pipeline_parallel > 1
    hops = []
    for at in distinct(shapes.replica_level[piped])[0].tolist():
        rows = np.flatnonzero(piped & (shapes.replica_level == at))
        hops.append((rows, setting.paths[int(at)], size / shapes.tensor_parallel[rows]))
    return Traffic(
        token_bytes=token_bytes(setting),
        data_parallel=shapes.data_parallel.astype(np.float64),
        reductions=_routes(setting, shapes.tp_level, shapes.tensor_parallel, group_scopes(shapes), collective("all_reduce")),
        dispatches=dispatches,
        gathers=gathers,
        scatters=scatters,
        hops=tuple(hops),
    )
