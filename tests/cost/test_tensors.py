from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, Quantization, RecurrentState
from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.cost.memory_weights import bytes_per_rank, element_bytes, layer_bytes, layer_rank_bytes, model_bytes, rank_weights
from planner.cost.setting import Precision
from planner.cost.tensor import Split, Tensor
from planner.cost.tensors import (
    active_layer_parameters,
    active_parameters,
    attention_tensors,
    count_parameters,
    layer_parameters,
    layer_tensors,
    model_parameters,
    padded_vocabulary,
    rank_share,
    recurrent_tensors,
)

BF16 = Precision("bf16", "bf16", "bf16")


def array(*values):
    return np.array(values, dtype=np.int64)


# Parameter counts as their publishers state them, in billions: total and, where given, active per token.
PUBLISHED = {
    "llama-3.1-8b": (8.03, None),
    "llama-3.1-70b": (70.6, None),
    "llama-3.1-405b": (405.9, None),
    "qwen2.5-0.5b": (0.494, None),
    "qwen3-32b": (32.8, None),
    "mixtral-8x7b": (46.7, 12.9),
    "mixtral-8x22b": (141.0, 39.0),
    "qwen3-235b-a22b": (235.0, 22.0),
    "deepseek-v3": (671.0, 37.0),
    "kimi-k2": (1026.0, 32.0),
    "kimi-k3": (2800.0, 104.0),
    "gpt-oss-20b": (20.9, 3.6),
    "gpt-oss-120b": (116.8, 5.1),
    "qwen3.5-27b": (27.0, None),
    "nemotron-3-super-120b-a12b-fp8": (120.6, 12.7),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name):
    total, active = PUBLISHED[name]
    architecture = model(name)
    assert model_parameters(architecture) / 1e9 == pytest.approx(total, rel=0.01)
    if active is not None:
        assert active_parameters(architecture) / 1e9 == pytest.approx(active, rel=0.05)


def test_grouped_attention():
    tensors = {tensor.name: tensor for tensor in attention_tensors(Attention(AttentionKind.FULL, 64, 8, 128, 128), 8192)}
    assert (tensors["q_proj"].rows, tensors["q_proj"].columns, tensors["q_proj"].split) == (8192, 8192, Split.ROWS)
    assert (tensors["k_proj"].rows, tensors["k_proj"].split, tensors["k_proj"].units) == (1024, Split.KV_ROWS, 8)
    assert (tensors["o_proj"].columns, tensors["o_proj"].split) == (8192, Split.COLUMNS)


def test_an_output_gate_doubles_the_query_projection():
    plain = Attention(AttentionKind.FULL, 16, 2, 256, 256)
    gated = Attention(AttentionKind.FULL, 16, 2, 256, 256, output_gate=True)
    difference = count_parameters(attention_tensors(gated, 2048)) - count_parameters(attention_tensors(plain, 2048))
    assert difference == 16 * 256 * 2048


def test_latent_attention_of_deepseek_v3():
    """187,107,328 weights a layer besides norms: 7168 x 1536 + 1536 x 24576 + 7168 x 576 + 512 x 32768 + 16384 x 7168."""
    attention = Attention(AttentionKind.MLA, 128, 1, 192, 128, q_lora_rank=1536, kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64)
    tensors = attention_tensors(attention, 7168)
    assert count_parameters(tensor for tensor in tensors if tensor.family == "attention") == 187_105_280
    whole = {tensor.name for tensor in tensors if tensor.split is Split.REPLICATED and tensor.family == "attention"}
    assert whole == {"q_a_proj", "kv_a_proj"}


def test_an_indexer_is_replicated():
    attention = Attention(
        AttentionKind.MLA,
        128,
        1,
        192,
        128,
        q_lora_rank=1536,
        kv_lora_rank=512,
        nope_head_dim=128,
        rope_head_dim=64,
        index_heads=64,
        index_head_dim=128,
        index_topk=2048,
    )
    index = [tensor for tensor in attention_tensors(attention, 7168) if tensor.name.startswith("index")]
    assert count_parameters(index) == 64 * 128 * 1536 + 128 * 7168 + 64 * 7168
    assert {tensor.split for tensor in index} == {Split.REPLICATED}


@pytest.mark.parametrize("kind", ["mamba2", "gated_delta", "other"])
def test_a_recurrent_mixer_keeps_its_parameters(kind):
    state = RecurrentState(kind, 128, 64, 128, 8, 4, 128 * 64 * 128, 10240 * 3, 150_000_000)
    tensors = recurrent_tensors(state, 4096)
    assert count_parameters(tensors) == 150_000_000
    assert ("mixer" in {tensor.name for tensor in tensors}) == (kind == "other")


def test_experts_count_and_share():
    part = FeedForward(experts=128, experts_per_token=8, expert_width=1536)
    kind = LayerKind(feed_forward=part)
    experts = 128 * 3 * 1536 * 4096
    assert layer_parameters(kind, 4096) == experts + 128 * 4096 + 4096
    assert active_layer_parameters(kind, 4096) == experts * 8 / 128 + 128 * 4096 + 4096


def test_latent_experts_work_in_their_own_space():
    part = FeedForward(experts=512, experts_per_token=22, expert_width=2688, shared_width=5376, gated=False, latent_size=1024)
    tensors = {tensor.name: tensor for tensor in layer_tensors(LayerKind(feed_forward=part), 4096)}
    assert tensors["expert_gate_up_proj"].columns == 1024
    assert tensors["latent_in_proj"].parameters == 4096 * 1024
    assert tensors["shared_gate_up_proj"].columns == 4096


@pytest.mark.parametrize(
    ("split", "units", "degrees", "share"),
    [
        (Split.ROWS, 64, (8, 1, 1), 1 / 8),
        (Split.COLUMNS, 64, (8, 1, 4), 1 / 8),
        (Split.KV_ROWS, 8, (4, 1, 1), 1 / 4),
        (Split.KV_ROWS, 8, (16, 1, 1), 1 / 8),
        (Split.REPLICATED, 1, (16, 1, 1), 1.0),
        (Split.EXPERT_ROWS, 256, (8, 8, 1), 1 / 8),
        (Split.EXPERT_ROWS, 256, (8, 1, 1), 1 / 8),
        (Split.EXPERT_COLUMNS, 256, (1, 8, 8), 1 / 8),
        (Split.EXPERT_COLUMNS, 256, (4, 4, 4), 1 / 16),
        (Split.EXPERT_ROWS, 256, (3, 3, 1), 86 / 256),
    ],
)
def test_share_of_the_fullest_rank(split, units, degrees, share):
    tensor = Tensor("matrix", "attention", 1024, 1024, 1, split, units)
    t, e, dp = (array(value) for value in degrees)
    assert rank_share(tensor, t, e, dp)[0] == pytest.approx(share)


def test_the_vocabulary_is_padded_before_it_is_cut():
    assert padded_vocabulary(30003) == 30016
    tensor = Tensor("embedding", "embedding", 30003, 64, 1, Split.VOCABULARY, 30003)
    assert rank_share(tensor, array(2), array(1), array(1))[0] == pytest.approx(15008 / 30003)


@given(kv_heads=st.integers(1, 64), tensor=st.integers(1, 128))
def test_tp_above_the_kv_heads_never_shrinks_their_share(kv_heads, tensor):
    matrix = Tensor("k_proj", "attention", kv_heads * 128, 4096, 1, Split.KV_ROWS, kv_heads)
    share = rank_share(matrix, array(tensor, kv_heads), array(1, 1), array(1, 1))
    assert share[0] >= 1 / kv_heads - 1e-12
    if tensor >= kv_heads:
        assert share[0] == pytest.approx(share[1])


@pytest.mark.parametrize(
    ("scheme", "family", "size"),
    [
        (Quantization("fp8", "fp8", block=(128, 128), scale_bytes=4.0), "mlp", 1 + 4 / 16384),
        (Quantization("awq", "int4", group=128, scale_bytes=2.5), "mlp", 0.5 + 2.5 / 128),
        (Quantization("modelopt", "nvfp4", group=16, scale_bytes=1.0), "expert", 0.5625),
        (Quantization("mxfp4", "mxfp4", group=32, scale_bytes=1.0), "expert", 0.53125),
        (Quantization("mxfp4", "mxfp4", group=32, scale_bytes=1.0, kept_high=("attention",)), "attention", 2.0),
        (Quantization("fp8", "fp8"), "head", 2.0),
        (Quantization("fp8", "fp8"), "norm", 2.0),
        (Quantization("fp8", "fp8", scale_bytes=4.0), "mlp", 1 + 4 / 4096),
    ],
)
def test_bytes_of_an_element_with_its_share_of_scales(scheme, family, size):
    tensor = Tensor("matrix", family, 1024, 4096, 1, Split.ROWS, 1024)
    assert element_bytes(tensor, Precision(scheme.weights, "bf16", "bf16", scheme), "bf16") == pytest.approx(size)


def test_tied_embeddings_are_counted_once():
    tied = model("qwen2.5-0.5b")
    assert tied.tied_embeddings
    table = 2 * tied.vocab_size * tied.hidden_size
    layers = sum(count * layer_bytes(kind, tied, BF16) for kind, count in tied.kind_counts())
    assert model_bytes(tied, BF16) == pytest.approx(layers + table + 2 * tied.hidden_size)
    one, two = (rank_weights(tied, BF16, engine("vllm"), array(1), array(stages), array(1), array(1)) for stages in (1, 2))
    assert one.head[0] < table / 100
    assert two.head[0] == pytest.approx(table, abs=2**20)


def test_ranks_together_hold_the_model_once_when_nothing_is_repeated():
    architecture = model("llama-3.1-70b")
    held = rank_weights(architecture, BF16, engine("vllm"), array(8), array(1), array(1), array(1))
    whole = 8 * (held.layers[0] @ np.array([80.0]) + held.embedding[0] + held.head[0])
    assert whole == pytest.approx(model_bytes(architecture, BF16), rel=2e-4)


def test_attention_dp_replicates_everything_but_the_experts():
    architecture = model("qwen3-235b-a22b")
    kind = architecture.layer_kinds[0]
    tensors = layer_tensors(kind, architecture.hidden_size)
    experts = [tensor for tensor in tensors if tensor.family == "expert"]
    others = [tensor for tensor in tensors if tensor.family != "expert"]
    together, apart = (array(8), array(8), array(1)), (array(1), array(8), array(8))
    vllm = engine("vllm")
    assert bytes_per_rank(experts, architecture, BF16, vllm, *together)[0] == pytest.approx(
        bytes_per_rank(experts, architecture, BF16, vllm, *apart)[0]
    )
    assert bytes_per_rank(others, architecture, BF16, vllm, *apart)[0] == pytest.approx(2 * count_parameters(others))


def test_layers_in_order_have_their_own_bytes():
    architecture = model("deepseek-v3")
    scheme = architecture.quantization
    held = layer_rank_bytes(architecture, Precision("fp8", "bf16", "bf16", scheme), engine("vllm"), 8, 1, 1)
    assert len(held) == 61
    assert held[0] == held[2] < held[3] == held[60]


def test_columns_are_shapes():
    """Many degrees at once give what each gives alone."""
    architecture = model("mixtral-8x7b")
    degrees = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (4, 8, 2)]
    t, e, dp = (array(*column) for column in zip(*degrees, strict=True))
    together = rank_weights(architecture, BF16, engine("vllm"), t, t, e, dp).layers[:, 0]
    alone = [rank_weights(architecture, BF16, engine("vllm"), *(array(x) for x in (a, a, b, c))).layers[0, 0] for a, b, c in degrees]
    assert together == pytest.approx(alone)
