"""Calibrated collectives: published figures (AI-dynamo aiconfigurator systems data, AWS samples, DeepEP), fallbacks and laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.collectives import collective_series, find_series, version_key
from planner.catalog.facts import Fact
from planner.catalog.links import link, links
from planner.cost.collectives_calibrated import (
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    collective_time,
    library_of,
    reduce_scatter_time,
    send_time,
)
from planner.topology.paths import LinkPath

SIZES = 2.0 ** np.arange(0, 34)
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def path(name, *, bandwidth=None, across=False):
    entry = link(name)
    peer = entry.peer_bandwidth.value if entry.peer_bandwidth is not None else entry.bandwidth.value
    full = bandwidth or entry.bandwidth.value
    return LinkPath("leaf" if across else "domain", entry, full, min(peer, full), 1, float(across), 1.0, across)


NVLINK = path("nvlink4-h100")
INFINIBAND = path("infiniband-ndr-400", across=True)


# us at 2 KiB, 64 KiB, 512 KiB, 4 MiB, 16 MiB, 512 MiB; eight ranks
EIGHT_RANKS = [
    ("nvlink3-a100", "nccl", (21.5, 28.1, 30.1, 77.3, 216.5, 4226)),
    ("nvlink3-a100", "tensorrt-llm", (4.8, 9.0, 28.3, 75.9, 216.8, 4230)),
    ("nvlink4-h100", "nccl", (15.7, 18.7, 20.1, 50.5, 121.9, 2111)),
    ("nvlink4-h100", "tensorrt-llm", (3.4, 4.6, 17.6, 51.9, 122.3, 2109)),
    ("nvlink4-h100", "sglang", (3.5, 4.8, 10.6, 33.3, 110.5, 2114)),
    ("nvlink4-h100", "vllm", (4.6, 6.4, 12.0, 30.8, 92.4, 2117)),
    ("nvlink5-b200", "nccl", (25.6, 29.0, 28.4, 53.4, 99.1, 1335)),
    ("nvlink5-b200", "sglang", (4.8, 6.2, 11.6, 24.4, 57.5, 1338)),
    ("pcie4-x16-no-peer", "nccl", (23.3, 164.5, 502.6, 5149, 19376, 649471)),
    ("pcie5-x16", "nccl", (25.5, 34.2, 156.1, 345.5, 1248, 38073)),
]


@pytest.mark.parametrize(("name", "engine", "micros"), EIGHT_RANKS)
def test_all_reduce_over_eight_ranks(name, engine, micros):
    sizes = np.array([2048, 65536, 524288, 4 << 20, 16 << 20, 512 << 20], dtype=float)
    times, _ = all_reduce_time(path(name), engine, 8, sizes)
    errors = np.abs(times * 1e6 / np.array(micros) - 1)
    assert np.median(errors) <= 0.05
    assert errors.max() <= 0.18


def test_the_algorithm_is_named():
    _, names = all_reduce_time(NVLINK, "vllm", 8, np.array([16384.0, 512.0 * 2**20]))
    assert names.tolist() == ["vllm-custom", "nccl"]
    _, names = all_reduce_time(NVLINK, "vllm", 3, np.array([16384.0]))
    assert names.tolist() == ["nccl-ring"]  # the engine's kernel takes 2, 4, 6 or 8 ranks
    _, names = all_reduce_time(path("nvlink5-nvl72"), "vllm", 72, np.array([16384.0]))
    assert names.tolist() == ["nccl-tree"]
    _, names = all_reduce_time(path("ici-v5e"), "vllm", 8, np.array([16384.0]))
    assert names.tolist() == ["xla-ring"]
    _, names = all_reduce_time(NVLINK, "vllm", 1, np.array([16384.0]))
    assert names.tolist() == ["none"]


@pytest.mark.parametrize(
    ("engine", "library"),
    [
        ("vLLM", "vllm"),
        ("TensorRT-LLM", "tensorrt-llm"),
        ("trtllm", "tensorrt-llm"),
        ("SGLang 0.5", "sglang"),
        ("llama.cpp", "nccl"),
        ("", "nccl"),
    ],
)
def test_engines_map_to_libraries(engine, library):
    assert library_of(engine) == library


def test_own_kernels_beat_nccl_for_small_messages():
    for engine in ("vllm", "sglang", "tensorrt-llm"):
        for count in (2, 4, 8):
            own, _ = all_reduce_time(NVLINK, engine, count, 16384.0)
            nccl, _ = all_reduce_time(NVLINK, "nccl", count, 16384.0)
            assert own < nccl


def test_pcie_boxes_lose_time_with_more_ranks():
    times = [float(all_reduce_time(path("pcie4-x16-no-peer"), "nccl", count, 65536.0)[0]) for count in (2, 4, 8)]
    assert times[0] < times[1] < times[2]
    # Eight ranks behind PCIe: 165 us at 64 KiB, where sixteen lanes alone would need under 4 us.
    assert times[2] == pytest.approx(165e-6, rel=0.05)


def test_boxes_are_told_by_their_gpu():
    box, _ = all_reduce_time(path("pcie4-x16"), "nccl", 4, 1024.0)
    measured, _ = all_reduce_time(path("pcie4-x16"), "nccl", 4, 1024.0, gpu="a100-pcie-80gb")
    assert measured != box


@pytest.mark.parametrize("engine", ["nccl", "vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_peer_access_is_never_slower(operation, engine):
    for count in (2, 4, 8):
        peers, _ = collective_time(operation, path("pcie4-x16"), engine, count, SIZES)
        host, _ = collective_time(operation, path("pcie4-x16-no-peer"), engine, count, SIZES)
        assert np.all(peers <= host * (1 + 1e-9))


def test_eight_gpus_need_peer_access():
    # SGLang's kernel on eight L40S at 16 MiB: 1.5 ms in the box with peer access, 16 ms in the other one.
    peers, _ = all_reduce_time(path("pcie4-x16"), "sglang", 8, 16.0 * 2**20)
    host, _ = all_reduce_time(path("pcie4-x16-no-peer"), "sglang", 8, 16.0 * 2**20)
    assert peers == pytest.approx(1.488e-3, rel=0.1)
    assert host > 8 * peers


@pytest.mark.parametrize(("engine", "least"), [("vllm", 65536.0), ("sglang", 2.0**24), ("tensorrt-llm", 2.0**24), ("lmdeploy", 2.0**24)])
@pytest.mark.parametrize(
    ("bridge", "lanes", "card"), [("nvlink3-bridge", "pcie4-x16", "a6000-48gb"), ("nvlink4-bridge", "pcie5-x16", "h100-nvl-94gb")]
)
def test_a_bridge_beats_the_lanes(bridge, lanes, card, engine, least):
    over, _ = all_reduce_time(path(bridge), engine, 2, SIZES, gpu=card)
    under, _ = all_reduce_time(path(lanes), engine, 2, SIZES, gpu=card)
    large = least <= SIZES
    assert np.all(over[large] < under[large])


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("entry", links(), ids=lambda entry: entry.name)
def test_every_link_has_times(entry, operation):
    for engine in ("vllm", "nccl"):
        for count in (2, 3, 8, 20):
            times, names = collective_time(operation, path(entry.name), engine, count, SIZES)
            assert np.all(np.isfinite(times))
            assert np.all(times > 0)
            assert "none" not in names
        assert np.all(collective_time(operation, path(entry.name), engine, 1, SIZES)[0] == 0.0)


@pytest.mark.parametrize(
    "series", collective_series(), ids=lambda series: f"{series.fabric}-{series.library}-{series.version}-{series.operation}"
)
def test_time_never_falls_with_size_while_the_algorithm_stays(series):
    sizes = np.sort(
        np.concatenate(
            [2.0 ** np.arange(0, 34, 0.25), *(np.array([piece.below or 0.0 for piece in pieces]) for pieces in series.segments.values())]
        )
    )
    for count in (2, 3, 4, 6, 8, 12):
        times, names = series.time(count, sizes)
        assert np.all(np.isfinite(times))
        assert np.all(times > 0)
        if count in series.segments:
            # Between measured ranks the curves of both are mixed, and so are their changes of algorithm.
            falls = np.diff(times) < -1e-9 * times[1:]
            assert not np.any(falls & (names[1:] == names[:-1]))
    assert series.basis in {"measured", "derived"}
    assert len(series.source) > 10


def test_ranks_and_sizes_broadcast():
    times, names = all_reduce_time(NVLINK, "vllm", np.array([1, 2, 4, 8]), np.full(4, 65536.0))
    assert times.shape == names.shape == (4,)
    assert times[0] == 0
    assert times[3] == all_reduce_time(NVLINK, "vllm", 8, 65536.0)[0]


def test_a_user_s_fit_of_the_link_counts():
    entry = link("nvlink4-h100")
    slower = replace(
        entry,
        calibrated_alpha=Fact(entry.calibrated_alpha.value * 2, "measured", "fit of one's own nccl-tests run"),
        calibrated_bandwidth=Fact(entry.calibrated_bandwidth.value / 2, "measured", "fit of one's own nccl-tests run"),
    )
    own = replace(NVLINK, link=slower)
    small, large = 1024.0, 1e9
    assert all_reduce_time(own, "nccl", 8, small)[0] == pytest.approx(2 * all_reduce_time(NVLINK, "nccl", 8, small)[0], rel=0.01)
    assert all_reduce_time(own, "nccl", 8, large)[0] == pytest.approx(2 * all_reduce_time(NVLINK, "nccl", 8, large)[0], rel=0.01)


def test_a_narrower_path_is_slower():
    half = path("pcie4-x16", bandwidth=link("pcie4-x16").bandwidth.value / 2)
    assert np.all(all_reduce_time(half, "nccl", 4, SIZES)[0] >= all_reduce_time(path("pcie4-x16"), "nccl", 4, SIZES)[0])


def test_a_mesh_gives_two_ranks_one_link():
    pair, _ = all_reduce_time(path("xgmi-mi300x"), "vllm", 2, 256e6)
    eight, _ = all_reduce_time(path("xgmi-mi300x"), "vllm", 8, 256e6)
    assert pair > 2 * eight


def test_versions_are_ordered_by_number():
    assert version_key("0.5.9") < version_key("0.5.10") < version_key("0.5.14")
    assert version_key("1.3.0rc10") < version_key("1.3.0rc20")
    assert find_series("nvlink4-h100", "sglang", "all_reduce").version == "0.5.14"
    assert find_series("nvlink4-h100", "sglang", "all_reduce", "0.5.12").version == "0.5.10"
    assert find_series("nvlink4-h100", "sglang", "all_reduce", "0.4").version == "0.5.9"
    assert find_series("nvlink4-h100", "nobody", "all_reduce") is None
    old, _ = all_reduce_time(NVLINK, "sglang", 8, 16384.0, version="0.5.9")
    new, _ = all_reduce_time(NVLINK, "sglang", 8, 16384.0, version="0.5.14")
    assert old > new


@pytest.mark.parametrize("function", [all_gather_time, reduce_scatter_time, all_to_all_time])
def test_the_parts_cost_less_than_the_all_reduce(function):
    assert np.all(function(NVLINK, "nccl", 8, SIZES[10:]) < 1.25 * all_reduce_time(NVLINK, "nccl", 8, SIZES[10:])[0])


def test_sends_grow_with_size():
    assert send_time(NVLINK, 64 * 2**20) == pytest.approx(193e-6, rel=0.05)  # between two H100 of one node, microsoft/vidur
    times = send_time(INFINIBAND, SIZES)
    assert np.all(np.diff(times) > 0)
    assert send_time(path("xgmi-mi300x"), 1e9) > 1e9 / 64e9


def test_no_series_sends_large_messages_in_no_time():
    """At 256 MiB no fabric moves more than any link of the catalog could."""
    size = np.array([2.0**28])
    for series in collective_series():
        for ranks in series.segments:
            seconds = float(series.time(ranks, size)[0][0])
            assert size[0] * series.volume(ranks) / seconds < 2e12, (series.fabric, series.library, series.operation, ranks)


def test_a_series_of_small_sizes_goes_on_at_the_bandwidth_of_its_fabric():
    series = next(item for item in collective_series() if item.fabric == "pcie4-a100" and 8 in item.segments)
    small, large = (float(series.time(8, np.array([size]))[0][0]) for size in (2.0**19, 2.0**28))
    assert large > 100 * small
