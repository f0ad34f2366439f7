"""Real reports about memory: what fitted, what did not, and the figures that engines printed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.architecture import VisionTower
from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.cost.memory_detail import longest_sequence, memory_by_stage, memory_diagnostics, one_shape, reported_tokens
from planner.cost.memory_kv import kv_bytes_per_sequence, token_bytes
from planner.cost.memory_other import other_terms
from planner.cost.memory_slots import state_slots
from planner.cost.memory_weights import bytes_per_rank, model_bytes, vision_bytes
from planner.cost.setting import Precision
from planner.cost.tensors import layer_tensors
from planner.plan.shape import Degrees
from tests.cases.fitting import GIB, card, memory_of, room, setting_of

TP1, TP2, TP4, TP8 = Degrees(1), Degrees(2), Degrees(4), Degrees(8)


def codes(setting, degrees, batch=1, partition=None):
    return {item.code for item in memory_diagnostics(setting, degrees, batch, partition)}


def token_kib(setting, degrees):
    held = kv_bytes_per_sequence(
        setting.architecture, setting.precision, engine(setting.engine), np.array([degrees.tensor_parallel]), 65536.0
    )
    return float(held[0]) / 65536 / 1024


def test_weights_halve_with_tp_and_activations_do_not():
    """vllm-project/vllm#10511: Llama-3-8B at TP1 and TP2 on 80 GB."""
    one, two = (setting_of(model("llama-3-8b"), card("a100-sxm-80gb", 79.22), "vllm 0.6.5") for _ in range(2))
    first, second = memory_of(one, TP1), memory_of(two, TP2)
    assert first.weights[0] / GIB == pytest.approx(14.96, rel=0.01)
    assert second.weights[0] / GIB == pytest.approx(7.48, rel=0.01)
    assert room(first) == pytest.approx(53.29, rel=0.05)
    terms = [other_terms(one, engine("vllm 0.6.5"), one_shape(degrees, 1))[1] for degrees in (TP1, TP2)]
    assert terms[0].activation_last[0] / GIB == pytest.approx(1.26, abs=0.15)
    assert terms[1].activation_last[0] == pytest.approx(terms[0].activation_last[0])
    assert terms[1].communicators[0] > terms[0].communicators[0]


def test_need_is_not_what_a_server_reserves():
    """InternLM/lmdeploy#3154: 70B in bf16 needs 131 GiB, so one H100 is too small and two hold it tightly."""
    setting = setting_of(model("llama-3.1-70b"), card("h100-sxm-80gb"), prompt=1024)
    assert model_bytes(setting.architecture, setting.precision) / GIB == pytest.approx(131.4, rel=0.01)
    assert "WEIGHTS_DO_NOT_FIT" in codes(setting, TP1)
    assert memory_of(setting, TP2).weights[0] / GIB == pytest.approx(65.7, rel=0.01)
    assert memory_of(setting, TP2).free[0] > -0.5 * GIB


def test_405b_on_one_gpu_is_refused_whatever_the_batch():
    """ai-dynamo/aiconfigurator#509: an estimator printed times for 756 GiB of weights on one H100."""
    setting = setting_of(model("llama-3.1-405b"), card("h100-sxm-80gb"))
    assert model_bytes(setting.architecture, setting.precision) / GIB == pytest.approx(756.0, rel=0.01)
    refused = memory_diagnostics(setting, TP1, 128)
    assert refused[0].code == "WEIGHTS_DO_NOT_FIT"
    assert "does not fit by" in refused[0].message
    assert not memory_of(setting, TP8).fits[0]
    assert memory_of(setting, Degrees(16)).fits[0]
    assert memory_of(setting, Degrees(8, 2)).fits[0]


def test_405b_fp8_fits_eight_h100_but_not_at_its_own_context():
    """vllm-project/vllm#6746: 57.75 GiB of weights a GPU, 64,512 bytes a token, refused at 131,072 tokens."""
    architecture = model("llama-3.1-405b-fp8")
    setting = setting_of(architecture, card("h100-sxm-80gb", 79.1), "vllm 0.5.3", prompt=131072, batched=131072)
    assert memory_of(setting, TP8).weights[0] / GIB == pytest.approx(57.75, rel=0.03)
    assert token_kib(setting, TP8) * 1024 == pytest.approx(64512)
    assert codes(setting, TP8) & {"KV_DOES_NOT_FIT", "ACTIVATION"}
    assert not memory_of(setting, TP8).fits[0]
    # The activations of that version were somewhere in the band: so is the 79,392-token limit it printed.
    table = memory_of(setting, TP8)
    tokens = [(float(table.budget[0] - table.weights[0] - other[0])) / 64512 for other in (table.other_high, table.other_low)]
    assert tokens[0] < 79392 < tokens[1]
    short = setting_of(architecture, card("a100-sxm-80gb"), "vllm 0.5.4", prompt=4096, batched=4096)
    assert memory_of(short, TP8).fits[0]


def test_a_budget_is_per_gpu_and_the_tightest_rank_decides():
    """vllm-project/vllm#13061: 14B on two RTX 4090: 81,536 tokens, not the 31 GiB of both cards together."""
    setting = setting_of(
        model("deepseek-r1-distill-qwen-14b"), card("rtx-4090-24gb", 23.55), "vllm 0.7.2", 0.98, prompt=131072, batched=2048
    )
    table = memory_of(setting, TP2)
    assert table.budget[0] / GIB == pytest.approx(23.08, rel=0.001)
    assert table.weights[0] / GIB == pytest.approx(13.95, rel=0.02)
    assert token_kib(setting, TP2) == pytest.approx(96.0)
    assert longest_sequence(setting, TP2) == pytest.approx(81536, rel=0.15)
    assert "KV_DOES_NOT_FIT" in codes(setting, TP2)
    in_fp8 = replace(setting, precision=replace(setting.precision, kv_cache="fp8"))
    assert memory_of(in_fp8, TP2).fits[0]


def test_weights_fit_and_nothing_is_left():
    """vllm-project/vllm#16570: Qwen2.5-VL-72B on four A100 40 GB, 34.43 GiB of weights under a budget of 37.41.

    The expected peak of a vision encoder is this report's.
    """
    setting = setting_of(model("qwen2.5-vl-72b"), card("a100-sxm-40gb", 39.38), "vllm 0.8.3", 0.95, prompt=4096, batched=4096)
    table = memory_of(setting, TP4)
    assert table.weights[0] / GIB == pytest.approx(34.43, rel=0.01)
    assert table.weights[0] < table.budget[0]
    assert not table.fits[0]
    assert codes(setting, TP4) & {"KV_DOES_NOT_FIT", "ACTIVATION"}
    assert memory_of(setting_of(setting.architecture, card("a100-sxm-80gb"), "vllm 0.8.3", prompt=4096), TP4).fits[0]


def test_one_full_length_request_must_fit_a_prefill_worker():
    """ai-dynamo/dynamo#10104: 70B FP8 at TP1 has no room for 131,072 tokens of 40 GiB."""
    setting = setting_of(model("llama-3.1-70b-fp8"), card("h100-sxm-80gb", 79.1), "vllm 0.11", prompt=131072, kv_cache="bf16")
    table = memory_of(setting, TP1)
    assert table.weights[0] / GIB == pytest.approx(67.7, rel=0.01)
    assert table.kv_per_sequence[0] / GIB == pytest.approx(40.0)
    assert not table.fits[0]


@pytest.mark.parametrize(("utilization", "warned"), [(0.98, True), (0.90, False)])
def test_little_outside_the_budget_is_warned_about(utilization, warned):
    """vllm-project/vllm#15598: R1 over 32 cards of 44.53 GiB at 0.98 leaves 0.89 GiB for CUDA graphs, and capture fails."""
    setting = setting_of(model("deepseek-r1"), card("l20-48gb", 44.53), "vllm 0.8", utilization, batched=2048)
    degrees = Degrees(8, 4)
    assert memory_of(setting, degrees, partition=(15, 16, 15, 15)).weights.max() / GIB == pytest.approx(20.64, rel=0.06)
    assert ("GRAPH_MEM" in codes(setting, degrees)) is warned


def test_a_laptop_gpu_needs_an_absolute_headroom():
    """vllm-project/vllm#57475: 0.98 of 22.36 GiB leaves 0.45 GiB, capture took 0.46."""
    setting = setting_of(model("qwen3-8b"), card("rtx-4090-24gb", 22.36), "vllm 0.20", 0.98)
    assert "GRAPH_MEM" in codes(setting, TP1)


def test_kv_of_compressed_tokens_is_independent_of_tp():
    """vllm-project/recipes#762: DP8 with EP8 holds 7.7 times the tokens of TP8 with EP8 (DeepSeek-V4-Flash on eight B200)."""
    setting = setting_of(model("deepseek-v4-flash"), card("b200-180gb"), "vllm 0.25", 0.95, prompt=65536, kv_cache="fp8")
    together = memory_of(setting, Degrees(8, 1, 8), 8)
    apart = memory_of(setting, Degrees(1, 1, 8, 8), 8)
    assert 7.0 <= apart.max_sequences[0] / together.max_sequences[0] <= 8.0
    assert "KV_REPLICATED" in codes(setting, Degrees(8, 1, 8))
    assert "KV_REPLICATED" not in codes(setting, Degrees(1, 1, 8, 8))


@pytest.mark.parametrize(("kv_gib", "tokens"), [(64.68, 626_949), (103.92, 1_007_303)])
def test_sliding_layers_are_charged_a_window_and_a_chunk(kv_gib, tokens):
    """redhat-performance/configiq#112: Gemma-4-31B on one H200 prints 626,949 and 1,007,303 tokens; its KV stays 16-bit beside 4-bit weights."""
    for name in ("gemma-4-31b", "gemma-4-31b-nvfp4"):
        setting = setting_of(model(name), card("h200-sxm-141gb"), "vllm 0.20", prompt=262144, batched=8192)
        assert setting.precision.kv_cache == "bf16"
        assert reported_tokens(setting, TP1, kv_gib * GIB) == pytest.approx(tokens, rel=0.001)


def test_state_slots_limit_the_running_sequences():
    """kaito-project/kaito#2319, vllm-project/vllm#49064: 614 slots of a 27B hybrid on one H100, fewer than 1,024 sequences.

    The report gives no utilization and its vision tower is not in the config: hence the wide tolerance. States in 32 bits would give half the slots.
    """
    setting = setting_of(model("qwen3.5-27b"), card("h100-sxm-80gb"), "vllm 0.25", prompt=132000)
    table = memory_of(setting, TP1)
    slots = state_slots(setting, engine("vllm 0.25"), 1, 1, room(table) * GIB)
    assert slots == pytest.approx(614, rel=0.25)
    assert "STATE_SLOTS" in codes(setting, TP1)
    assert state_slots(setting_of(model("llama-3.1-8b"), card("h100-sxm-80gb")), engine("vllm"), 1, 1, 1e10) is None


@pytest.mark.parametrize(("utilization", "longest"), [(0.90, 205_728), (0.95, 235_296)])
def test_attention_dp_hurts_one_long_request_of_a_gqa_model(utilization, longest):
    """vllm-project/recipes#12: 480B at DP8 with EP8 needs 62.0 GiB for one request of 262,144 tokens, TP8 with EP8 an eighth of it.

    The buffers of experts under data-parallel attention were modelled on this report, so its lengths are a fit and no prediction.
    """
    architecture = model("qwen3-coder-480b-a35b-fp8")
    setting = setting_of(architecture, card("h20-141gb", 139.8), "vllm 0.10.1", utilization, prompt=262144, kv_cache="bf16")
    apart, together = Degrees(1, 1, 8, 8), Degrees(8, 1, 8)
    assert memory_of(setting, apart, 8).kv_per_sequence[0] / GIB == pytest.approx(62.0)
    assert memory_of(setting, together).kv_per_sequence[0] / GIB == pytest.approx(7.75)
    assert not memory_of(setting, apart, 8).fits[0]
    assert memory_of(setting, together).fits[0]
    assert longest_sequence(setting, apart) == pytest.approx(longest, rel=0.03)


def test_experts_are_divided_by_the_expert_ranks():
    """ai-dynamo/aiconfigurator#1390: 384 experts over EP8 are 48 a GPU and about 71 GB in NVFP4, not eight times that."""
    architecture = model("kimi-k2.5-nvfp4")
    setting = setting_of(architecture, card("b200-180gb"), "vllm 0.20")
    kind = max(architecture.layer_kinds, key=lambda kind: kind.feed_forward.experts)
    experts = [tensor for tensor in layer_tensors(kind, architecture.hidden_size) if tensor.family == "expert"]
    one, eight = np.array([1]), np.array([8])
    held = bytes_per_rank(experts, architecture, setting.precision, engine("vllm 0.20"), one, eight, eight)[0]
    assert 60 * held == pytest.approx(60 * 48 * 3 * 7168 * 2048 * 0.5625, rel=1e-6)
    assert 60 * held / 1e9 == pytest.approx(71, rel=0.02)


def test_a_checkpoint_of_many_shards_adds_up_to_its_index():
    """moonshotai/Kimi-K3: its index counts 1,560,860,324,864 B, of which a vision tower of 401M parameters is not the language model's."""
    architecture = model("kimi-k3")
    precision = setting_of(architecture, card("gb300-279gb"), "vllm").precision
    assert model_bytes(architecture, precision) == pytest.approx(1_560_860_324_864 - 2 * 401e6, rel=2e-4)


def test_every_replica_holds_weights_of_its_own():
    """vllm-project/vllm#16011: on eight GPUs one TP8 holds 1.45 times the tokens of two TP4; the difference is exactly one copy of the weights.

    The report does not name its model; 70B in BF16 on 80 GB cards comes to the same ratio.
    """
    architecture = model("llama-3.1-70b")
    setting = setting_of(architecture, card("a100-sxm-80gb"), "vllm 0.8", prompt=32_000)
    whole, half = memory_of(setting, Degrees(8)), memory_of(setting, TP4)
    one, two = 8 * (whole.budget[0] - whole.weights[0]), 2 * 4 * (half.budget[0] - half.weights[0])
    assert one - two == pytest.approx(model_bytes(architecture, setting.precision), rel=0.01)
    assert room(whole) / room(half) == pytest.approx(1.45, rel=0.1)


def test_one_card_holds_a_sparse_model():
    """vllm-project/vllm#22331: gpt-oss-120b, 60 to 66 GiB of weights, fits one 80 GB card."""
    setting = setting_of(model("gpt-oss-120b"), card("a100-sxm-80gb"), "vllm 0.11")
    assert 60.0 <= memory_of(setting, TP1).weights[0] / GIB <= 66.0
    assert memory_of(setting, TP1).fits[0]


def test_mixed_tp_and_pp_fit_six_small_cards():
    """vllm-project/vllm#4232: Qwen1.5-32B in fp16 as TP2 x PP3 on six T4 of 14.6 GiB: about 10.6 GiB on the fullest rank, 45,056 B a token."""
    setting = setting_of(model("qwen1.5-32b"), card("t4-16gb", 14.6), "vllm 0.4.1", prompt=4096, batched=4096)
    table = memory_of(setting, Degrees(2, 3), partition=(22, 21, 21))
    first = {term.name: term.expected for term in memory_by_stage(setting, Degrees(2, 3), 1, (22, 21, 21))[0].terms}
    assert (first["layers"] + first["embedding"]) / GIB == pytest.approx(10.6, rel=0.03)
    size = first["KV cache"]
    assert size / 4096 == pytest.approx(45056)
    assert table.fits[0]


def test_tp4_of_70b_fits_48_gib_cards():
    """vllm-project/vllm#11147: 32.9 GiB of weights a GPU."""
    setting = setting_of(model("llama-3.1-70b"), card("a6000-48gb", 47.5), "vllm 0.6.4", prompt=8192)
    assert memory_of(setting, TP4).weights[0] / GIB == pytest.approx(32.9, rel=0.01)
    assert memory_of(setting, TP4).fits[0]


def test_a_replicated_tower_is_counted_once_a_gpu():
    """vllm-project/vllm#8097: a 5.5B vision tower with 25 heads costs about 11 GB on every GPU at TP4."""
    architecture = replace(model("internvl2-26b"), vision=VisionTower(25, 5_540_000_000))
    assert vision_bytes(architecture, engine("vllm"), np.array([4]))[0] / 1e9 == pytest.approx(11.1, rel=0.01)


def test_kv_depends_on_its_own_dtype_and_not_on_the_weights():
    """vllm-project/vllm#22291: Qwen2.5-7B in 8-bit GPTQ takes 0.164 GiB for 3,072 tokens."""
    setting = setting_of(model("qwen2.5-7b-gptq-int8"), card("a100-sxm-80gb"), prompt=3072, kv_cache="bf16")
    assert memory_of(setting, TP1).kv_per_sequence[0] / GIB == pytest.approx(0.164, rel=0.05)


def test_tp_beyond_the_kv_heads_repeats_the_cache():
    """vllm-project/vllm#8908: 405B with 8 kv heads at TP16 holds twice the KV per token of TP4 x PP4 on the same GPUs."""
    attention = model("llama-3.1-405b").layer_kinds[0].attention
    precision = Precision("bf16", "bf16", "bf16")
    wide = 126 * token_bytes(attention, precision, np.array([16]))[0] * 16
    nested = 126 / 4 * token_bytes(attention, precision, np.array([4]))[0] * 16
    assert wide == pytest.approx(2 * nested)
    setting = setting_of(model("llama-3.1-405b"), card("a100-sxm-64gb"), "vllm 0.6.2", prompt=8192)
    assert "KV_REPLICATED" in codes(setting, Degrees(16))
    assert "KV_REPLICATED" not in codes(setting, Degrees(4, 4))


def test_a_draft_model_is_counted_beside_its_target():
    """vllm-project/vllm#8731: 32B and its 7B draft over TP4 take under 20 GiB of weights a GPU: the engine's accounting failed, not the arithmetic."""
    held = [
        memory_of(setting_of(model(name), card("a100-sxm-40gb"), "vllm 0.6.1"), TP4).weights[0] / GIB
        for name in ("qwen2.5-32b", "qwen2.5-7b")
    ]
    assert held[0] == pytest.approx(15.3, rel=0.02)
    assert held[1] == pytest.approx(3.55, rel=0.02)
