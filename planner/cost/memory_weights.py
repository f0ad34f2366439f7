"""Bytes of weights: what a tensor takes in a precision, and what the fullest rank of a stage holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import AttentionKind, Draft, LayerKind, ModelArchitecture, Quantization
from planner.catalog.dtypes import bytes_per_element
from planner.catalog.engines import NO_PADDING, Engine
from planner.cost.memory_companions import adapter_bytes, draft_precision, draft_ranks
from planner.cost.setting import Precision
from planner.cost.tensor import EXPERT_SPLITS, Split, Tensor
from planner.cost.tensors import embedding_tensors, head_tensors, layer_tensors, rank_share

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

ACTIVATION_BYTES = 2.0
# Matrices that engines hold in one piece of memory.
ALLOCATED_WITH: Final = {"q_proj": "qkv", "k_proj": "qkv", "v_proj": "qkv", "in_proj_groups": "in_proj", "in_proj_heads": "in_proj"}
# PyTorch's caching allocator (c10/cuda/CUDACachingAllocator): segments of large allocations, and the rest that is still split off.
LARGE_ALLOCATION: Final = 10 * 2.0**20
SEGMENT: Final = 2 * 2.0**20
SPLIT_REST: Final = 2.0**20


def element_bytes(tensor: Tensor, precision: Precision, model_dtype: str) -> float:
    """Bytes of one element of `tensor`, its share of the scales included [B].

    A family (or a single tensor's name) in `kept_high` stays at the model's dtype. Scales add scale_bytes / (block rows x block columns)
    or scale_bytes / group; per-channel scales add scale_bytes / columns.
    """
    if tensor.dtype is not None:
        return bytes_per_element(tensor.dtype)
    if precision.quantization is None:
        return bytes_per_element(precision.weights)
    if is_kept_high(tensor, precision.quantization):
        return bytes_per_element(model_dtype)
    scheme = precision.quantization.of(tensor.family)
    size = bytes_per_element(scheme.weights)
    if scheme.block is not None:
        block_rows, block_columns = scheme.block
        return size + scheme.scale_bytes / (block_rows * block_columns)
    if scheme.group is not None:
        return size + scheme.scale_bytes / scheme.group
    return size + scheme.scale_bytes / tensor.columns


def is_kept_high(tensor: Tensor, scheme: Quantization) -> bool:
    """Tell whether a quantized checkpoint leaves a tensor in the model's own dtype."""
    return tensor.kept_high or tensor.family == "norm" or not {tensor.family, tensor.name}.isdisjoint(scheme.kept_high)


def tensor_bytes(tensor: Tensor, precision: Precision, model_dtype: str) -> float:
    """Bytes of all `count` matrices of a tensor, scales included [B]."""
    return tensor.parameters * element_bytes(tensor, precision, model_dtype)


def layer_bytes(kind: LayerKind, architecture: ModelArchitecture, precision: Precision) -> float:
    """Bytes of one whole layer, not divided over ranks [B]."""
    tensors = layer_tensors(kind, architecture.hidden_size)
    return sum(tensor_bytes(tensor, precision, architecture.dtype) for tensor in tensors)


def model_bytes(architecture: ModelArchitecture, precision: Precision) -> float:
    """Bytes of the whole language model on one rank, a tied head counted once [B]."""
    layers = sum(count * layer_bytes(kind, architecture, precision) for kind, count in architecture.kind_counts())
    ends = embedding_tensors(architecture) + tuple(
        tensor for tensor in head_tensors(architecture) if not (architecture.tied_embeddings and tensor.family == "head")
    )
    return layers + sum(tensor_bytes(tensor, precision, architecture.dtype) for tensor in ends)


@dataclass(frozen=True)
class RankWeights:
    """Bytes on the fullest rank by what holds them, for n shapes [B].

    `layers` has a column for each of the architecture's layer kinds [n, kinds]. `embedding` is held by the first stage, `head` by the last
    (0 where one stage holds both and they are tied), as `draft` is; `vision` and `positions` (the table of rotary positions) by every stage.
    """

    layers: FloatArray
    embedding: FloatArray
    head: FloatArray
    vision: FloatArray
    positions: FloatArray
    draft: FloatArray

    @property
    def end(self) -> FloatArray:
        """What the last stage holds besides its layers [B], shape [n]."""
        return np.asarray(self.head + self.draft, dtype=np.float64)

    @property
    def everywhere(self) -> FloatArray:
        """What every stage holds [B], shape [n]."""
        return np.asarray(self.vision + self.positions, dtype=np.float64)


def _padded_share(tensor: Tensor, engine: Engine, precision: Precision, ranks_per_expert: FloatArray) -> FloatArray | float:
    """Factor by which an engine's kernel pads an expert's matrix: both sides rounded up to the kernel's multiples."""
    padding = engine.kernel_padding(precision.of("expert"), None if precision.quantization is None else precision.quantization.of("expert"))
    if padding is NO_PADDING or tensor.columns == 1:
        return 1.0
    widens = tensor.split is Split.EXPERT_ROWS
    width, inputs = (tensor.rows, tensor.columns) if widens else (tensor.columns, tensor.rows)
    shard = width / ranks_per_expert
    padded_width = _up(shard, padding.expert_width)
    padded_inputs = _up(np.full_like(shard, inputs), padding.expert_inputs)
    if widens:
        padded_inputs = _up(padded_inputs, padding.contracted)
    else:
        padded_width = _up(padded_width, padding.contracted)
    return np.asarray(padded_width / shard * padded_inputs / inputs, dtype=np.float64)


def _up(size: FloatArray, multiple: int) -> FloatArray:
    return np.asarray(np.ceil(size / multiple) * multiple, dtype=np.float64)


def bytes_per_rank(
    tensors: Iterable[Tensor],
    architecture: ModelArchitecture,
    precision: Precision,
    engine: Engine,
    tensor_parallel: IntArray,
    expert_parallel: IntArray,
    data_parallel: IntArray,
) -> FloatArray:
    """Bytes of `tensors` on the fullest rank of their stage, per shape [B], shape [n].

    sum over tensors of parameters x bytes per element x share of the fullest rank (`rank_share`) x the engine's kernel padding, every allocation rounded as the
    engine's allocator does it.
    """
    allocations: dict[str, FloatArray] = {}
    for tensor in tensors:
        size = tensor_bytes(tensor, precision, architecture.dtype)
        share = rank_share(tensor, tensor_parallel, expert_parallel, data_parallel)
        if tensor.split in EXPERT_SPLITS:
            ranks = np.asarray(tensor_parallel * data_parallel, dtype=np.float64) / expert_parallel
            share = share * _padded_share(tensor, engine, precision, ranks)
        name = ALLOCATED_WITH.get(tensor.name, tensor.name)
        allocations[name] = allocations.get(name, np.zeros(np.shape(tensor_parallel))) + size * share
    if engine.rounds_allocations:
        allocations = {name: allocated(held) for name, held in allocations.items()}
    return np.sum(np.stack(tuple(allocations.values())), axis=0) if allocations else np.zeros(np.shape(tensor_parallel))


def allocated(size: FloatArray) -> FloatArray:
    """Bytes that PyTorch's allocator takes for each size [B]: from 10 MiB on it reserves multiples of 2 MiB and gives a rest back only above 1 MiB.

    That is what logs of vLLM show beyond the parameters of Qwen2.5-7B (0.057 GiB at TP1) and Qwen2.5-14B (0.16 GiB at TP2, vllm issue 13061).
    """
    rest = np.ceil(size / SEGMENT) * SEGMENT - size
    return np.where((size >= LARGE_ALLOCATION) & (rest <= SPLIT_REST), size + rest, size)


def absorbed_bytes(kind: LayerKind, tensor_parallel: IntArray) -> FloatArray:
    """Bytes of the 16-bit copies of kv_b that latent attention decodes with, H (nope + v) latent x 2 / t per MLA layer [B]."""
    attention = kind.attention
    if attention is None or attention.kind is not AttentionKind.MLA:
        return np.zeros(np.shape(tensor_parallel), dtype=np.float64)
    nope = attention.nope_head_dim if attention.nope_head_dim is not None else attention.head_dim - (attention.rope_head_dim or 0)
    elements = attention.heads * (nope + attention.value_head_dim) * (attention.kv_lora_rank or 0)
    return 2.0 * elements / np.asarray(tensor_parallel, dtype=np.float64)


def product_bytes(kind: LayerKind, hidden: int, tensor_parallel: IntArray) -> FloatArray:
    """Bytes of the up projections of latent attention multiplied into the query's and the output's, per MLA layer of an FP8 checkpoint [B], shape [n].

    H / t (q + d) latent elements in 8 bits and the query's rotary part, H / t q rope, in 16; q is the query's input and d the width of the model. Early versions kept
    these in place of `absorbed_bytes`.
    """
    attention = kind.attention
    if attention is None or attention.kind is not AttentionKind.MLA:
        return np.zeros(np.shape(tensor_parallel), dtype=np.float64)
    query = attention.q_lora_rank or hidden
    products = (query + hidden) * (attention.kv_lora_rank or 0)
    rotary = ACTIVATION_BYTES * query * (attention.rope_head_dim or 0)
    return attention.heads * (products + rotary) / np.asarray(tensor_parallel, dtype=np.float64)


def position_bytes(architecture: ModelArchitecture, engine: Engine) -> float:
    """Bytes of the tables of rotary positions, one for every size of head: longest context x rotary part of a head [B].

    They are not divided by any degree: 0.031 GiB for 131,072 positions of 128, which is what a log shows beyond the parameters. Layers over compressed tokens turn
    by another base than those of a window alone, and have a table of their own.
    """
    latent = (AttentionKind.MLA, AttentionKind.COMPRESSED)
    sizes = {
        (
            attention.rope_head_dim if attention.kind in latent and attention.rope_head_dim else attention.head_dim,
            attention.compress_ratio > 0,
        )
        for attention in (kind.attention for kind, _ in architecture.kind_counts())
        if attention is not None
    }
    return architecture.max_position * sum(size for size, _ in sizes) * engine.position_table_bytes


def rank_weights(
    architecture: ModelArchitecture,
    precision: Precision,
    engine: Engine,
    tensor_parallel: IntArray,
    pipeline_parallel: IntArray,
    expert_parallel: IntArray,
    data_parallel: IntArray,
) -> RankWeights:
    """Weights of the fullest rank by layer kind and end, vectorised over shapes.

    Under data-parallel attention everything but the routed experts is replicated over the dp ranks; experts are cut over t x dp.
    """
    degrees = (tensor_parallel, expert_parallel, data_parallel)
    columns = []
    for kind in architecture.layer_kinds:
        held = bytes_per_rank(layer_tensors(kind, architecture.hidden_size), architecture, precision, engine, *degrees)
        if engine.latent_products and precision.weights == "fp8":
            held = held + product_bytes(kind, architecture.hidden_size, tensor_parallel)
        elif engine.absorbs_latent_up_projection:
            held = held + absorbed_bytes(kind, tensor_parallel)
        columns.append(held + adapter_bytes(kind, architecture.hidden_size, architecture.adapters, tensor_parallel))
    embedding = bytes_per_rank(embedding_tensors(architecture), architecture, precision, engine, *degrees)
    heads = head_tensors(architecture)
    head = bytes_per_rank((t for t in heads if t.family == "head"), architecture, precision, engine, *degrees)
    norm = bytes_per_rank((t for t in heads if t.family != "head"), architecture, precision, engine, *degrees)
    if architecture.tied_embeddings:
        head = np.where(np.asarray(pipeline_parallel) == 1, 0.0, head)
    positions = np.full(np.shape(tensor_parallel), position_bytes(architecture, engine))
    tower, drafted = vision_bytes(architecture, engine, tensor_parallel), draft_bytes(architecture.draft, precision, engine, *degrees)
    return RankWeights(np.stack(columns, axis=-1), embedding, head + norm, tower, positions, drafted)


def draft_bytes(
    draft: Draft | None, precision: Precision, engine: Engine, tensor_parallel: IntArray, expert_parallel: IntArray, data_parallel: IntArray
) -> FloatArray:
    """Bytes of a draft on one rank of the last stage [B], shape [n]: its layers, and its ends unless it shares those of its model."""
    if draft is None:
        return np.zeros(np.shape(tensor_parallel))
    ones = np.ones_like(tensor_parallel)
    sharing = (expert_parallel, data_parallel) if draft.shares_ends else (ones, ones)
    own = draft.architecture
    held = rank_weights(own, draft_precision(draft, precision), engine, draft_ranks(draft, tensor_parallel), ones, *sharing)
    counts = np.bincount(np.array(own.layer_sequence), minlength=len(own.layer_kinds))
    ends = 0.0 if draft.shares_ends else held.embedding + held.head + held.positions
    return np.asarray(held.layers @ counts + ends, dtype=np.float64)


def vision_bytes(architecture: ModelArchitecture, engine: Engine, tensor_parallel: IntArray) -> FloatArray:
    """Bytes of the vision tower on one rank [B]: whole, or cut over t where its heads divide and the engine cuts it."""
    tower = architecture.vision
    t = np.asarray(tensor_parallel, dtype=np.float64)
    if tower is None or tower.parameters is None:
        return np.zeros_like(t)
    whole = tower.parameters * bytes_per_element(architecture.dtype)
    if tower.heads is None or not engine.vision.startswith("sharded"):
        return np.full_like(t, whole)
    return np.where(tower.heads % t == 0, whole / t, whole)


@lru_cache(maxsize=1024)
def layer_rank_bytes(
    architecture: ModelArchitecture, precision: Precision, engine: Engine, tensor: int, expert: int, data: int
) -> tuple[float, ...]:
    """Bytes of every layer in order on the fullest rank of its stage, for one choice of degrees [B]."""
    one = np.array([tensor]), np.array([1]), np.array([expert]), np.array([data])
    held = rank_weights(architecture, precision, engine, *one).layers[0]
    return tuple(float(held[index]) for index in architecture.layer_sequence)
