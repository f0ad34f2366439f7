"""Hardware made of catalog facts is the hardware a topology file would describe."""

from __future__ import annotations

import pytest

from planner.calculators.hardware import LinkFit, hardware, read_link
from planner.catalog.gpus import gpu
from planner.catalog.links import link
from planner.diagnostics import PlannerError
from planner.plan.shape import Degrees
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument


@pytest.mark.parametrize("name", ["h100-sxm-80gb", "a100-sxm-40gb", "l40s-48gb", "mi300x-192gb", "b200-180gb", "v100-sxm2-32gb"])
def test_paths_are_those_of_a_topology(name):
    document = TopologyDocument.model_validate(
        {
            "name": "two",
            "nodes": [{"name": "n[1-2]", "gpu": name, "gpus": 8, "nics": {"count": 8, "speed": "400Gb/s"}, "leaf": "leaf"}],
            "fabric": {"kind": "infiniband"},
        }
    )
    pool = build_fabric(document).pools[0]
    mine = hardware(gpu(name)).pool
    assert mine.levels == pool.levels
    assert mine.paths == pool.paths
    assert (mine.scale_up_level, mine.scope_size) == (pool.scale_up_level, pool.scope_size)


def test_a_layout_stays_as_close_as_it_can():
    machine = hardware(gpu("h100-sxm-80gb"))
    levels = machine.pool.levels
    inside, across = machine.layout(Degrees(8)), machine.layout(Degrees(8, 2))
    assert [levels[level] for level in (inside.tp_level, inside.replica_level)] == ["domain", "domain"]
    assert [levels[level] for level in (across.tp_level, across.stage_level, across.replica_level)] == ["domain", "domain", "leaf"]
    wide = machine.layout(Degrees(1, 1, 32, 32))
    assert (levels[wide.tp_level], levels[wide.stage_level], wide.stage_scopes) == ("gpu", "leaf", 4)
    assert machine.crosses(Degrees(16))
    assert not machine.crosses(Degrees(8, 2))


def test_bridges_join_pairs():
    machine = hardware(gpu("h100-pcie-80gb"), link("nvlink4-bridge"))
    assert machine.pool.levels == ("gpu", "pair", "host", "leaf")
    assert machine.pool.levels[machine.level_of(2)] == "pair"
    assert machine.pool.levels[machine.level_of(4)] == "host"


def test_over_the_network_alone_every_gpu_is_a_scope():
    machine = hardware(gpu("h100-sxm-80gb"), link("infiniband"))
    assert machine.domain == 1
    assert machine.crosses(Degrees(2))
    assert not machine.path(machine.level_of(2)).across_scopes


def test_a_domain_may_be_widened():
    assert hardware(gpu("gb200")).domain == 72
    assert not hardware(gpu("h100-sxm-80gb"), domain=64).crosses(Degrees(64))


def test_fits_of_one_s_own_replace_both_profiles():
    fit = hardware(gpu("h100-sxm-80gb"), fit=LinkFit(1e-6, 300e9)).path(1).link
    assert {fit.hockney_alpha.value, fit.calibrated_alpha.value} == {1e-6}
    assert {fit.hockney_bandwidth.value, fit.calibrated_bandwidth.value} == {300e9}
    assert fit.bandwidth == link("nvlink4").bandwidth


def test_interfaces_a_gpu():
    one, four = (hardware(gpu("h100-sxm-80gb"), nic=link("efa-p5"), nics_per_gpu=count).pool.paths[-1] for count in (1.0, 4.0))
    assert four.bandwidth == pytest.approx(4 * one.bandwidth)


def test_links_by_name_bandwidth_and_study():
    board = gpu("h100-sxm-80gb")
    assert read_link("nvlink4", board) == link("nvlink4-h100")
    assert read_link("25GB/s", board).bandwidth.value == 25e9
    assert read_link("study:pcie3_x16", board).hockney_alpha.value == 5e-6
    for text in ("study:pcie9", "nvlinc", "0GB/s"):
        with pytest.raises(PlannerError):
            read_link(text, board)
