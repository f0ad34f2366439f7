"""Real reports about pipelines: layers counted instead of bytes, and stages judged by the wrong memory."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.cost.memory_detail import engine_split, longest_sequence, memory_by_stage, memory_diagnostics, one_shape
from planner.cost.memory_weights import layer_rank_bytes, rank_weights
from planner.cost.partition import engine_partition, stage_loads
from planner.plan.shape import Degrees
from tests.cases.fitting import GIB, card, memory_of, setting_of


def loads(setting, degrees, partition):
    facts = engine(setting.engine)
    shape = one_shape(degrees, 1)
    ends = rank_weights(
        setting.architecture,
        setting.precision,
        facts,
        shape.tensor_parallel,
        shape.pipeline_parallel,
        shape.expert_parallel,
        shape.data_parallel,
    )
    layers = layer_rank_bytes(
        setting.architecture, setting.precision, facts, degrees.tensor_parallel, degrees.expert_parallel, degrees.data_parallel
    )
    return np.array(stage_loads(layers, partition, float(ends.embedding[0]), float(ends.head[0]))) / GIB


@pytest.mark.parametrize(
    ("name", "layers", "stages", "expected"),
    [
        ("sglang 0.5.0rc1", 94, 8, (11, 11, 11, 11, 11, 11, 11, 17)),
        ("sglang 0.5.0rc1", 61, 8, (7, 7, 7, 7, 7, 7, 7, 12)),
        ("sglang 0.5.6", 61, 8, (8, 8, 8, 8, 8, 7, 7, 7)),
        ("sglang 0.5.7", 61, 8, (7, 7, 7, 8, 8, 8, 8, 8)),
        ("tensorrt-llm 0.18", 94, 8, (11, 11, 11, 11, 11, 11, 11, 17)),
        ("tensorrt-llm 0.20", 94, 8, (12, 12, 12, 12, 12, 12, 11, 11)),
        ("vllm 0.7.2", 61, 3, (20, 20, 21)),
        ("vllm 0.8", 61, 8, (7, 7, 8, 8, 8, 8, 8, 7)),
        ("vllm 0.8", 61, 4, (15, 15, 16, 15)),
        ("vllm 0.8", 94, 4, (23, 24, 24, 23)),
        ("vllm 0.8", 80, 8, (10,) * 8),
    ],
)
def test_each_engine_version_splits_in_its_own_way(name, layers, stages, expected):
    """sgl-project/sglang#9798, #6666, #13282, #13977; vllm-project/vllm#12895, #13839, #46217; NVIDIA/TensorRT-LLM#3827."""
    assert engine_partition(engine(name), layers, stages) == expected


def test_seventeen_layers_on_the_last_card_do_not_fit():
    """sgl-project/sglang#9798: Qwen3-235B in bf16 at PP8: 78.8 GiB on the last card, 55.6 where the split is even."""
    setting = setting_of(model("qwen3-235b-a22b"), card("h100-sxm-80gb"), "sglang 0.5.0rc1", 0.95, prompt=1024)
    degrees = Degrees(1, 8)
    default = engine_partition(engine(setting.engine), 94, 8)
    held = loads(setting, degrees, default)
    assert held[-1] == pytest.approx(78.8 + 1.16, rel=0.02)
    assert not memory_of(setting, degrees, partition=default).fits[0]
    warned = engine_split(setting, degrees)
    assert warned is not None
    assert warned.code == "PP_UNBALANCED"
    assert "SGLANG_PP_LAYER_PARTITION=" in warned.hint
    table = memory_of(setting, degrees)
    assert table.fits[0]
    assert max(table.partitions[0]) == 12
    assert max(loads(setting, degrees, table.partitions[0])) == pytest.approx(55.6, rel=0.03)


def test_dense_first_layers_and_the_head_unbalance_equal_counts():
    """vllm-project/vllm#12895: R1 in bf16 as TP8 x PP3: 46.2, 53.6, 56.5 GiB by default, 51.5, 53.6, 51.1 when balanced."""
    setting = setting_of(model("deepseek-r1-bf16"), card("a100-sxm-80gb", 79.15), "vllm 0.7.2", 0.95, prompt=4096)
    degrees = Degrees(8, 3)
    default = engine_partition(engine(setting.engine), 61, 3)
    assert loads(setting, degrees, default) == pytest.approx([46.2, 53.6, 56.5], rel=0.03)
    assert loads(setting, degrees, (22, 20, 19)) == pytest.approx([51.5, 53.6, 51.1], rel=0.03)
    assert engine_split(setting, degrees).code == "PP_UNBALANCED"
    assert max(loads(setting, degrees, memory_of(setting, degrees).partitions[0])) <= 54.5


def test_the_printed_rank_is_not_the_fullest():
    """deepseek-ai/DeepSeek-V3#205: 671B FP8 as TP8 x PP4 on 24 GB cards: 16.96 GiB on the printed rank, 21.4 on the fullest."""
    setting = setting_of(model("deepseek-v3"), card("rtx-4090-24gb", 23.6), "vllm 0.6.6", 0.98, prompt=128, batched=2048)
    held = loads(setting, Degrees(8, 4), (15, 15, 16, 15))
    assert held[0] == pytest.approx(16.96, rel=0.02)
    assert held.max() == pytest.approx(21.6, rel=0.02)
    balanced = memory_of(setting, Degrees(8, 4)).partitions[0]
    assert max(loads(setting, Degrees(8, 4), balanced)) < held.max() - 1.0
    assert engine_split(setting, Degrees(8, 4)).code == "PP_UNBALANCED"


@pytest.mark.parametrize(("utilization", "gain"), [(0.9, 1.05), (0.59, 1.6)])
def test_lighter_ends_hold_more(utilization, gain):
    """vllm-project/vllm#6920: Llama-3-70B FP8 over eight L4: fewer layers at both ends raised the cache 2.1 times.

    The report does not say how much memory was left; the gain grows as it shrinks, so it is checked at the default and at a tight budget.
    """
    setting = setting_of(model("llama-3.1-70b-fp8"), card("l4-24gb"), "vllm 0.5.3", utilization, prompt=1024, kv_cache="bf16", batched=4096)
    degrees = Degrees(1, 8)
    even = longest_sequence(setting, degrees, (10,) * 8)
    partition = memory_of(setting, degrees).partitions[0]
    assert partition[0] < 10
    assert partition[-1] < 10
    assert gain <= longest_sequence(setting, degrees, partition) / even <= 2.6


def test_each_stage_has_its_own_longest_sequence():
    """vllm-project/vllm#34076: 16 of 48 layers on a 16 GB card: 3.18 GiB there hold 104,202 tokens, not the 34,736 the engine printed."""
    architecture = model("qwen3-coder-30b-a3b-fp8")
    setting = setting_of(architecture, card("rtx-5070-ti-16gb"), "vllm 0.15.2", prompt=262144, kv_cache="bf16")
    degrees = Degrees(1, 2)
    stages = memory_by_stage(setting, degrees, 1, (16, 32))
    kept = [next(term.expected for term in stage.terms if term.name == "KV cache") for stage in stages]
    assert sum(kept) / GIB == pytest.approx(24.0)
    assert 3.18 * GIB / (kept[0] / 262_144) == pytest.approx(104_202, rel=0.001)
    assert not memory_of(setting, degrees, partition=(16, 32)).fits[0]


def test_the_stage_and_the_largest_term_are_named():
    """A refusal says which stage is short, by how much, and what takes the room (vllm-project/vllm#12895)."""
    setting = setting_of(model("deepseek-r1-bf16"), card("a100-sxm-40gb"), "vllm 0.7.2", prompt=4096)
    found = memory_diagnostics(setting, Degrees(8, 3), 1, (20, 20, 21))[0]
    assert found.code == "WEIGHTS_DO_NOT_FIT"
    assert "of stage 2 (of 3)" in found.message
    assert "largest term is layers" in found.hint
