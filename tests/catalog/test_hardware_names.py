"""What tools and clouds call hardware."""

from __future__ import annotations

import pytest

from planner.catalog.gpus import gpu
from planner.catalog.hardware_names import gpu_of_device, instance, instances
from planner.catalog.links import NIC_KINDS
from planner.catalog.prices import prices
from planner.catalog.read import read_table


def test_every_name_stands_for_a_gpu_of_the_catalog():
    devices = read_table("pci_devices.json")
    assert devices["source"]
    for listed in devices["vendors"].values():
        assert all(gpu(name).name == name for name in listed.values())
    for found in instances():
        assert gpu(found.gpu).name == found.gpu
        assert found.source
        assert found.nic_kind is None or found.nic_kind in NIC_KINDS


def test_instances_agree_with_the_price_examples():
    """Two tables of the catalog never contradict one another on what an instance holds."""
    both = [(row, found) for row in prices() if (found := instance(row.instance)) is not None]
    assert len(both) > 15
    assert [(row.instance, row.gpu, row.gpus) for row, found in both if (row.gpu, row.gpus) != (found.gpu, found.gpus)] == []


@pytest.mark.parametrize("name", ["p5.48xlarge", "P5.48XLARGE", " p5.48xlarge (Capacity Block)"])
def test_an_instance_is_found_in_any_case_and_with_a_remark(name):
    found = instance(name)
    assert found is not None
    assert (found.gpu, found.gpus, found.nic_count, found.nic_speed) == ("h100-sxm-80gb", 8, 32, 12.5e9)


def test_unknown_names_are_none():
    assert instance("p99.metal") is None
    assert gpu_of_device("0x10de", "0xffff") is None
    assert gpu_of_device("0x10DE", " 0x2330") == "h100-sxm-80gb"
