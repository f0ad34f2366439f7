"""Time of matrix multiplications: reading the weights or multiplying with them, whichever takes longer.

Tensors of one layer kind that ranks cut alike are summed once; a call then costs a few vector operations per layer kind, however many shapes there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.architecture import FeedForward, LayerKind, ModelArchitecture
from planner.catalog.expert_tiles import expert_tile
from planner.catalog.gpus import Gpu
from planner.catalog.step_times import StepConstants, of_dtype, read_share
from planner.cost.memory_weights import is_kept_high, tensor_bytes
from planner.cost.setting import FloatArray, IntArray, Precision, Setting, ShapeArrays, per_row
from planner.cost.tensor import EXPERT_SPLITS, Tensor
from planner.cost.tensors import head_tensors, layer_tensors, rank_share

MOVED_BYTES = 2.0  # per element of a hidden state on its way into and out of experts


@dataclass(frozen=True)
class Matrices:
    """Weights of one layer (or of the head) on the fullest rank, per shape [n].

    `read` [s] is the time to read them once, `multiply` [s] the time to multiply one token of the rank with them. `expert_read` [s] reads every
    routed expert of the rank, `expert_multiply` [s] is the rank's part for one token of the whole stage, `expert_move` [s] moves one such token's copies in
    and out of the experts when one rank serves them all. `expert_largest` is what `largest_draw` says of the ranks that share the experts. `filled` [tokens] of the
    stage are multiplied besides by kernels that compute a tile for every expert (`catalog.expert_tiles`).
    """

    read: FloatArray
    multiply: FloatArray
    expert_read: FloatArray
    expert_multiply: FloatArray
    expert_largest: FloatArray
    expert_move: FloatArray | float = 0.0
    experts: int = 0
    experts_per_token: int = 0
    filled: FloatArray | None = None

    def at(self, rows: IntArray) -> Matrices:
        """The same for some of the shapes; what only experts need stays away without them."""
        shared = replace(self, read=self.read[rows], multiply=self.multiply[rows])
        if not self.experts:
            return shared
        routed = {name: getattr(self, name)[rows] for name in ("expert_read", "expert_multiply", "expert_largest")}
        move = per_row(self.expert_move, rows)
        return replace(shared, **routed, expert_move=move, filled=None if self.filled is None else self.filled[rows])


def stored_dtype(tensor: Tensor, precision: Precision, model_dtype: str) -> str:
    """Number format in which a tensor is stored: the precision's, or the model's own for families that quantization keeps high."""
    if tensor.dtype is not None:
        return tensor.dtype
    if precision.quantization is not None and is_kept_high(tensor, precision.quantization):
        return model_dtype
    return precision.of(tensor.family)


def kernel_dtype(tensor: Tensor, precision: Precision, model_dtype: str) -> str:
    """Number format by which kernels of a tensor differ in speed: `stored_dtype`, with "-block" where FP8 is scaled by blocks."""
    dtype = stored_dtype(tensor, precision, model_dtype)
    scheme = precision.quantization
    return f"{dtype}-block" if dtype == "fp8" and scheme is not None and scheme.of(tensor.family).block is not None else dtype


def peak_flops(gpu: Gpu, dtype: str) -> float:
    """Dense FLOP/s of the data sheet for weights of `dtype` [FLOP/s]; formats without native arithmetic are multiplied in 16 bits."""
    for candidate in (dtype, "bf16", "fp16"):
        if gpu.computes(candidate):
            return gpu.flops[candidate].value
    return max(fact.value for fact in gpu.flops.values())


def layer_matrices(kind: LayerKind, setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> Matrices:
    """Weights of one layer of `kind`, per shape."""
    return _matrices(layer_tensors(kind, setting.architecture.hidden_size), kind.feed_forward, setting, shapes, constants)


def head_matrices(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> Matrices:
    """The output head, per shape."""
    return _matrices(head_tensors(setting.architecture), None, setting, shapes, constants)


def _matrices(
    tensors: Iterable[Tensor], part: FeedForward | None, setting: Setting, shapes: ShapeArrays, constants: StepConstants
) -> Matrices:
    tensors = tuple(tensors)
    zeros = np.zeros(shapes.batch.shape)
    totals = {True: [zeros, zeros], False: [zeros, zeros]}
    for (_, _, representative), (read, multiply) in _alike(tensors, setting, constants).items():
        share = rank_share(representative, shapes.tensor_parallel, shapes.expert_parallel, shapes.data_parallel)
        total = totals[representative.split in EXPERT_SPLITS]
        total[0] = total[0] + read * share
        total[1] = total[1] + multiply * share
    experts = part.experts if part is not None else 0
    active = part.experts_per_token if part is not None else 0
    copies = active * (part.latent_size or setting.architecture.hidden_size) * MOVED_BYTES if part is not None else 0.0
    return Matrices(
        read=totals[False][0],
        multiply=totals[False][1],
        expert_read=totals[True][0],
        expert_multiply=totals[True][1] * (active / experts if experts else 0.0),
        expert_largest=largest_draw(shapes.expert_parallel.astype(np.float64)),
        expert_move=copies * constants.expert_traffic / setting.gpu.memory_bandwidth.value,
        experts=experts,
        experts_per_token=active,
        filled=_filled(tensors, part, setting, shapes) if experts else None,
    )


def _filled(tensors: tuple[Tensor, ...], part: FeedForward | None, setting: Setting, shapes: ShapeArrays) -> FloatArray | None:
    """Tokens of the stage whose k experts multiply as many rows as the tiles of all experts hold, shape [n]."""
    grouped = next((tensor for tensor in tensors if tensor.split in EXPERT_SPLITS), None)
    if grouped is None or part is None:
        return None
    tile = expert_tile(setting.engine, setting.gpu, kernel_dtype(grouped, setting.precision, setting.architecture.dtype))
    if tile is None:
        return None
    spared = np.isin(shapes.tensor_parallel, tile.spared)
    return np.where(spared, 0.0, tile.rows * part.experts / part.experts_per_token)


def _alike(tensors: Iterable[Tensor], setting: Setting, constants: StepConstants) -> dict[tuple[str, int, Tensor], tuple[float, float]]:
    """Seconds to read and to multiply one token with all tensors that ranks cut alike, keyed by the first tensor of each sort."""
    first: dict[tuple[str, int, int], Tensor] = {}
    sums: dict[tuple[str, int, Tensor], tuple[float, float]] = {}
    for tensor in tensors:
        sort = (tensor.split.value, tensor.units, tensor.rows if tensor.split.value == "vocabulary" else 0)
        representative = first.setdefault(sort, tensor)
        read, multiply = _tensor_seconds(tensor, setting, constants)
        key = (sort[0], sort[1], representative)
        before = sums.get(key, (0.0, 0.0))
        sums[key] = (before[0] + read, before[1] + multiply)
    return sums


def _tensor_seconds(tensor: Tensor, setting: Setting, constants: StepConstants) -> tuple[float, float]:
    if tensor.family == "embedding":  # looked up by token, not read through
        return 0.0, 0.0
    model_dtype = setting.architecture.dtype
    dtype, kernel = stored_dtype(tensor, setting.precision, model_dtype), kernel_dtype(tensor, setting.precision, model_dtype)
    grouped = tensor.split in EXPERT_SPLITS
    multiply_share = of_dtype(constants.expert_multiply if grouped else constants.multiply, kernel)
    size = tensor_bytes(tensor, setting.precision, model_dtype)
    bandwidth = setting.gpu.memory_bandwidth.value
    if grouped:
        bandwidth = min(bandwidth, constants.expert_bandwidth)
    reached = read_share(constants, of_dtype(constants.expert_read if grouped else constants.weight_read, kernel), bandwidth)
    read = size / (bandwidth * reached)
    if tensor.columns == 1:  # norms and biases are added, not multiplied
        return read, 0.0
    return read, 2.0 * tensor.parameters / (peak_flops(setting.gpu, dtype) * multiply_share)


def matrices_seconds(
    matrices: Matrices, rank_tokens: FloatArray, stage_tokens: FloatArray, expert_parallel: FloatArray, evenness: float, tile: float
) -> FloatArray:
    """Time of one pass through the matrices [s], shape [n].

    max(read, tokens x multiply) for what all tokens share. Routed experts, of which a pass of T tokens touches a share (`distinct_share`):

        max(touched x read, (T + touched E tile / k) x multiply) + T x move / e

    since kernels fill up every expert's tokens to tiles (some those of experts without tokens, too: `Matrices.filled`), and the hidden states of k copies of every token go in and out through memory.
    Over e expert ranks the fullest one paces the others (`fullest_rank`): in experts touched when reading, in assignments T k when multiplying and moving.

    Parameters
    ----------
    matrices
        Weights of the layer per shape.
    rank_tokens
        Tokens a rank multiplies itself (its data-parallel share).
    stage_tokens
        Tokens of the whole stage, which routed experts serve together.
    expert_parallel
        Expert-parallel degree e.
    evenness, tile
        Shape of the routing, see `distinct_share`; tokens that every touched expert costs besides its own.
    """
    shared: FloatArray = np.maximum(matrices.read, rank_tokens * matrices.multiply)
    if not matrices.experts:
        return shared
    touched = distinct_share(matrices.experts, matrices.experts_per_token, stage_tokens, evenness)
    local = matrices.experts / expert_parallel
    deviation = np.sqrt((1.0 - touched) / np.maximum(local * touched, 1e-12))
    read = np.minimum(touched * _fullest(deviation, expert_parallel, matrices.expert_largest), 1.0)
    assignments = np.maximum(stage_tokens * matrices.experts_per_token, 1e-12)
    skew = _fullest(np.sqrt(expert_parallel / assignments), expert_parallel, matrices.expert_largest)
    tiles = read * (tile * matrices.experts / matrices.experts_per_token)
    if matrices.filled is not None:
        tiles = np.where(matrices.filled > 0.0, matrices.filled, tiles)
    filled = stage_tokens * skew + tiles
    move = matrices.expert_move * stage_tokens * skew / expert_parallel
    return shared + np.maximum(matrices.expert_read * read, matrices.expert_multiply * filled) + move


def distinct_share(experts: int, experts_per_token: int, tokens: FloatArray, evenness: float = np.inf) -> FloatArray:
    """Expected share of the experts that `tokens` tokens touch.

    1 - (1 - k/E)^T when all experts are equally popular. Real routing is not even: with popularities spread like a gamma distribution of shape a
    (`evenness`, variance of the popularity over its squared mean = 1 / a) it is 1 - (1 + T l / a)^(-a), l = -ln(1 - k/E), which tends to the first for large a.
    """
    if experts_per_token >= experts:
        return np.ones_like(tokens)
    exposure = np.maximum(tokens, 1.0) * -np.log1p(-experts_per_token / experts)
    if np.isinf(evenness):
        return np.asarray(-np.expm1(-exposure), dtype=np.float64)
    return np.asarray(-np.expm1(-evenness * np.log1p(exposure / evenness)), dtype=np.float64)


def fullest_rank(deviation: FloatArray, ranks: FloatArray) -> FloatArray:
    """Load of the fullest of e ranks over the mean one, their loads spreading by `deviation` (standard deviation over mean); never above e."""
    return _fullest(deviation, ranks, largest_draw(ranks))


def largest_draw(ranks: FloatArray) -> FloatArray:
    """Standard deviations by which the expected largest of e normal draws lies above their mean: 1.05 sqrt(2 ln e) - 0.70 for e >= 2, within 0.03 up to e = 256."""
    return np.asarray(np.maximum(1.05 * np.sqrt(2.0 * np.log(ranks)) - 0.70, 0.0), dtype=np.float64)


def _fullest(deviation: FloatArray, ranks: FloatArray, largest: FloatArray) -> FloatArray:
    return np.minimum(1.0 + largest * deviation, ranks)


def multiplied_parameters(architecture: ModelArchitecture) -> float:
    """Parameters one token multiplies with in all layers, the head apart: k of E routed experts, everything else whole."""
    total = 0.0
    for kind, count in architecture.kind_counts():
        part = kind.feed_forward
        active = part.experts_per_token / part.experts if part is not None and part.experts else 1.0
        for tensor in layer_tensors(kind, architecture.hidden_size):
            total += count * tensor.parameters * (active if tensor.split in EXPERT_SPLITS else 1.0)
    return total
