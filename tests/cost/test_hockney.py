"""The textbook profile on whole shapes: the paper examples end to end, and its laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture
from planner.catalog.gpus import gpu
from planner.catalog.links import link
from planner.cost import paper
from planner.cost.evaluation import evaluate
from planner.cost.hockney import active_bytes, active_parameters, best_all_reduce, evaluate_hockney
from planner.cost.setting import Precision, Setting, ShapeArrays
from planner.cost.tensors import model_parameters
from planner.topology.paths import LinkPath


def dense(name, layers, hidden, heads, kv_heads, width, vocabulary):
    attention = Attention(AttentionKind.FULL, heads, kv_heads, hidden // heads, hidden // heads)
    kind = LayerKind(attention=attention, feed_forward=FeedForward(width=width))
    return ModelArchitecture(name, "llama", hidden, vocabulary, (kind,), (0,) * layers, False, 8192, "bf16", "hand-made")


LLAMA_70B = dense("70b", 80, 8192, 64, 8, 28672, 128256)
LLAMA_405B = dense("405b", 126, 16384, 128, 8, 53248, 128256)


def mixture(experts=64, active=4):
    attention = Attention(AttentionKind.FULL, 32, 8, 128, 128)
    kind = LayerKind(attention=attention, feed_forward=FeedForward(experts=experts, experts_per_token=active, expert_width=1536))
    return ModelArchitecture("moe", "moe", 4096, 128256, (kind,), (0,) * 48, False, 8192, "bf16", "hand-made")


def path(level, name, across=False):
    entry = link(name)
    return LinkPath(level, entry, entry.bandwidth.value, entry.bandwidth.value, 1, float(across), 1.0, across)


PATHS = (path("gpu", "nvlink4-h100"), path("domain", "nvlink4-h100"), path("leaf", "infiniband-ndr-400", across=True))


def setting(architecture=LLAMA_70B, weights="bf16", paths=PATHS, prompt=2048.0, **fields):
    precision = Precision(weights, "bf16", "bf16")
    return Setting(
        architecture, precision, "vllm", gpu("h100-sxm-80gb"), paths, prompt, 256.0, 8192, 8192, 0.9, profile="hockney", **fields
    )


def shapes(tensor=1, pipeline=1, expert=1, data=1, batch=32, tp_level=1, stage_level=1, stage_scopes=1, replica_level=1):
    columns = np.broadcast_arrays(tensor, pipeline, expert, data, batch, tp_level, stage_level, stage_scopes, replica_level)
    return ShapeArrays(*(np.atleast_1d(column).astype(np.int64) for column in columns))


def times_of(table):
    return [getattr(table, name) for name in table.__dataclass_fields__ if name != "algorithm"]


def test_example_one_decode():
    table = evaluate_hockney(setting(), shapes(tensor=8))
    # 70.6e9 parameters in bf16 where the notes say 141 GB.
    assert table.compute[0] == pytest.approx(5.2612e-3, rel=2e-3)
    assert table.tp_comm[0] == pytest.approx(1.606e-3, rel=1e-3)
    assert table.algorithm[0] == "one-shot"
    assert table.overhead[0] == pytest.approx(0.305, rel=3e-3)
    assert table.tpot[0] == pytest.approx(table.compute[0] + table.tp_comm[0])


def test_example_two_prefill():
    table = evaluate_hockney(setting(), shapes(tensor=8, batch=1))
    assert table.prefill_comm[0] == pytest.approx(25.358e-3, rel=1e-3)
    # The notes round 70.6e9 parameters to 70e9.
    assert table.prefill_compute[0] == pytest.approx(59.733e-3 * model_parameters(LLAMA_70B) / 70e9, rel=1e-3)
    assert table.ttft[0] == pytest.approx(table.prefill_comm[0] + table.prefill_compute[0])


def test_example_three_across_nodes():
    fp8 = setting(LLAMA_405B, "fp8")
    table = evaluate_hockney(
        fp8, shapes(tensor=[16, 8], pipeline=[1, 2], tp_level=[2, 1], stage_scopes=[2, 1], stage_level=[2, 1], replica_level=2)
    )
    assert table.algorithm.tolist() == ["half-ring-across", "one-shot"]
    assert table.tp_comm[0] == pytest.approx(16.2945e-3, rel=1e-3)
    assert table.pp_comm[1] == pytest.approx(23.97e-6, rel=1e-3)
    assert table.tp_comm[1] + table.pp_comm[1] == pytest.approx(0.203 * 15.112e-3, rel=5e-3)
    assert table.bubble[1] == pytest.approx(0.0303, rel=1e-3)
    assert table.compute[1] == pytest.approx(15.112e-3, rel=5e-3)
    assert table.overhead[0] > 1 > paper.OVERHEAD_LIMIT > table.overhead[1]
    assert table.tpot[0] > table.tpot[1]


def test_example_four_efficiency():
    table = evaluate_hockney(setting(), shapes(tensor=[1, 2, 4, 8, 16], batch=1))
    assert table.latency_efficiency[0] == pytest.approx(1.0)
    # Batch 1 has hardly any bytes to move: the notes' latency form, or less where one-shot is faster.
    formula = paper.efficiency(np.array([1.0, 2, 4, 8, 16]), 141e9, 3.35e12, 2e-6, 80)
    assert np.all(table.latency_efficiency >= formula - 0.01)
    assert table.latency_efficiency[:3] == pytest.approx(formula[:3], abs=0.01)
    assert np.all(np.diff(table.latency_efficiency) < 0)


def test_one_gpu_sends_nothing():
    table = evaluate_hockney(setting(), shapes(batch=[1, 8, 512], tp_level=0, stage_level=0, replica_level=0))
    for column in (
        table.tp_comm,
        table.pp_comm,
        table.ep_comm,
        table.prefill_comm,
        table.overhead,
        table.bubble,
        table.queueing,
        table.fixed,
    ):
        assert np.all(column == 0)
    assert table.algorithm.tolist() == ["none"] * 3
    assert table.efficiency == pytest.approx(np.ones(3))


def test_pipelines_never_shorten_a_single_sequence():
    table = evaluate_hockney(setting(), shapes(tensor=2, pipeline=[1, 2, 4, 8], batch=1, replica_level=2))
    assert np.all(np.diff(table.tpot) > 0)
    assert np.all(np.diff(table.ttft) > 0)


def test_every_shape_has_finite_times():
    tensor, pipeline, batch = (axis.ravel() for axis in np.meshgrid([1, 2, 3, 6, 8, 16], [1, 2, 5], [1, 7, 64, 4096]))
    level = np.where(tensor > 8, 2, 1)
    table = evaluate_hockney(setting(), shapes(tensor, pipeline, batch=batch, tp_level=level, stage_level=level, replica_level=2))
    for column in times_of(table):
        assert column.shape == tensor.shape
        assert np.all(np.isfinite(column))
        assert np.all(column >= 0)


@pytest.mark.parametrize("column", ["tpot", "tp_comm", "pp_comm", "throughput"])
def test_more_sequences_take_longer_and_yield_more(column):
    table = evaluate_hockney(setting(), shapes(tensor=8, pipeline=2, batch=2 ** np.arange(9), replica_level=2))
    assert np.all(np.diff(getattr(table, column)) > 0)


def test_better_links_never_cost_more():
    own = shapes(tensor=[2, 4, 8, 16], pipeline=2, tp_level=[1, 1, 1, 2], stage_scopes=[1, 1, 1, 2], replica_level=2)
    found = []
    for inner, outer in (
        ("pcie3-x16", "infiniband-hdr-200"),
        ("pcie5-x16", "infiniband-ndr-400"),
        ("nvlink4-h100", "infiniband-xdr-800"),
        ("nvlink5-b200", "infiniband-xdr-800"),
    ):
        paths = (path("gpu", inner), path("domain", inner), path("leaf", outer, across=True))
        found.append(evaluate_hockney(setting(paths=paths), own).tpot)
    assert np.all(np.diff(np.array(found), axis=0) <= 0)


def test_across_scopes_never_costs_less_than_inside():
    for batch in (1, 32, 2048):
        inside = evaluate_hockney(setting(), shapes(tensor=16, batch=batch, tp_level=1))
        across = evaluate_hockney(setting(), shapes(tensor=16, batch=batch, tp_level=2, stage_scopes=2))
        assert across.tp_comm[0] >= inside.tp_comm[0]


def test_shared_nics_slow_the_hop():
    halved = replace(PATHS[2], bandwidth=PATHS[2].bandwidth / 2)
    own = shapes(tensor=8, pipeline=2, batch=256, replica_level=2)
    whole, half = (evaluate_hockney(setting(paths=(*PATHS[:2], last)), own).pp_comm[0] for last in (PATHS[2], halved))
    assert half - 3e-6 == pytest.approx(2 * (whole - 3e-6))


def test_large_messages_take_the_ring_and_pcie_has_no_one_shot():
    ranks = np.array([8, 8])
    _, names = best_all_reduce(PATHS[1], ranks, np.array([1e5, 1e8]))
    assert names.tolist() == ["one-shot", "ring"]
    _, names = best_all_reduce(path("host", "pcie5-x16"), ranks, np.array([1e5, 1e8]))
    assert names.tolist() == ["tree", "ring"]


def test_a_mixture_reads_its_active_experts_only():
    one = setting(mixture())
    plain, routed = active_bytes(one)
    all_parameters = model_parameters(one.architecture)
    experts = 48 * 64 * 3 * 1536 * 4096
    assert routed == pytest.approx(experts * 2 * 4 / 64)
    assert plain == pytest.approx((all_parameters - experts) * 2)
    assert active_parameters(one) == pytest.approx((all_parameters - experts, experts * 4 / 64))


def test_expert_volume_is_the_notes_own():
    one = setting(mixture())
    table = evaluate_hockney(one, shapes(tensor=1, data=8, expert=8, batch=64))
    volume = paper.expert_volume(48, 8, 1, 4, 4096)
    assert table.ep_comm[0] == pytest.approx(volume / 450e9 + 2 * 48 * 7 * 2e-6)
    assert table.tp_comm[0] == 0
    cut = evaluate_hockney(one, shapes(tensor=1, data=8, expert=1, batch=64))
    # Without expert parallelism the stage gathers all 64 tokens and scatters their sums.
    assert cut.ep_comm[0] == pytest.approx(48 * (14 * 2e-6 + 2 * 7 / 8 * 64 * 4096 * 2 / 450e9))


def test_cached_prompts_are_not_computed():
    own = shapes(tensor=8, batch=1)
    whole = evaluate_hockney(setting(), own)
    half = evaluate_hockney(setting(prefix_cache_hit_rate=0.5), own)
    assert half.prefill_compute[0] == pytest.approx(whole.prefill_compute[0] / 2)
    assert half.tpot[0] == whole.tpot[0]


def test_the_profile_is_chosen_by_name():
    own = shapes(tensor=8)
    for ours, theirs in zip(times_of(evaluate(setting(), own)), times_of(evaluate_hockney(setting(), own)), strict=True):
        assert np.array_equal(ours, theirs)
