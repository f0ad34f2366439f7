"""Every weight matrix of a layer and of the ends of a model, with how an engine splits it over ranks.

A tensor is `count` matrices of `rows` (outputs) x `columns` (inputs). Its `split` says which axis tensor parallelism cuts:

========== ================================================== ====================================================
split      share of the fullest rank                          examples
========== ================================================== ====================================================
rows       1 / t                                              q, gate, up, q_b, kv_b
columns    1 / t                                              o, down
kv_rows    ceil(units / t) / units: replicated above `units`  k, v (units = kv heads), B and C of Mamba-2 (groups)
replicated 1                                                  norms, router, q_a, kv_a, indexer
expert_... ceil(units / e) / units x e / (t dp)               routed experts (units = experts)
vocabulary ceil(padded vocabulary / t) / vocabulary           embedding and head
========== ================================================== ====================================================

t, e, dp are the tensor, expert and data parallel degrees of one pipeline stage. Every expert is cut over the t dp / e ranks that share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, RecurrentState
from planner.cost.compressed_tensors import compressed_attention, head_streams, layer_streams, routing_tables
from planner.cost.tensor import EXPERT_SPLITS, Split, Tensor

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

VOCABULARY_PADDING = 64  # both open engines pad the embedding to a multiple of 64 rows before it is cut over ranks


def attention_tensors(attention: Attention, hidden: int) -> tuple[Tensor, ...]:
    """Projections of softmax attention: q, k, v, o, or the low-rank ones of MLA, with the sparse indexer's where there is one."""
    if attention.kind is AttentionKind.COMPRESSED:
        return compressed_attention(attention, hidden)
    if attention.kind is AttentionKind.MLA:
        tensors = _latent_attention(attention, hidden)
    else:
        query_rows = attention.heads * attention.head_dim * (2 if attention.output_gate else 1)
        tensors = [
            Tensor("q_proj", "attention", query_rows, hidden, 1, Split.ROWS, attention.heads),
            Tensor("k_proj", "attention", attention.kv_heads * attention.head_dim, hidden, 1, Split.KV_ROWS, attention.kv_heads),
            Tensor("v_proj", "attention", attention.kv_heads * attention.value_head_dim, hidden, 1, Split.KV_ROWS, attention.kv_heads),
        ]
        if attention.bias:
            tensors += [
                Tensor("q_bias", "norm", query_rows, 1, 1, Split.ROWS, attention.heads),
                Tensor("k_bias", "norm", attention.kv_heads * attention.head_dim, 1, 1, Split.KV_ROWS, attention.kv_heads),
                Tensor("v_bias", "norm", attention.kv_heads * attention.value_head_dim, 1, 1, Split.KV_ROWS, attention.kv_heads),
            ]
    tensors.append(Tensor("o_proj", "attention", hidden, attention.heads * attention.value_head_dim, 1, Split.COLUMNS, attention.heads))
    if attention.index_heads and attention.index_head_dim:
        query_input = attention.q_lora_rank or hidden
        index_rows = attention.index_heads * attention.index_head_dim
        tensors += [
            Tensor("index_q", "attention", index_rows, query_input, 1, Split.REPLICATED, attention.index_heads),
            Tensor("index_k", "attention", attention.index_head_dim, hidden, 1, Split.REPLICATED),
            Tensor("index_weights", "router", attention.index_heads, hidden, 1, Split.REPLICATED),
        ]
    return tuple(tensors)


def _latent_attention(attention: Attention, hidden: int) -> list[Tensor]:
    """MLA up to the output projection (DeepSeek-V2, arXiv 2405.04434): the down projections are replicated, the up projections cut by head."""
    latent = attention.kv_lora_rank or 0
    rope = attention.rope_head_dim or 0
    nope = attention.nope_head_dim if attention.nope_head_dim is not None else attention.head_dim - rope
    heads = attention.heads
    tensors: list[Tensor] = []
    if attention.q_lora_rank:
        tensors.append(Tensor("q_a_proj", "attention", attention.q_lora_rank, hidden, 1, Split.REPLICATED))
        tensors.append(Tensor("q_b_proj", "attention", heads * (nope + rope), attention.q_lora_rank, 1, Split.ROWS, heads))
    else:
        tensors.append(Tensor("q_proj", "attention", heads * (nope + rope), hidden, 1, Split.ROWS, heads))
    tensors.append(Tensor("kv_a_proj", "attention", latent + rope, hidden, 1, Split.REPLICATED))
    tensors.append(Tensor("kv_b_proj", "attention", heads * (nope + attention.value_head_dim), latent, 1, Split.ROWS, heads))
    if attention.output_gate:
        tensors.append(Tensor("output_gate", "attention", heads * attention.value_head_dim, hidden, 1, Split.ROWS, heads))
    tensors.append(Tensor("latent_norms", "norm", latent + (attention.q_lora_rank or 0), 1, 1, Split.REPLICATED))
    return tensors


def recurrent_tensors(state: RecurrentState, hidden: int) -> tuple[Tensor, ...]:
    """Projections of a recurrent mixer, cut along its heads; B and C (or keys) along its groups.

    Mamba-2: in_proj gives z, x (inner each), B, C (groups x state each) and dt (heads); gated delta gives v, z (inner each), q, k
    (groups x key size each) and two gates a head. What the mixer holds besides (convolution, norms, decay) is `state.parameters` less the
    projections and goes with the heads. Other kinds are taken as one matrix cut along the heads.
    """
    inner = state.heads * state.head_dim
    grouped = 2 * state.groups * state.state_size
    per_head = {"mamba2": 1, "gated_delta": 2}.get(state.kind)
    if per_head is not None:
        projections = (
            Tensor("in_proj", "recurrent", 2 * inner, hidden, 1, Split.ROWS, state.heads),
            Tensor("in_proj_groups", "recurrent", grouped, hidden, 1, Split.KV_ROWS, state.groups),
            Tensor("in_proj_heads", "recurrent", per_head * state.heads, hidden, 1, Split.ROWS, state.heads),
            Tensor("out_proj", "recurrent", hidden, inner, 1, Split.COLUMNS, state.heads),
        )
        rest = state.parameters - sum(tensor.parameters for tensor in projections)
        if rest >= 0:
            small = (Tensor("mixer_rest", "norm", rest, 1, 1, Split.ROWS, state.heads),) if rest else ()
            return projections + small
    rows, rest = divmod(state.parameters, hidden)
    whole = Tensor("mixer", "recurrent", rows, hidden, 1, Split.ROWS, state.heads)
    return (whole, Tensor("mixer_rest", "norm", rest, 1, 1, Split.ROWS, state.heads)) if rest else (whole,)


def feed_forward_tensors(part: FeedForward, hidden: int) -> tuple[Tensor, ...]:
    """Dense MLP, router, routed and shared experts, and the projections into and out of a latent expert space."""
    inputs = 2 if part.gated else 1  # gate and up, or up alone
    tensors: list[Tensor] = []
    if part.width:
        tensors.append(Tensor("gate_up_proj", "mlp", part.width, hidden, inputs, Split.ROWS, part.width))
        tensors.append(Tensor("down_proj", "mlp", hidden, part.width, 1, Split.COLUMNS, part.width))
        if part.bias:
            tensors.append(Tensor("mlp_up_bias", "norm", part.width, 1, inputs, Split.ROWS, part.width))
            tensors.append(Tensor("mlp_down_bias", "norm", hidden, 1, 1, Split.REPLICATED))
    if part.experts:
        space = part.latent_size or hidden
        tensors.append(Tensor("router", "router", part.experts, hidden, 1, Split.REPLICATED))
        if part.latent_size:
            tensors.append(Tensor("latent_in_proj", "mlp", part.latent_size, hidden, 1, Split.REPLICATED))
            tensors.append(Tensor("latent_out_proj", "mlp", hidden, part.latent_size, 1, Split.REPLICATED))
        tensors.append(
            Tensor("expert_gate_up_proj", "expert", part.expert_width, space, inputs * part.experts, Split.EXPERT_ROWS, part.experts)
        )
        tensors.append(Tensor("expert_down_proj", "expert", space, part.expert_width, part.experts, Split.EXPERT_COLUMNS, part.experts))
        if part.bias:
            biases = part.expert_width * inputs + space
            tensors.append(Tensor("expert_bias", "norm", biases, 1, part.experts, Split.EXPERT_ROWS, part.experts))
    if part.shared_width:
        tensors.append(Tensor("shared_gate_up_proj", "shared_expert", part.shared_width, hidden, inputs, Split.ROWS, part.shared_width))
        tensors.append(Tensor("shared_down_proj", "shared_expert", hidden, part.shared_width, 1, Split.COLUMNS, part.shared_width))
    return tuple(tensors)


@lru_cache(maxsize=4096)
def layer_tensors(kind: LayerKind, hidden: int) -> tuple[Tensor, ...]:
    """All weight tensors of one layer of `kind` in a model of width `hidden`, norms included (one before each part)."""
    tensors: list[Tensor] = []
    parts = 0
    if kind.attention is not None:
        tensors += attention_tensors(kind.attention, hidden)
        parts += 1
    if kind.recurrent is not None:
        tensors += recurrent_tensors(kind.recurrent, hidden)
        parts += 1
    if kind.feed_forward is not None:
        tensors += feed_forward_tensors(kind.feed_forward, hidden)
        parts += 1
    if parts:
        tensors.append(Tensor("layer_norms", "norm", hidden, 1, parts, Split.REPLICATED))
        tensors += [*routing_tables(kind.feed_forward), *layer_streams(kind.mixed_streams, hidden, parts)]
    return tuple(replace(tensor, kept_high=True) if tensor.family in kind.kept_high else tensor for tensor in tensors)


def embedding_tensors(architecture: ModelArchitecture) -> tuple[Tensor, ...]:
    """Token embedding, held by the first pipeline stage."""
    return (
        Tensor("embedding", "embedding", architecture.vocab_size, architecture.hidden_size, 1, Split.VOCABULARY, architecture.vocab_size),
    )


def head_tensors(architecture: ModelArchitecture) -> tuple[Tensor, ...]:
    """Output head and final norm, held by the last stage. A tied head is the embedding itself wherever both ends share a stage."""
    vocabulary, hidden = architecture.vocab_size, architecture.hidden_size
    return (
        Tensor("head", "head", vocabulary, hidden, 1, Split.VOCABULARY, vocabulary),
        Tensor("final_norm", "norm", hidden, 1, 1, Split.REPLICATED),
        *head_streams(architecture.mixed_streams, hidden),
    )


def padded_vocabulary(vocabulary: int, multiple: int = VOCABULARY_PADDING) -> int:
    """Round the vocabulary up to the engine's padding."""
    return -(-vocabulary // multiple) * multiple


def rank_share(tensor: Tensor, tensor_parallel: IntArray, expert_parallel: IntArray, data_parallel: IntArray) -> FloatArray:
    """Share of a tensor's elements that the fullest rank of a stage holds, per shape [n] (1 = all of it).

    Above `units` ranks a kv split replicates: ceil(K / t) / K never falls below 1 / K. Experts that do not divide leave ceil(E / e) of them
    on the fullest rank.
    """
    t = np.asarray(tensor_parallel, dtype=np.float64)
    if tensor.split in (Split.ROWS, Split.COLUMNS):
        return 1.0 / t
    if tensor.split is Split.KV_ROWS:
        return np.ceil(tensor.units / t) / tensor.units
    if tensor.split in EXPERT_SPLITS:
        e = np.asarray(expert_parallel, dtype=np.float64)
        dp = np.asarray(data_parallel, dtype=np.float64)
        return np.ceil(tensor.units / e) / tensor.units * e / (t * dp)
    if tensor.split is Split.VOCABULARY:
        return np.ceil(padded_vocabulary(tensor.rows) / t) / tensor.rows
    return np.ones_like(t)


def count_parameters(tensors: Iterable[Tensor]) -> int:
    """Elements of all tensors together."""
    return sum(tensor.parameters for tensor in tensors)


def layer_parameters(kind: LayerKind, hidden: int) -> int:
    """Parameters of one layer."""
    return count_parameters(layer_tensors(kind, hidden))


def active_layer_parameters(kind: LayerKind, hidden: int) -> float:
    """Parameters of one layer that one token multiplies with: k of E routed experts, everything else whole."""
    part = kind.feed_forward
    active = part.experts_per_token / part.experts if part is not None and part.experts else 1.0
    return sum(tensor.parameters * (active if tensor.split in EXPERT_SPLITS else 1.0) for tensor in layer_tensors(kind, hidden))


def model_parameters(architecture: ModelArchitecture) -> int:
    """Parameters of the whole language model, a tied head counted once, the vision tower apart."""
    layers = sum(count * layer_parameters(kind, architecture.hidden_size) for kind, count in architecture.kind_counts())
    ends = count_parameters(embedding_tensors(architecture)) + count_parameters(head_tensors(architecture))
    tied = architecture.vocab_size * architecture.hidden_size if architecture.tied_embeddings else 0
    return layers + ends - tied


def active_parameters(architecture: ModelArchitecture) -> float:
    """Parameters that one token multiplies with, the head included and the embedding look-up left out."""
    layers = sum(count * active_layer_parameters(kind, architecture.hidden_size) for kind, count in architecture.kind_counts())
    return layers + count_parameters(head_tensors(architecture))
