from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, RecurrentState
from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.memory import memory, weights_per_rank
from planner.cost.memory_detail import WEIGHT_TERMS, engine_split, longest_sequence, memory_by_stage, memory_diagnostics, one_shape
from planner.cost.memory_kv import kind_sequence_bytes, kv_bytes_per_sequence, token_bytes, tokens_held
from planner.cost.memory_other import counted, other_terms
from planner.cost.partition import balanced_partitions
from planner.cost.setting import Precision, Setting, ShapeArrays
from planner.diagnostics import Severity
from planner.plan.shape import Degrees

GIB = 2.0**30
VLLM = engine("vllm")
BF16 = Precision("bf16", "bf16", "bf16")


def setting_of(architecture, card="h100-sxm-80gb", name="vllm", utilization=0.9, prompt=2048, output=512, precision=None, batched=8192):
    scheme = architecture.quantization
    own = Precision(scheme.weights if scheme else architecture.dtype, "bf16", "bf16", scheme)
    return Setting(architecture, precision or own, name, gpu(card), (), float(prompt), float(output), batched, prompt + output, utilization)


def shapes_of(*rows):
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    zeros = np.zeros(len(rows), dtype=np.int64)
    return ShapeArrays(*columns, zeros, zeros, zeros + 1, zeros)


def attention(kind=AttentionKind.FULL, heads=32, kv_heads=8, window=None, **ranks):
    return Attention(kind, heads, kv_heads, 128, 128, window=window, **ranks)


LATENT = Attention(
    AttentionKind.MLA,
    128,
    1,
    192,
    128,
    q_lora_rank=1536,
    kv_lora_rank=512,
    nope_head_dim=128,
    rope_head_dim=64,
    index_head_dim=128,
    index_heads=64,
)


def test_bytes_of_a_token():
    assert token_bytes(attention(), BF16, np.array([1, 2, 8, 16])).tolist() == [4096, 2048, 512, 512]
    assert token_bytes(attention(kv_heads=32), BF16, np.array([1, 8])).tolist() == [16384, 2048]
    assert token_bytes(LATENT, BF16, np.array([1, 8])).tolist() == [(512 + 64 + 128) * 2] * 2
    assert token_bytes(LATENT, replace(BF16, kv_cache="fp8"), np.array([16])).tolist() == [704]


@pytest.mark.parametrize(
    ("kind", "window", "context", "held"),
    [
        (AttentionKind.FULL, None, 1000, 1008),
        (AttentionKind.MLA, None, 16, 16),
        (AttentionKind.SLIDING, 128, 100, 112),
        (AttentionKind.SLIDING, 128, 100_000, 144),
        (AttentionKind.CHUNKED, 8192, 100_000, 8208),
    ],
)
def test_tokens_are_kept_in_blocks_and_windows(kind, window, context, held):
    assert tokens_held(attention(kind, window=window), VLLM, context, mixed=True) == held


def test_an_old_engine_keeps_whole_contexts_in_mixed_models():
    sliding = attention(AttentionKind.SLIDING, window=128)
    old = engine("vllm 0.8")
    assert tokens_held(sliding, old, 4096, mixed=True) == 4096
    assert tokens_held(sliding, old, 4096, mixed=False) == 144


def test_a_state_does_not_grow_with_the_context():
    state = RecurrentState("mamba2", 128, 64, 128, 8, 4, 128 * 64 * 128, 30000, 100_000_000)
    kinds = (LayerKind(recurrent=state), LayerKind(attention=attention()))
    hybrid = ModelArchitecture("hybrid", "test", 4096, 128256, kinds, (0, 0, 0, 1), False, 8192, "bf16", "test")
    short, long = (kind_sequence_bytes(hybrid, BF16, VLLM, np.array([1, 8]), context) for context in (1024.0, 65536.0))
    assert short[0, 0] == long[0, 0] == 2 * (128 * 64 * 128 + 30000)
    assert short[1, 0] == pytest.approx(short[0, 0] / 8)
    assert long[0, 1] == 64 * short[0, 1]
    whole = kv_bytes_per_sequence(hybrid, BF16, VLLM, np.array([1]), 1024.0)
    assert whole[0] == 3 * short[0, 0] + short[0, 1]


def test_the_answer_is_counted_on_the_fullest_stage():
    architecture = model("llama-3.1-70b")
    setting = setting_of(architecture)
    table = memory(setting, shapes_of((2, 4, 1, 1, 8)), [(20, 20, 20, 20)])
    assert table.stage[0] == 3
    stages = memory_by_stage(setting, Degrees(2, 4), 8, (20, 20, 20, 20))
    assert min(stage.free for stage in stages) == pytest.approx(table.free[0])
    assert stages[3].free == pytest.approx(table.free[0])
    assert sum(term.expected for term in stages[3].terms if term.name in WEIGHT_TERMS) == pytest.approx(table.weights[0])


def test_one_more_sequence_than_fits_does_not():
    setting = setting_of(model("llama-3.1-8b"), "a100-sxm-80gb")
    most = int(memory(setting, shapes_of((1, 1, 1, 1, 1))).max_sequences[0])
    assert memory(setting, shapes_of((1, 1, 1, 1, most))).fits[0]
    assert not memory(setting, shapes_of((1, 1, 1, 1, most + 1))).fits[0]


def test_the_band_brackets_the_answer():
    setting = setting_of(model("qwen3-32b"))
    table = memory(setting, shapes_of((1, 1, 1, 1, 1), (2, 1, 1, 1, 1), (4, 1, 1, 1, 1)))
    assert (table.other_low <= table.other).all()
    assert (table.other <= table.other_high).all()
    assert (table.max_sequences_low <= table.max_sequences).all()
    assert (table.max_sequences <= table.max_sequences_high).all()


def test_a_fit_within_the_band_is_borderline():
    setting = setting_of(model("qwen3-32b"))
    shape = shapes_of((1, 1, 1, 1, 1))
    most = int(memory(setting, shape).max_sequences_low[0])
    batch = (most + int(memory(setting, shape).max_sequences[0])) // 2 + 1
    table = memory(setting, shapes_of((1, 1, 1, 1, batch)))
    assert table.borderline[0] == (most < batch)
    codes = {item.code: item.severity for item in memory_diagnostics(setting, Degrees(1), batch)}
    assert codes.get("MEMORY_BORDERLINE") is Severity.WARNING


def test_sequences_are_spread_over_dp_ranks():
    architecture = model("qwen3-235b-a22b-fp8")
    setting = setting_of(architecture, "h200-sxm-141gb")
    table = memory(setting, shapes_of((1, 1, 8, 8, 9), (1, 1, 8, 8, 16), (8, 1, 8, 1, 16)))
    assert table.kv[0] == pytest.approx(2 * table.kv_per_sequence[0])
    assert table.kv[0] == pytest.approx(table.kv[1])
    assert table.max_sequences[0] % 8 == 0
    assert table.kv_per_sequence[0] == pytest.approx(4 * table.kv_per_sequence[2])


def test_partitions_may_be_given_by_pipeline_degree():
    setting = setting_of(model("llama-3.1-70b"))
    shapes = shapes_of((1, 2, 1, 1, 1), (2, 4, 1, 1, 1))
    table = memory(setting, shapes, balanced_partitions(setting, [2, 4]))
    assert [len(partition) for partition in table.partitions] == [2, 4]
    assert all(sum(partition) == 80 for partition in table.partitions)


def test_balancing_never_holds_fewer_sequences_than_equal_counts():
    setting = setting_of(model("deepseek-v3"), "h200-sxm-141gb")
    shapes = shapes_of((8, 2, 1, 1, 1), (8, 4, 1, 1, 1), (4, 8, 4, 1, 1))
    equal = [(31, 30), (15, 16, 15, 15), (7, 7, 8, 8, 8, 8, 8, 7)]
    assert (memory(setting, shapes).max_sequences >= memory(setting, shapes, equal).max_sequences).all()
    assert (weights_per_rank(setting, shapes) <= weights_per_rank(setting, shapes, equal) * 1.05).all()


def test_columns_are_independent():
    """A table of many shapes gives what each shape gives alone."""
    setting = setting_of(model("mixtral-8x7b"))
    rows = [(1, 1, 1, 1, 4), (2, 1, 1, 1, 8), (2, 3, 2, 1, 8), (2, 2, 4, 2, 32), (8, 1, 1, 1, 64)]
    together = memory(setting, shapes_of(*rows))
    for index, row in enumerate(rows):
        alone = memory(setting, shapes_of(row))
        for name in ("weights", "kv_per_sequence", "kv", "other", "other_low", "other_high", "free", "max_sequences", "stage"):
            assert getattr(together, name)[index] == pytest.approx(getattr(alone, name)[0]), name
        assert together.partitions[index] == alone.partitions[0]


@settings(max_examples=40, deadline=None)
@given(
    kv_heads=st.sampled_from([1, 2, 4, 8]),
    tensor=st.sampled_from([1, 2, 4, 8, 16, 32]),
    context=st.integers(1, 100_000),
)
def test_tp_above_the_kv_heads_never_shrinks_kv_per_rank(kv_heads, tensor, context):
    kind = LayerKind(attention=attention(heads=32, kv_heads=kv_heads), feed_forward=FeedForward(width=8192))
    architecture = ModelArchitecture("any", "test", 4096, 32000, (kind,), (0,) * 4, False, 131072, "bf16", "test")
    held = kv_bytes_per_sequence(architecture, BF16, VLLM, np.array([tensor, kv_heads]), float(context))
    assert held[0] >= held[1] or tensor < kv_heads


@settings(max_examples=30, deadline=None)
@given(
    batch=st.integers(1, 200),
    prompt=st.integers(1, 20_000),
    pipeline=st.sampled_from([1, 2, 4]),
    tensor=st.sampled_from([1, 2, 4, 8]),
)
def test_memory_is_monotone(batch, prompt, pipeline, tensor):
    """More sequences, longer ones, or less budget never leave more free."""
    setting = setting_of(model("llama-3.1-8b"), prompt=prompt)
    shape, larger = shapes_of((tensor, pipeline, 1, 1, batch)), shapes_of((tensor, pipeline, 1, 1, batch + 1))
    partition = memory(setting, shape).partitions
    base = memory(setting, shape, partition)
    assert memory(setting, larger, partition).free[0] < base.free[0]
    assert memory(replace(setting, prompt_tokens=prompt + 64.0), shape, partition).max_sequences[0] <= base.max_sequences[0]
    assert memory(replace(setting, gpu_memory_utilization=0.8), shape, partition).max_sequences[0] <= base.max_sequences[0]


@pytest.mark.parametrize(
    "name", ["llama-3.1-70b", "deepseek-v3", "gpt-oss-120b", "qwen3.5-27b", "nemotron-3-super-120b-a12b-fp8", "gemma-3-27b"]
)
def test_more_ranks_never_hold_more_weights(name):
    setting = setting_of(model(name))
    held = weights_per_rank(setting, shapes_of(*((t, p, 1, 1, 1) for p in (1, 2, 4) for t in (1, 2, 4, 8)))).reshape(3, 4)
    assert (np.diff(held, axis=0) < 0).all()
    assert (np.diff(held, axis=1) < 0).all()


def test_logits_are_not_divided_by_tp_and_belong_to_the_last_stage():
    setting = setting_of(model("llama-3.1-8b"))
    terms = other_terms(setting, VLLM, shapes_of((1, 1, 1, 1, 1), (8, 1, 1, 1, 1)))[1]
    assert terms.activation_last[0] == terms.activation_last[1]
    assert terms.activation[1] < terms.activation[0] < terms.activation_last[0]


def test_terms_outside_the_budget_count_only_beyond_their_room():
    setting = setting_of(model("llama-3.1-8b"))
    terms = other_terms(setting, VLLM, shapes_of((1, 1, 1, 1, 1)))[1]
    roomy, tight = (counted(VLLM, terms, margin, last=True)[0] for margin in (8 * GIB, 0.2 * GIB))
    assert roomy == terms.activation_last[0] + terms.context[0] + terms.communicators[0]
    assert tight == pytest.approx(roomy + terms.graphs[0] - 0.2 * GIB)
    sglang = engine("sglang")
    outside = other_terms(replace(setting, engine="sglang"), sglang, shapes_of((1, 1, 1, 1, 1)))[1]
    assert counted(sglang, outside, 8 * GIB, last=True)[0] == outside.context[0] + outside.communicators[0]


@pytest.mark.parametrize("name", ["vllm", "sglang", "tensorrt-llm", "vllm 0.7.2"])
def test_stages_list_what_the_table_sums(name):
    setting = setting_of(model("deepseek-v3"), "h200-sxm-141gb", name, utilization=0.97)
    degrees = Degrees(8, 2, 8)
    table = memory(setting, one_shape(degrees, 4))
    stage = memory_by_stage(setting, degrees, 4)[int(table.stage[0])]
    assert stage.free == pytest.approx(table.free[0])
    assert all(term.low <= term.expected <= term.high for term in stage.terms)
    assert stage.largest.name == "layers"


def test_the_longest_sequence_fits_and_one_token_block_more_does_not():
    setting = setting_of(model("llama-3.1-8b"), "rtx-4090-24gb", prompt=1024, output=0)
    longest = longest_sequence(setting, Degrees(1))
    fits = [memory(replace(setting, prompt_tokens=float(tokens)), one_shape(Degrees(1), 1)).fits[0] for tokens in (longest, longest + 16)]
    assert fits == [True, False]


def test_no_room_is_no_sequence():
    setting = setting_of(model("llama-3.1-405b"))
    table = memory(setting, one_shape(Degrees(1), 1))
    assert table.max_sequences[0] == 0
    assert longest_sequence(setting, Degrees(1)) == 0
    [first, *_] = memory_diagnostics(setting, Degrees(1), 1)
    assert first.code == "WEIGHTS_DO_NOT_FIT"
    short = -min(stage.free for stage in memory_by_stage(setting, Degrees(1), 1)) / GIB
    assert f"does not fit by {short:.1f} GiB" in first.message


def test_a_layout_with_room_has_no_errors():
    found = memory_diagnostics(setting_of(model("llama-3.1-8b")), Degrees(1), 8)
    assert not [item for item in found if item.severity is Severity.ERROR]


def test_a_single_stage_is_always_balanced():
    assert engine_split(setting_of(model("llama-3.1-8b")), Degrees(8)) is None
