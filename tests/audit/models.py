"""Architectures for the auditor's tests, written by hand from the models' public config.json files."""

from __future__ import annotations

from planner.catalog.architecture import (
    Attention,
    AttentionKind,
    FeedForward,
    LayerKind,
    ModelArchitecture,
    Quantization,
    RecurrentState,
)


def grouped(heads, kv_heads, head_dim, kind=AttentionKind.FULL, window=None):
    """Grouped-query attention."""
    return Attention(kind=kind, heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=head_dim, window=window)


def dense(name, layers, hidden, heads, kv_heads, head_dim, width, vocabulary, tied=False):
    """A model of equal dense layers."""
    kind = LayerKind(attention=grouped(heads, kv_heads, head_dim), feed_forward=FeedForward(width=width))
    return ModelArchitecture(name, "llama", hidden, vocabulary, (kind,), (0,) * layers, tied, 131072, "bf16", "config.json")


LLAMA_8B = dense("llama-8b", 32, 4096, 32, 8, 128, 14336, 128256)
LLAMA_70B = dense("llama-70b", 80, 8192, 64, 8, 128, 28672, 128256)
QWEN_4B = dense("qwen-4b", 36, 2560, 32, 8, 128, 9728, 151936, tied=True)

QWEN_235B = ModelArchitecture(
    "qwen-235b",
    "qwen3_moe",
    4096,
    151936,
    (LayerKind(attention=grouped(64, 4, 128), feed_forward=FeedForward(experts=128, experts_per_token=8, expert_width=1536)),),
    (0,) * 94,
    False,
    40960,
    "bf16",
    "config.json",
)

LATENT = Attention(
    kind=AttentionKind.MLA,
    heads=128,
    kv_heads=1,
    head_dim=192,
    value_head_dim=128,
    q_lora_rank=1536,
    kv_lora_rank=512,
    nope_head_dim=128,
    rope_head_dim=64,
)
DEEPSEEK_V3 = ModelArchitecture(
    "deepseek-v3-like",
    "deepseek_v3",
    7168,
    129280,
    (
        LayerKind(attention=LATENT, feed_forward=FeedForward(width=18432)),
        LayerKind(attention=LATENT, feed_forward=FeedForward(experts=256, experts_per_token=8, expert_width=2048, shared_width=2048)),
    ),
    (0,) * 3 + (1,) * 58,
    False,
    163840,
    "bf16",
    "config.json",
    quantization=Quantization(method="fp8", weights="fp8", block=(128, 128), scale_bytes=4.0),
)

GPT_OSS_20B = ModelArchitecture(
    "gpt-oss-like",
    "gpt_oss",
    2880,
    201088,
    (
        LayerKind(
            attention=grouped(64, 8, 64, AttentionKind.SLIDING, 128),
            feed_forward=FeedForward(experts=32, experts_per_token=4, expert_width=2880, bias=True),
        ),
        LayerKind(
            attention=grouped(64, 8, 64),
            feed_forward=FeedForward(experts=32, experts_per_token=4, expert_width=2880, bias=True),
        ),
    ),
    (0, 1) * 12,
    False,
    131072,
    "bf16",
    "config.json",
    quantization=Quantization(
        method="mxfp4",
        weights="mxfp4",
        group=32,
        scale_bytes=1.0,
        kept_high=("embedding", "head", "router", "norm", "attention"),
    ),
)

# Mamba-2 layers with a few attention layers between them, as the Nemotron-H family has.
STATE_HEADS, STATE_HEAD_DIM, STATE_SIZE, STATE_GROUPS = 128, 64, 128, 8
STATE_INNER = STATE_HEADS * STATE_HEAD_DIM
STATE_CONVOLVED = STATE_INNER + 2 * STATE_GROUPS * STATE_SIZE
HYBRID = ModelArchitecture(
    "hybrid-8b",
    "nemotron_h",
    4096,
    131072,
    (
        LayerKind(
            recurrent=RecurrentState(
                kind="mamba2",
                heads=STATE_HEADS,
                head_dim=STATE_HEAD_DIM,
                state_size=STATE_SIZE,
                groups=STATE_GROUPS,
                conv_kernel=4,
                state_elements=STATE_INNER * STATE_SIZE,
                conv_elements=STATE_CONVOLVED * 3,
                parameters=4096 * (STATE_INNER + STATE_CONVOLVED + STATE_HEADS) + STATE_INNER * 4096 + STATE_CONVOLVED * 4 + STATE_INNER,
            ),
        ),
        LayerKind(attention=grouped(32, 8, 128)),
        LayerKind(feed_forward=FeedForward(width=21504, gated=False)),
    ),
    (0, 2, 0, 2, 0, 2, 1, 2) * 6,
    False,
    8192,
    "bf16",
    "config.json",
)
