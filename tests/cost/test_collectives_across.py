"""Collectives and expert exchange over several scale-up scopes: published anchors and laws."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.links import NIC_KINDS, link, nic_link
from planner.cost.collectives_calibrated import all_reduce_time, all_to_all_time, collective_time
from planner.cost.collectives_experts import expert_exchange_time
from planner.cost.collectives_hierarchical import hierarchical_all_reduce_time, hierarchical_time
from planner.topology.paths import LinkPath

SIZES = 2.0 ** np.arange(0, 34)
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
ENGINES = ("vllm", "sglang", "tensorrt-llm", "nccl", "something-else")


def path(name, *, bandwidth=None, across=False):
    entry = link(name)
    peer = entry.peer_bandwidth.value if entry.peer_bandwidth is not None else entry.bandwidth.value
    full = bandwidth or entry.bandwidth.value
    return LinkPath("leaf" if across else "domain", entry, full, min(peer, full), 1, float(across), 1.0, across)


NVLINK = path("nvlink4-h100")
INFINIBAND = path("infiniband-ndr-400", across=True)
EFA = path("efa-p5", bandwidth=50e9, across=True)  # four ports a GPU


# ---------------------------------------------------------------- across scopes

# 2 x 8 H100 on AWS p5: bytes -> us
P5 = {
    8: 69.1,
    1024: 69.2,
    1 << 20: 123.2,
    4 << 20: 168.6,
    16 << 20: 298.1,
    64 << 20: 601.5,
    256 << 20: 1468.2,
    1 << 30: 4607.6,
    16 << 30: 66132,
}


def test_two_nodes_of_eight():
    times, names = hierarchical_all_reduce_time(NVLINK, EFA, "nccl", 8, 2, np.array(list(P5), dtype=float))
    errors = np.abs(times * 1e6 / np.array(list(P5.values())) - 1)
    assert np.median(errors) <= 0.05
    assert errors.max() <= 0.15
    assert set(names) == {"hierarchical-ring"}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("inside", "scopes"), [(8, 2), (4, 4), (1, 4), (8, 1), (2, 16)])
def test_several_scopes_never_cost_less_than_one(operation, engine, inside, scopes):
    for inner, outer in (
        (NVLINK, INFINIBAND),
        (path("pcie4-x16"), path("ethernet-100", across=True)),
        (path("nvlink5-nvl72"), path("infiniband-xdr-800", across=True)),
    ):
        whole, names = hierarchical_time(operation, inner, outer, engine, inside, scopes, SIZES)
        alone, _ = collective_time(operation, inner, engine, inside, SIZES)
        assert np.all(np.isfinite(whole))
        assert np.all(whole >= alone)
        if scopes == 1:
            assert np.all(whole == alone)
        else:
            assert all(name.startswith("hierarchical") for name in names)


def test_more_scopes_and_slower_nics_cost_more():
    message = 4e6
    over_scopes = [float(hierarchical_all_reduce_time(NVLINK, INFINIBAND, "vllm", 8, scopes, message)[0]) for scopes in (1, 2, 4, 8)]
    assert over_scopes == sorted(over_scopes)
    over_nics = [
        float(hierarchical_all_reduce_time(NVLINK, path(name, across=True), "vllm", 8, 2, message)[0])
        for name in ("infiniband-xdr-800", "infiniband-ndr-400", "infiniband-hdr-200")
    ]
    assert over_nics == sorted(over_nics)


@pytest.mark.parametrize("kind", NIC_KINDS)
def test_ranks_that_meet_over_nics_only(kind):
    entry = nic_link(kind, 25e9)
    own = LinkPath("leaf", entry, 25e9, 25e9, 2, 1.0, 1.0, across_scopes=True)
    times, names = all_reduce_time(own, "vllm", 4, SIZES)
    assert np.all(np.diff(times) >= 0)
    assert names[0] == "nccl-tree-network"
    assert times[-1] >= 2 * 3 / 4 * SIZES[-1] / 25e9


# ---------------------------------------------------------------- experts

# DeepEP on H100, 7168 wide, 8 of 256 experts: ranks, tokens, us of dispatch and combine; ai-dynamo/aiconfigurator, sglang 0.5.6.post2 and 0.5.12
LOW_LATENCY = [
    (8, 8, 14.79, 16.49),
    (8, 128, 36.72, 66.98),
    (8, 1024, 224.06, 489.43),
    (16, 128, 102.1, 186.17),
    (16, 256, 183.03, 337.47),
    (64, 128, 166.77, 304.73),
    (64, 256, 301.13, 579.53),
]


@pytest.mark.parametrize(("count", "tokens", "dispatch", "combine"), LOW_LATENCY)
def test_low_latency_kernels(count, tokens, dispatch, combine):
    scopes = count // 8
    found = expert_exchange_time(NVLINK, INFINIBAND if scopes > 1 else None, "sglang", count, scopes, tokens, 7168, 8, 256)
    assert found.dispatch * 1e6 == pytest.approx(dispatch, rel=0.15)
    assert found.combine * 1e6 == pytest.approx(combine, rel=0.15)
    assert found.kernel == "deepep-low-latency"


def test_throughput_kernel_wins_with_many_tokens():
    def both(kernel, tokens):
        found = expert_exchange_time(NVLINK, INFINIBAND, "sglang", 16, 2, tokens, 7168, 8, 256, kernel=kernel)
        return float(found.dispatch + found.combine)

    assert both("low_latency", 16) < both("throughput", 16)
    assert both("low_latency", 8192) > both("throughput", 8192)


@pytest.mark.parametrize("kernel", ["low_latency", "throughput", "collective"])
def test_expert_exchange_obeys_its_laws(kernel):
    tokens = np.array([1.0, 16.0, 256.0, 4096.0])
    alone = expert_exchange_time(NVLINK, None, "vllm", 1, 1, tokens, 4096, 8, 128, kernel=kernel)
    assert np.all(alone.dispatch == 0)
    assert np.all(alone.combine == 0)
    inside = expert_exchange_time(NVLINK, None, "vllm", 8, 1, tokens, 4096, 8, 128, kernel=kernel)
    across = expert_exchange_time(NVLINK, INFINIBAND, "vllm", 32, 4, tokens, 4096, 8, 128, kernel=kernel)
    for direction in ("dispatch", "combine"):
        assert np.all(np.diff(getattr(inside, direction)) >= 0)
        assert np.all(getattr(across, direction) > getattr(inside, direction))


def test_boxes_without_nvlink_use_a_plain_all_to_all():
    found = expert_exchange_time(path("pcie4-x16"), None, "vllm", 4, 1, 64.0, 4096, 8, 128)
    assert found.kernel == "nccl-all-to-all"
    assert found.dispatch == pytest.approx(float(all_to_all_time(path("pcie4-x16"), "vllm", 4, 64 * 4 * 4096 * (1 + 4 / 128))))
