"""What a pass sends: all-reduces of a tensor-parallel group, dispatch to experts and back, hops between pipeline stages.

Times come from `cost.collectives_calibrated`, `collectives_hierarchical` and `collectives_experts`. Each is read off once per pair of paths and group size into a
curve over the message size (16 points an octave) and interpolated from there, so a million shapes cost one interpolation. A curve never falls: where a library has a
faster algorithm for more bytes it could pad a smaller message, and a smaller batch is never charged more than a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.catalog.dtypes import bytes_per_element
from planner.cost.collectives_calibrated import collective_time, send_constants
from planner.cost.collectives_experts import expert_exchange_time
from planner.cost.collectives_hierarchical import hierarchical_time
from planner.cost.distinct import distinct
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays
from planner.topology.paths import LinkPath

_PER_OCTAVE: Final = 16
_LOG_SIZES: Final = np.linspace(0.0, 40.0, 40 * _PER_OCTAVE + 1)  # 1 B (or one token) to 1 TiB

_SHARED_LANES: Final = (0.72, 0.6)


class Curve(NamedTuple):
    """Times [s] over `_LOG_SIZES`, their slopes to the next size [s an octave], and which of `labels` runs there."""

    times: FloatArray
    slopes: FloatArray
    codes: IntArray
    labels: tuple[str, ...]


def _rising(times: FloatArray, names: NDArray[np.str_]) -> Curve:
    rising = np.maximum.accumulate(times)
    labels = tuple(dict.fromkeys(names.tolist()))
    number = {label: index for index, label in enumerate(labels)}
    codes = np.array([number[name] for name in names.tolist()], dtype=np.int64)
    return Curve(rising, np.append(np.diff(rising) / np.diff(_LOG_SIZES), 0.0), codes, labels)


NOTHING: Final = _rising(np.zeros(_LOG_SIZES.shape), np.full(_LOG_SIZES.shape, "none"))


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
class Curves:
    """The curve of what the groups of every shape run, all `found` ones in one table: `start` [n] is where the curve of a shape begins in it."""

    start: IntArray
    found: tuple[Curve, ...]
    times: FloatArray
    slopes: FloatArray
    codes: IntArray
    labels: tuple[str, ...]

    @classmethod
    def of(cls, found: Sequence[Curve], where: IntArray) -> Curves:
        """Curves of shapes that have those numbered `where` [n]; the table holds each curve once."""
        different = {id(curve): curve for curve in found}
        number = {identity: index for index, identity in enumerate(different)}
        table = tuple(different.values())
        offsets = np.cumsum([0, *(len(one.labels) for one in table)]).tolist()
        return cls(
            start=np.array([number[id(curve)] for curve in found], dtype=np.int64)[where] * _LOG_SIZES.size,
            found=table,
            times=np.concatenate([one.times for one in table]),
            slopes=np.concatenate([one.slopes for one in table]),
            codes=np.concatenate([one.codes + offset for one, offset in zip(table, offsets, strict=False)]),
            labels=tuple(chain.from_iterable(one.labels for one in table)),
        )

    @property
    def where(self) -> IntArray:
        """Which of `found` every shape has [n]."""
        return self.start // _LOG_SIZES.size

    def at(self, rows: IntArray) -> Curves:
        """The same for some of the shapes."""
        return replace(self, start=self.start[rows])

    def seconds(self, sizes: FloatArray) -> FloatArray:
        """Times of messages by their size [s], shape [n], interpolated; below one byte or token as for one."""
        octaves = np.log2(np.maximum(sizes, 1.0))
        index = np.minimum((octaves * _PER_OCTAVE).astype(np.int64), _LOG_SIZES.size - 1)
        place = self.start + index
        octaves -= index / _PER_OCTAVE
        octaves *= self.slopes[place]
        octaves += self.times[place]
        return octaves

    def names(self, sizes: FloatArray) -> NDArray[np.str_]:
        """What runs at the nearest size of the table, shape [n]."""
        index = np.rint(np.log2(np.maximum(sizes, 1.0)) * _PER_OCTAVE).astype(np.int64)
        np.clip(index, 0, _LOG_SIZES.size - 1, out=index)
        return np.asarray(np.array(self.labels)[self.codes[self.start + index]], dtype=np.str_)


def _curves(
    setting: Setting,
    level: IntArray,
    ranks: IntArray,
    scopes: IntArray,
    curve: Callable[[LinkPath, LinkPath | None, int, int], Curve],
) -> Curves | None:
    """Curves of all groups of more than one rank; None where there is none."""
    codes, where = distinct(np.where(ranks > 1, (level * 4096 + scopes) * 65536 + ranks, 0))
    if not codes.any():
        return None
    found = []
    for code in codes.tolist():
        count, over, at = code % 65536, code // 65536 % 4096, code // 65536 // 4096
        path = setting.paths[at]
        over = min(max(over, 2), count) if path.across_scopes else 1
        if not code:
            found.append(NOTHING)
        else:
            found.append(curve(_inner(setting), path, count, over) if path.across_scopes else curve(path, None, count, over))
    return Curves.of(found, where)


@dataclass(frozen=True)
class Hops:
    """Sends between neighbouring stages of every shape [n]: start [s], bandwidth [B/s] and bytes of one token; 0, infinite and 0 with one stage."""

    start: FloatArray
    bandwidth: FloatArray
    token_bytes: FloatArray

    def at(self, rows: IntArray) -> Hops:
        """The same for some of the shapes."""
        return Hops(self.start[rows], self.bandwidth[rows], self.token_bytes[rows])


@dataclass(frozen=True)
class Traffic:
    """Everything that the shapes of one call send, ready to be asked for times at any number of tokens."""

    token_bytes: float
    data_parallel: FloatArray
    reductions: Curves | None
    dispatches: Curves | None
    gathers: Curves | None
    scatters: Curves | None
    hops: Hops | None

    def at(self, rows: IntArray) -> Traffic:
        """The same for some of the shapes, in any order and number."""

        def of(curves: Curves | None) -> Curves | None:
            return None if curves is None else curves.at(rows)

        return Traffic(
            token_bytes=self.token_bytes,
            data_parallel=self.data_parallel[rows],
            reductions=of(self.reductions),
            dispatches=of(self.dispatches),
            gathers=of(self.gathers),
            scatters=of(self.scatters),
            hops=None if self.hops is None else self.hops.at(rows),
        )

    @property
    def exchanges(self) -> bool:
        """Whether any shape exchanges tokens with experts on other data-parallel ranks."""
        return self.dispatches is not None or self.gathers is not None

    def reduce(self, rank_tokens: FloatArray) -> FloatArray:
        """Time of one all-reduce of `rank_tokens` hidden states over the tensor-parallel group [s], shape [n]."""
        return np.zeros(rank_tokens.shape) if self.reductions is None else self.reductions.seconds(rank_tokens * self.token_bytes)

    def exchange(self, stage_tokens: FloatArray) -> FloatArray:
        """Time of one dispatch to the experts and one combine [s], shape [n]; 0 without data parallelism.

        With expert parallelism a rank sends its share of the stage's tokens to their experts and gets the answers back. Without, experts are cut over the whole
        stage: all tokens are gathered and the sums scattered.
        """
        seconds = np.zeros(stage_tokens.shape)
        if self.dispatches is not None:
            seconds += self.dispatches.seconds(stage_tokens / self.data_parallel)
        if self.gathers is not None and self.scatters is not None:
            sizes = stage_tokens * self.token_bytes
            seconds += self.gathers.seconds(sizes) + self.scatters.seconds(sizes)
        return seconds

    def hop(self, rank_tokens: FloatArray) -> FloatArray:
        """Time of one hop between neighbouring pipeline stages [s], shape [n]; 0 with one stage. Every rank sends its part over its own path."""
        hops = self.hops
        return np.zeros(rank_tokens.shape) if hops is None else hops.start + rank_tokens * hops.token_bytes / hops.bandwidth

    def algorithm(self, rank_tokens: FloatArray) -> NDArray[np.str_]:
        """Name of the all-reduce that runs in a decode step, shape [n]; "none" without tensor parallelism."""
        return np.full(rank_tokens.shape, "none") if self.reductions is None else self.reductions.names(rank_tokens * self.token_bytes)


def _hops(setting: Setting, shapes: ShapeArrays) -> Hops | None:
    piped = shapes.pipeline_parallel > 1
    if not piped.any():
        return None
    starts, bandwidths = np.array([send_constants(path) for path in setting.paths]).T
    return Hops(
        start=np.where(piped, starts[shapes.replica_level], 0.0),
        bandwidth=np.where(piped, bandwidths[shapes.replica_level], np.inf),
        token_bytes=np.where(piped, token_bytes(setting) * setting.architecture.residual_streams / shapes.tensor_parallel, 0.0),
    )


def traffic(setting: Setting, shapes: ShapeArrays) -> Traffic:
    """Look up what the groups of every shape send through."""
    engine, card, architecture = setting.engine, setting.gpu.name, setting.architecture

    def collective(operation: str) -> Callable[[LinkPath, LinkPath | None, int, int], Curve]:
        return lambda inner, outer, count, over: _collective(operation, inner, outer, engine, -(-count // over), over, card)

    routed = [kind.feed_forward for kind in architecture.layer_kinds if kind.feed_forward is not None and kind.feed_forward.experts]
    dispatches = gathers = scatters = None
    if routed and (shapes.data_parallel > 1).any():
        part = routed[0]
        ranks = np.where(shapes.data_parallel > 1, shapes.tensor_parallel * shapes.data_parallel, 1)
        spread = shapes.expert_parallel > 1

        def experts(inner: LinkPath, outer: LinkPath | None, count: int, over: int) -> Curve:
            return _experts(inner, outer, engine, count, over, card, architecture.hidden_size, part.experts_per_token, part.experts)

        level, scopes = shapes.stage_level, shapes.stage_scopes
        dispatches = _curves(setting, level, np.where(spread, ranks, 1), scopes, experts)
        gathers = _curves(setting, level, np.where(spread, 1, ranks), scopes, collective("all_gather"))
        scatters = _curves(setting, level, np.where(spread, 1, ranks), scopes, collective("reduce_scatter"))
    return Traffic(
        token_bytes=token_bytes(setting),
        data_parallel=shapes.data_parallel.astype(np.float64),
        reductions=_curves(setting, shapes.tp_level, shapes.tensor_parallel, group_scopes(shapes), collective("all_reduce")),
        dispatches=dispatches,
        gathers=gathers,
        scatters=scatters,
        hops=_hops(setting, shapes),
    )
