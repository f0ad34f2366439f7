"""The parameters that follow from an architecture, counted here without any other room, against the totals its publisher states."""

from __future__ import annotations

import pytest

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, ModelArchitecture
from planner.catalog.models import model, models


def compressed_parameters(part: Attention, hidden: int) -> int:
    """DeepSeek-V4: one vector as key and value, a grouped output of low rank, and compressors of a value and a gate matrix."""
    wide, rank, inner = part.heads * part.head_dim, part.q_lora_rank or 0, (part.output_groups or 0) * (part.output_lora_rank or 0)
    count = hidden * (rank + part.head_dim + inner) + rank * wide + inner * wide // (part.output_groups or 1)
    made_of = 4 if part.index_heads else 2
    widths = part.head_dim + (part.index_head_dim or 0) if part.compress_ratio else 0
    count += widths * made_of * hidden + widths * made_of // 2 * part.compress_ratio
    return count + (part.index_heads or 0) * ((part.index_head_dim or 0) * rank + hidden)


def attention_parameters(part: Attention, hidden: int) -> int:
    if part.kind is AttentionKind.COMPRESSED:
        return compressed_parameters(part, hidden)
    if part.kind is AttentionKind.MLA:
        latent, rope, nope = part.kv_lora_rank or 0, part.rope_head_dim or 0, part.nope_head_dim or 0
        queries = part.heads * (nope + rope)
        count = (hidden + queries + 1) * part.q_lora_rank if part.q_lora_rank else hidden * queries
        count += hidden * (latent + rope) + latent + latent * part.heads * (nope + part.value_head_dim)
    else:
        queries = part.heads * part.head_dim * (2 if part.output_gate else 1)
        keys_and_values = part.kv_heads * (part.head_dim + part.value_head_dim)
        count = hidden * (queries + keys_and_values) + (queries + keys_and_values if part.bias else 0)
    count += part.heads * part.value_head_dim * hidden
    if part.index_heads:
        size = part.index_head_dim or 0
        count += part.index_heads * size * (part.q_lora_rank or hidden) + hidden * size + hidden * part.index_heads
    return count


def feed_forward_parameters(part: FeedForward, hidden: int) -> int:
    matrices = 3 if part.gated else 2
    inside = part.latent_size or hidden
    count = matrices * hidden * (part.width + part.shared_width)
    if part.experts:
        count += part.experts * (hidden + matrices * inside * part.expert_width) + (2 * hidden * inside if part.latent_size else 0)
    if part.bias:
        count += (matrices - 1) * part.width + hidden + part.experts * ((matrices - 1) * part.expert_width + inside)
    return count


def parameters(architecture: ModelArchitecture) -> int:
    hidden = architecture.hidden_size
    count = architecture.vocab_size * hidden * (1 if architecture.tied_embeddings else 2)
    for kind, layers in architecture.kind_counts():
        layer = 0
        if kind.attention:
            layer += attention_parameters(kind.attention, hidden) + hidden
        if kind.recurrent:
            layer += kind.recurrent.parameters + hidden
        if kind.feed_forward:
            layer += feed_forward_parameters(kind.feed_forward, hidden) + hidden
        count += layers * layer
    return count


# Totals of the language model in units of 10^9, from the model cards and the sizes of the published checkpoints (multi-token-prediction
# layers and vision towers left out).
PUBLISHED = {
    "llama-2-7b": 6.738,
    "llama-2-13b": 13.016,
    "llama-2-70b": 68.977,
    "llama-3-8b": 8.030,
    "llama-3.2-11b-vision": 9.775,
    "llama-3.2-90b-vision": 87.667,
    "llama-3.1-8b": 8.030,
    "llama-3.1-70b": 70.554,
    "llama-3.1-405b": 405.85,
    "llama-3.2-1b": 1.2358,
    "llama-3.2-3b": 3.2127,
    "llama-4-scout": 107.77,
    "llama-4-maverick": 400.7,
    "qwen2.5-0.5b": 0.494,
    "qwen2.5-7b": 7.6156,
    "qwen2.5-14b": 14.770,
    "qwen2.5-32b": 32.764,
    "qwen2.5-72b": 72.706,
    "qwen2-57b-a14b": 57.4,
    "qwen3-0.6b": 0.596,
    "qwen3-8b": 8.191,
    "qwen3-32b": 32.762,
    "qwen3-30b-a3b": 30.532,
    "qwen3-235b-a22b": 235.09,
    "qwen3-coder-480b-a35b": 480.15,
    "qwen3-next-80b-a3b": 79.7,
    "mistral-7b": 7.248,
    "mistral-nemo-12b": 12.248,
    "mistral-small-24b": 23.572,
    "mistral-large-123b": 122.61,
    "mixtral-8x7b": 46.703,
    "mixtral-8x22b": 140.62,
    "deepseek-v2": 235.74,
    "deepseek-v2-lite": 15.706,
    "deepseek-v3": 671.03,
    "kimi-k2": 1026.4,
    "kimi-linear-48b-a3b": 49.12,
    "gpt-oss-20b": 20.91,
    "gpt-oss-120b": 116.83,
    "gpt2": 0.1244,
    "gpt2-xl": 1.5576,
    "falcon-7b": 6.92,
    "falcon-180b": 179.5,
    "gemma-7b": 8.538,
    "gemma-2-9b": 9.242,
    "gemma-2-27b": 27.227,
    "gemma-3-27b": 27.01,
    "gemma-4-26b-a4b": 25.2,
    "phi-3-mini": 3.821,
    "phi-3-medium": 13.960,
    "phi-3.5-moe": 41.87,
    "phi-4": 14.660,
    "bloom": 176.25,
    "opt-66b": 65.7,
    "gpt-neox-20b": 20.55,
    "polyglot-ko-12.8b": 12.89,
    "yi-34b": 34.389,
    "baichuan2-7b": 7.506,
    "baichuan2-13b": 13.90,
    "command-r": 34.98,
    "command-r-plus": 103.8,
    "command-a": 111.06,
    "jamba-v0.1": 51.57,
    "jamba-1.5-large": 398.6,
    "mamba-codestral-7b": 7.285,
    "nemotron-4-340b": 341.0,
    "nemotron-3-nano-30b-a3b": 31.58,
    "granite-3.1-8b": 8.171,
    "glm-4.5-air": 106.85,
    "starcoder2-15b": 15.957,
    "minimax-m2.5": 228.7,
    "llama-3.3-nemotron-super-49b": 49.867,
    "deepseek-v4-flash": 284.33,
}

# Publishers state these only as rounded headline figures; the margin is the rounding's.
HEADLINE = {
    "glm-4.5": (355, 0.01),
    "glm-5": (744, 0.01),
    "minimax-m3": (428, 0.01),
    "mimo-v2-flash": (309, 0.01),
    "step-3.7-flash": (196, 0.01),
    "nemotron-3-super-120b-a12b-fp8": (120, 0.015),
    "nemotron-3-ultra-550b-a55b": (550, 0.01),
    "nemotron-h-56b": (56, 0.015),
    "qwen3.5-27b": (27, 0.015),
    "qwen3.5-35b-a3b": (35, 0.015),
    "qwen3.5-122b-a10b": (122, 0.01),
    "qwen3.5-397b-a17b": (397, 0.01),
    "gemma-4-31b": (30.7, 0.015),
    "granite-4.0-h-small": (32, 0.015),
    "deepseek-v4-pro": (1600, 0.02),
}


@pytest.mark.parametrize(("name", "billions"), PUBLISHED.items())
def test_parameters_are_the_published_total(name, billions):
    assert parameters(model(name)) / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize(("name", "figure"), HEADLINE.items())
def test_parameters_are_the_headline_figure(name, figure):
    billions, margin = figure
    assert parameters(model(name)) / 1e9 == pytest.approx(billions, rel=margin)


def test_a_quantized_checkpoint_has_the_parameters_of_its_parent():
    pairs = [("deepseek-v3.1-nvfp4", "deepseek-v3"), ("qwen3-32b-fp8", "qwen3-32b"), ("glm-5-nvfp4", "glm-5"), ("kimi-k2.5", "kimi-k2")]
    pairs += [(f"deepseek-v4-{size}-{stored}", f"deepseek-v4-{size}") for size in ("flash", "pro") for stored in ("fp8", "nvfp4")]
    for child, parent in pairs:
        assert parameters(model(child)) == parameters(model(parent))


def test_no_model_is_empty_or_beyond_anything_published():
    for architecture in models():
        assert 1e8 < parameters(architecture) < 3e12
