"""Memory besides weights and KV: activations, CUDA graphs, communicators, the CUDA context; each low, expected and high.

Activation peak of one step, the larger of

    layers    tokens x 2 B x (b d + max(attention, mlp) widths per rank) + tokens k dp x 2 B x (3 f_e per rank + d) + 2 tokens dp d x 2 B
    sampling  sequences x V x sampler bytes      (last stage; logits are whole on every rank, so t does not divide them)
    vision    a constant for the encoder's own profile run

b is how many buffers as wide as the model live at once, more of them between stages and for models whose tokens carry several residuals. Where an engine keeps the buffers of its experts, tokens k dp x 2 B x
(max(2 f_e, d) + max(f_e, d)), they come on top of the larger one instead.

Constants come from `catalog.engines` and are fitted to published start-up logs of llm-d-planner on H100 with 1,024 sequences: 38.9 B a logit by four rows of vLLM 0.11, 15.3 by
two of 0.19 (Llama-3.1-8B, Qwen2.5-7B), b by CodeLlama-7b and granite-3.1-8b. Llama-3-8B at 29,000 batched tokens on an RTX 3090 (vllm issue 10517) gives 3 f + 3 d for
early versions, and vllm-project/recipes issue 12 the buffers of experts under data-parallel attention: a single row each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import FeedForward, LayerKind
from planner.catalog.engines import Engine
from planner.cost.setting import Setting, ShapeArrays

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

GIB: Final = 2.0**30
ACTIVATION_BYTES: Final = 2.0
SMALLEST_GRAPHS: Final = 0.48  # of the graphs' memory for a single running sequence: 0.46 GiB were taken of 1.0 (vllm issue 57475)
GRAPH_SEQUENCES: Final = 256  # and all of it by so many
EXPERT_CHUNK_TOKENS: Final = 32768  # fused expert kernels take at most so many tokens at once (vLLM VLLM_FUSED_MOE_CHUNK_SIZE)
# Encoder's profile run: 2.51 GiB for Qwen2.5-VL-72B (vllm issue 16570), 1.7 for Qwen3.5-4B (kvcached pull request 448), 5 GB in MAX (modular issue 6268).
VISION_PEAK: Final = (0.3 * GIB, 2.5 * GIB, 5.0 * GIB)


@dataclass(frozen=True)
class OtherTerms:
    """Terms of one bound (low, expected or high) for n shapes [B]; `activation_last` is the last stage's, `activation` every other one's."""

    activation: FloatArray
    activation_last: FloatArray
    graphs: FloatArray
    communicators: FloatArray
    context: FloatArray


def layer_activation(setting: Setting, kind: LayerKind, shapes: ShapeArrays) -> FloatArray:
    """Peak of one layer while a full step of `max_batched_tokens` runs through it [B], shape [n]."""
    t = shapes.tensor_parallel.astype(np.float64)
    tokens = float(setting.max_batched_tokens)
    width = np.zeros_like(t)
    facts = setting.engine_facts
    buffers = facts.hidden_buffers + np.where(shapes.pipeline_parallel > 1, facts.pipeline_buffers, 0.0)
    attention = kind.attention
    if attention is not None:
        query = attention.heads * (attention.head_dim + attention.value_head_dim) / t
        width = np.maximum(width, query + np.ceil(attention.kv_heads / t) * (attention.head_dim + attention.value_head_dim))
    if kind.recurrent is not None:
        width = np.maximum(width, 4.0 * kind.recurrent.heads * kind.recurrent.head_dim / t)
    part = kind.feed_forward
    if part is not None:
        width = np.maximum(width, 3.0 * (part.width + part.shared_width) / t)
    buffers = buffers + (setting.architecture.residual_streams - 1)
    peak = tokens * (buffers * setting.architecture.hidden_size + width)
    if part is not None and part.experts:
        hidden = setting.architecture.hidden_size
        if not keeps_workspace(setting, facts):
            peak = peak + _expert_rows(part, tokens, shapes) * (3.0 * _expert_width(part, shapes) + hidden)
        # Tokens of all dp ranks are gathered before the experts and scattered after them.
        peak = peak + np.where(shapes.data_parallel > 1, 2.0 * tokens * shapes.data_parallel * hidden, 0.0)
    return np.asarray(peak * ACTIVATION_BYTES, dtype=np.float64)


def keeps_workspace(setting: Setting, engine: Engine) -> bool:
    """Tell whether the buffers of the experts stay allocated beside everything else."""
    return engine.expert_workspace == "kept" and setting.precision.of("expert") not in engine.workspace_freed_for


def expert_workspace(setting: Setting, kind: LayerKind, shapes: ShapeArrays) -> FloatArray:
    """Buffers of the experts of one layer, of which an engine that keeps them has one set for all layers [B], shape [n]."""
    part = kind.feed_forward
    if part is None or not part.experts or not keeps_workspace(setting, setting.engine_facts):
        return np.zeros(len(shapes.tensor_parallel))
    width, space = _expert_width(part, shapes), float(part.latent_size or setting.architecture.hidden_size)
    rows = _expert_rows(part, float(setting.max_batched_tokens), shapes)
    first = np.maximum((2.0 if part.gated else 1.0) * width, space)
    return np.asarray(rows * (first + np.maximum(width, space)) * ACTIVATION_BYTES, dtype=np.float64)


def _expert_rows(part: FeedForward, tokens: float, shapes: ShapeArrays) -> FloatArray:
    """Rows of the buffers one rank's experts work in: k for every token of all dp ranks, in chunks.

    Expert parallelism does not shrink them, since a rank must be ready to take every token (vllm-project/recipes issue 12: DP8 with EP8 of a 480B model
    spends 9.6 GiB besides weights and KV).
    """
    gathered = np.minimum(tokens * shapes.data_parallel, float(EXPERT_CHUNK_TOKENS))
    return np.asarray(gathered * part.experts_per_token, dtype=np.float64)


def _expert_width(part: FeedForward, shapes: ShapeArrays) -> FloatArray:
    """Expert width on one rank."""
    return np.asarray(part.expert_width * shapes.expert_parallel / (shapes.tensor_parallel * shapes.data_parallel), dtype=np.float64)


def sampler_activation(setting: Setting, engine: Engine) -> float:
    """Peak of sampling for the largest number of sequences the engine admits [B]."""
    return (setting.max_num_seqs or engine.sequences(setting.gpu)) * setting.architecture.vocab_size * engine.sampler_bytes


def graph_share(setting: Setting, engine: Engine) -> float:
    """Share of the graphs' memory that the running sequences leave: fewer sizes are captured for fewer of them."""
    running = setting.max_num_seqs or engine.sequences(setting.gpu)
    return SMALLEST_GRAPHS + (1.0 - SMALLEST_GRAPHS) * min(running / GRAPH_SEQUENCES, 1.0)


def other_terms(setting: Setting, engine: Engine, shapes: ShapeArrays) -> tuple[OtherTerms, OtherTerms, OtherTerms]:
    """Low, expected and high terms of every shape.

    Communicators count once for TP or DP inside a stage and once more across stages; a single GPU has none.
    """
    kinds = [kind for kind, _ in setting.architecture.kind_counts()]
    layers = np.max(np.stack([layer_activation(setting, kind, shapes) for kind in kinds]), axis=0)
    kept = np.max(np.stack([expert_workspace(setting, kind, shapes) for kind in kinds]), axis=0)
    sampler, share = sampler_activation(setting, engine), graph_share(setting, engine)
    inside = (shapes.tensor_parallel * shapes.data_parallel > 1).astype(np.float64)
    across = (shapes.pipeline_parallel > 1).astype(np.float64)
    ones = np.ones_like(layers)
    bounds = []
    for index, factor in enumerate((engine.activation_low, 1.0, engine.activation_high)):
        encoder = VISION_PEAK[index] if setting.architecture.vision is not None else 0.0
        bounds.append(
            OtherTerms(
                activation=np.maximum(layers * factor, encoder) + kept,
                activation_last=np.maximum(np.maximum(layers, sampler) * factor, encoder) + kept,
                graphs=ones * engine.graphs[index] * share,
                communicators=inside * engine.communicator[index] + across * engine.pipeline_communicator[index],
                context=ones * engine.context[index],
            )
        )
    low, expected, high = bounds
    return low, expected, high


def counted(engine: Engine, terms: OtherTerms, outside_budget: float, last: bool) -> FloatArray:
    """Memory of one stage that the budget must hold besides weights and KV [B], shape [n].

    Terms an engine takes out of its budget count in full. The others live in what the budget does not claim (`outside_budget`, the GPU's
    memory less the budget) and count by what exceeds it: that is what has to be given up for the engine to start at all.
    """
    activation = terms.activation_last if last else terms.activation
    inside = terms.context + terms.communicators
    outside = np.zeros_like(inside)
    if engine.activations_inside_budget:
        inside = inside + activation
    else:
        outside = outside + activation
    if engine.graphs_inside_budget:
        inside = inside + terms.graphs
    else:
        outside = outside + terms.graphs
    return inside + np.maximum(outside - outside_budget, 0.0)
