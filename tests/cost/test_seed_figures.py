"""Every figure of the paper calculators with an exact value, by our functions."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from planner.catalog.links import link, study_interconnects
from planner.cost import paper, paper_study
from planner.cost.collectives import all_reduce_volume, ring_hops, tree_hops

FIGURES = tomllib.loads((Path(__file__).parent / "seed_figures.toml").read_text(encoding="utf-8"))
CALCULATOR, CROSSOVER, STUDY = FIGURES["calculator"], FIGURES["crossover"], FIGURES["study"]
H100_READ = 3.35e12
WEIGHTS_70B = 141e9
NVLINK, INFINIBAND = CALCULATOR["constants"]["nvlink"], CALCULATOR["constants"]["infiniband"]


def close(value):
    return pytest.approx(value, rel=1e-3)


def printed(value, decimals):
    """Equal after rounding as the source rounds."""
    return pytest.approx(value, abs=0.5 * 10**-decimals * 1.001)


def test_constants_are_the_catalog_s():
    names = {"nvlink": "nvlink4-h100", "pcie_gen5": "pcie5-x16", "infiniband": "infiniband-ndr-400"}
    for name, constants in CALCULATOR["constants"].items():
        entry = link(names[name])
        assert (entry.hockney_alpha.value, entry.hockney_bandwidth.value) == (constants["alpha"], constants["bandwidth"])


def decode(algorithm):
    return paper.tensor_parallel_time(80, 8, paper.message_bytes(32, 1, 8192), NVLINK["alpha"], NVLINK["bandwidth"], algorithm)


def test_decode_volumes():
    figures = CALCULATOR["decode"]
    message = paper.message_bytes(32, 1, 8192)
    assert message == figures["message"]
    assert all_reduce_volume(8, message) == close(figures["volume_per_all_reduce"])
    assert figures["all_reduces"] == paper.ALL_REDUCES_PER_LAYER * 80
    assert figures["all_reduces"] * ring_hops(8) == figures["ring_hops_total"]
    assert figures["all_reduces"] * tree_hops(8) == figures["tree"]["hops"]
    assert decode("ring").volume == close(figures["volume_total"])
    # The source prints 143 MB: a mix of KB of 1,024 and of 1,000 bytes.
    assert abs(decode("ring").volume / figures["printed"]["volume_total"] - 1) > 0.02


@pytest.mark.parametrize("algorithm", ["ring", "tree", "one_shot"])
def test_decode_times(algorithm):
    figures, time = CALCULATOR["decode"][algorithm], decode(algorithm)
    assert time.hops == figures["hops"]
    assert time.latency == close(figures["latency"])
    assert time.transfer == close(CALCULATOR["decode"]["ring"]["transfer"])
    assert time.total == close(figures["total"])
    compute = paper.weight_read_time(WEIGHTS_70B, 8, H100_READ)
    assert compute == close(CALCULATOR["decode"]["compute"])
    if "overhead" in figures:
        assert paper.overhead(time.total, compute) == close(figures["overhead"])


def test_prefill():
    figures = CALCULATOR["prefill"]
    message = paper.message_bytes(1, 2048, 8192)
    time = paper.tensor_parallel_time(80, 8, message, NVLINK["alpha"], NVLINK["bandwidth"], "ring")
    compute = paper.prefill_compute_time(70e9, 2048, 8, 600e12)
    assert message == figures["message"]
    assert all_reduce_volume(8, message) == close(figures["volume_per_all_reduce"])
    assert time.volume == close(figures["volume_total"])
    assert time.transfer == close(figures["transfer"])
    assert time.latency == close(figures["latency"])
    assert time.total == close(figures["total"])
    assert close(figures["flops"]) == 2 * 70e9 * 2048
    assert compute * 600e12 == close(figures["flops_per_gpu"])
    assert compute == close(figures["compute"])
    assert paper.overhead(time.total, compute) == close(figures["overhead"])


def test_tensor_parallel_across_nodes():
    figures = CALCULATOR["across"]
    message = paper.message_bytes(32, 1, 16384)
    time = paper.half_ring_across_time(126, 16, message, INFINIBAND["alpha"], INFINIBAND["bandwidth"])
    compute = paper.weight_read_time(405e9, 16, H100_READ)
    assert all_reduce_volume(16, message) == close(figures["volume_per_all_reduce"])
    assert time.volume == close(figures["volume_total"])
    assert time.transfer == close(figures["transfer"])
    assert time.hops == figures["hops"]
    assert time.latency == close(figures["latency"])
    assert time.total == close(figures["total"])
    assert compute == close(figures["compute"])
    assert paper.overhead(time.total, compute) == close(figures["overhead"])
    # The source prints a third of the hops its own text names, and with them half of the time.
    assert time.hops == 3 * figures["printed"]["hops"]
    assert paper.overhead(time.total, compute) > 1 > paper.OVERHEAD_LIMIT


def test_pipeline_across_nodes():
    figures = CALCULATOR["pipelined"]
    message = paper.message_bytes(32, 1, 16384)
    hop = paper.pipeline_time(2, message, INFINIBAND["alpha"], INFINIBAND["bandwidth"])
    compute = paper.weight_read_time(405e9, 8, H100_READ)
    assert hop.volume == figures["pp_volume"]
    assert hop.total == close(figures["pp_time"])
    assert compute == close(figures["compute"])
    for algorithm in ("one_shot", "tree"):
        inside = paper.tensor_parallel_time(126, 8, message, NVLINK["alpha"], NVLINK["bandwidth"], algorithm)
        share = paper.overhead(inside.total + hop.total, compute)
        # Given to three decimals.
        assert share == pytest.approx(figures[f"overhead_{algorithm}"], rel=3e-3)
        assert share > 1.5 * figures["printed"]["overhead"]
        assert share < paper.OVERHEAD_LIMIT
    assert paper.bubble(2, 32) == pytest.approx(figures["bubble"], rel=1e-3)


@pytest.mark.parametrize("index", range(7))
def test_when_tensor_parallelism_stops_helping(index):
    figures = CALCULATOR["scaling"]
    degree = figures["degrees"][index]
    model = (degree, WEIGHTS_70B, H100_READ, 2e-6, 80)
    assert paper.step_time(*model) * 1e3 == printed(figures["total_ms"][index], 2)
    assert paper.speedup(*model) == printed(figures["speedup"][index], 2)
    assert paper.efficiency(*model) == printed(figures["efficiency"][index], 2 if degree == 2 else 3)


def test_optimal_degrees():
    figures = CALCULATOR["scaling"]
    model = (WEIGHTS_70B, H100_READ, 2e-6, 80)
    assert paper.time_optimal_ranks(*model) == close(figures["time_optimal"])
    for threshold, degree in figures["cost_optimal"]:
        assert paper.cost_optimal_ranks(threshold, *model) == degree


def test_time_optimum_is_a_minimum():
    model = (WEIGHTS_70B, H100_READ, 2e-6, 80)
    best = paper.time_optimal_ranks(*model)
    times = [float(paper.step_time(best * factor, *model)) for factor in (0.9, 1.0, 1.1)]
    assert times[1] == min(times)


def test_layer_parameters():
    small = paper.layer_parameters(4096, 11008)
    large = paper.layer_parameters(8192, 28672)
    assert small == CROSSOVER["layer_parameters_7b"]
    assert large == CROSSOVER["layer_parameters_70b"]
    assert small / 4096 == CROSSOVER["per_hidden_7b"]
    assert large / 8192 == CROSSOVER["per_hidden_70b"]
    assert (large / 8192) / (small / 4096) == close(CROSSOVER["ratio"])


@pytest.mark.parametrize("index", range(6))
def test_crossover_batches(index):
    batch = paper.crossover_batch(CROSSOVER["layer_parameters_7b"], 4096, CROSSOVER["links"][index], 3350e9)
    # Printed as whole sequences.
    assert batch == pytest.approx(CROSSOVER["batches"][index], abs=0.9)
    assert batch == pytest.approx(CROSSOVER["batches"][index], rel=2e-3)


@pytest.mark.parametrize("row", CROSSOVER["per_token"], ids=lambda row: f"{row['link']:.3g}")
def test_communication_per_token(row):
    for batch, milliseconds, decimals in zip(
        (1, 32, 256), row["ms"], (4 if row["link"] == 450e9 else 3, 3, 3 if row["link"] == 450e9 else 2), strict=True
    ):
        assert paper.communication_per_token(batch, 4096, 32, row["link"]) * 1e3 == printed(milliseconds, decimals)


def test_full_convention_needs_fewer_sequences():
    parameters = CROSSOVER["layer_parameters_7b"]
    source = paper.crossover_batch(parameters, 4096, 450e9, 3350e9)
    without_latency = paper.crossover_batch_full(parameters, 4096, 8, 450e9, 3350e9, 0.0)
    # Twice the all-reduces on an eighth of the weights, at 7/8 of the notes' limit of many ranks.
    assert without_latency == pytest.approx(source / 2 / 8 / (7 / 8))
    assert paper.crossover_batch_full(parameters, 4096, 8, 450e9, 3350e9, 2e-6) == 0.0
    some = paper.crossover_batch_full(parameters, 4096, 2, 450e9, 3350e9, 2e-6, hops=2)
    left = parameters * 2 / (2 * 3350e9)
    assert 2 * (2 * 2e-6 + some * 4096 * 2 / 450e9) == pytest.approx(left)
    assert paper.crossover_batch_full(parameters, 4096, 1, 450e9, 3350e9, 2e-6) == float("inf")


def test_bubbles_of_the_study():
    for name, value in paper_study.pipeline_bubbles().items():
        assert value == printed(STUDY["bubbles"][name], 4)
    # Plain 1F1B has GPipe's bubble; interleaving v chunks divides the wait.
    assert paper.bubble(4, 4, 2) == pytest.approx(3 / 11)


@pytest.mark.parametrize("name", ["pcie3", "nvlink3", "nvlink4"])
def test_tails_of_the_study(name):
    ratio, seen, formula = STUDY["tails"][name]
    assert paper_study.tail_ratio(ratio) == pytest.approx(seen, abs=0.03)
    assert paper_study.tail_ratio(ratio) == printed(formula, 3)


BYTES = {"gpt2": 117e6 * 2, "llama_7b": 6.74e9 * 2, "llama_13b": 13.02e9 * 2, "llama_70b": 70e9 * 2, "falcon_180b": 180e9 * 2}


@pytest.mark.parametrize("model", list(BYTES))
def test_minimum_gpus_of_the_study(model):
    found = [paper_study.minimum_gpus(BYTES[model], memory * 1e9) or 0 for memory in (8, 24, 40, 80)]
    expected = list(STUDY["minimum_gpus"][model])
    if model == "llama_70b":
        # The source prints 8 x 40 GB here and advises 4 x 40 GB elsewhere; four hold it.
        expected[2] = 4
    assert found == expected


GEOMETRY = {"gpt2": (12, 768), "llama_7b": (32, 4096), "llama_13b": (40, 5120), "llama_70b": (80, 8192), "falcon_180b": (80, 14848)}
TOKENS = 4096  # batch x sequence at which the 7B's figures come out


def study_model(name):
    """Single-GPU time [s], layers, message [B]: the power law through the 7B's 324.8 ms (82 % of 2 x 198.1 ms)."""
    layers, hidden = GEOMETRY[name]
    coefficient = 0.3248 / 32 / paper_study.layer_time(1.0, 4096, 1, TOKENS)
    return layers * paper_study.layer_time(coefficient, hidden, 1, TOKENS), layers, TOKENS * hidden * 2.0


@pytest.mark.parametrize("model", list(GEOMETRY))
def test_efficiency_rises_with_the_interconnect(model):
    single, layers, message = study_model(model)
    found = []
    for name in ("pcie3_x16", "pcie4_x16", "nvlink3_a100", "nvlink4_h100"):
        step = paper_study.tensor_parallel_step(8, single, layers, message, study_interconnects()[name])
        found.append(float(paper_study.efficiency(8, single, step)))
    assert found == sorted(found)
    assert found[0] < 0.37
    assert found[-1] > 0.6


def test_pipelines_are_slower_than_tensor_parallelism_in_the_study():
    single, layers, message = study_model("llama_7b")
    nvlink = study_interconnects()["nvlink3_a100"]
    tensor = float(paper_study.tensor_parallel_step(8, single, layers, message, nvlink))
    ratios = [paper_study.pipeline_step(stages, count, single, message, nvlink) / tensor for stages, count in ((2, 4), (4, 4), (8, 8))]
    assert all(ratio > 2 for ratio in ratios)
    assert 4 < ratios[0] < 6


def test_slower_links_cost_efficiency_at_two_ranks_too():
    single, layers, message = study_model("llama_7b")
    found = [
        float(paper_study.efficiency(2, single, paper_study.tensor_parallel_step(2, single, layers, message, study_interconnects()[name])))
        for name in ("pcie3_x16", "pcie4_x16", "nvlink3_a100")
    ]
    assert found == sorted(found)
    assert found[0] > 0.5
