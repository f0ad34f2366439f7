from __future__ import annotations

import pytest

from planner.catalog.links import KINDS, NIC_KINDS, link, links, nic_link, study_interconnects
from planner.diagnostics import PlannerError

EXPECTED = [
    "nvlink2-v100",
    "nvlink3-a100",
    "nvlink4-h100",
    "nvlink5-b200",
    "nvlink5-nvl72",
    "nvlink3-bridge",
    "nvlink4-bridge",
    "nvlink3-a100-bridge",
    "xgmi-mi300x",
    "xgmi-mi325x",
    "xgmi-mi355x",
    "pcie3-x16",
    "pcie4-x16",
    "pcie5-x16",
    "pcie4-x16-no-peer",
    "pcie5-x16-no-peer",
    "ici-v5e",
    "infiniband-hdr-200",
    "infiniband-ndr-400",
    "infiniband-xdr-800",
    "roce-100",
    "roce-200",
    "roce-400",
    "efa-p4d",
    "efa-p5",
    "ethernet-100",
]


@pytest.mark.parametrize("name", EXPECTED)
def test_every_link_is_there(name):
    assert link(name).name == name


@pytest.mark.parametrize("entry", links(), ids=lambda entry: entry.name)
def test_facts_are_sound(entry):
    assert entry.kind in KINDS
    facts = [entry.bandwidth, entry.hockney_alpha, entry.hockney_bandwidth, entry.calibrated_alpha, entry.calibrated_bandwidth]
    for fact in facts:
        assert fact.value > 0
        assert fact.basis in {"measured", "derived", "datasheet", "assumed"}
        assert len(fact.source) > 10
    # What a link achieves never exceeds what its data sheet states.
    assert entry.calibrated_bandwidth.value <= entry.bandwidth.value
    assert entry.hockney_bandwidth.value == pytest.approx(entry.bandwidth.value, rel=0.02)
    assert 1e-7 < entry.hockney_alpha.value < 1e-4
    assert 1e-7 < entry.calibrated_alpha.value < 1e-4
    if entry.peer_bandwidth is not None:
        assert entry.peer_bandwidth.value <= entry.bandwidth.value


@pytest.mark.parametrize(
    ("name", "alpha", "bandwidth"),
    [("nvlink4", 2e-6, 450e9), ("pcie5", 7e-6, 64e9), ("infiniband-400", 3e-6, 50e9), ("nvlink5", 2e-6, 900e9)],
)
def test_hockney_constants_are_those_of_the_notes(name, alpha, bandwidth):
    entry = link(name)
    assert entry.hockney_alpha.value == alpha
    assert entry.hockney_bandwidth.value == bandwidth


def test_mesh_links_reach_one_peer_through_one_link():
    entry = link("xgmi-mi300x")
    assert entry.peer_bandwidth is not None
    assert entry.peer_bandwidth.value * 7 == entry.bandwidth.value


def test_unknown_link_names_the_nearest():
    with pytest.raises(PlannerError) as caught:
        link("nvlink4-h10")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "UNKNOWN_LINK"
    assert "nvlink4-h100" in diagnostic.hint


def test_nic_of_a_known_speed_is_the_catalog_entry():
    assert nic_link("infiniband", 50e9).name == "infiniband-ndr-400"
    assert nic_link("infiniband", 25e9).name == "infiniband-hdr-200"
    assert nic_link("efa", 12.5e9).kind == "efa"
    assert nic_link("ethernet", 12.5e9).name == "ethernet-100"


def test_nic_of_another_speed_is_derived_from_the_nearest():
    entry = nic_link("infiniband", 12.5e9)
    nearest = link("infiniband-hdr-200")
    assert entry.name == "infiniband-100"
    assert entry.bandwidth.value == 12.5e9
    assert entry.bandwidth.basis == "derived"
    assert entry.hockney_alpha == nearest.hockney_alpha
    assert entry.calibrated_bandwidth.value == pytest.approx(nearest.calibrated_bandwidth.value / 2)


@pytest.mark.parametrize("kind", NIC_KINDS)
def test_faster_nics_are_never_slower(kind):
    speeds = [1.25e9 * 2**step for step in range(8)]
    achieved = [nic_link(kind, speed).calibrated_bandwidth.value for speed in speeds]
    assert achieved == sorted(achieved)


@pytest.mark.parametrize(
    ("kind", "speed", "code"),
    [
        ("nvlink", 50e9, "UNKNOWN_LINK_KIND"),
        ("roce", 0.0, "BAD_LINK_SPEED"),
        ("roce", float("nan"), "BAD_LINK_SPEED"),
        ("efa", -1.0, "BAD_LINK_SPEED"),
    ],
)
def test_bad_nics_are_refused(kind, speed, code):
    with pytest.raises(PlannerError) as caught:
        nic_link(kind, speed)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == [code]


@pytest.mark.parametrize(
    ("name", "alpha", "bandwidth"),
    [
        ("pcie3_x16", 5e-6, 12e9),
        ("pcie4_x16", 3e-6, 25e9),
        ("nvlink3_a100", 1e-6, 150e9),
        ("nvlink4_h100", 0.5e-6, 450e9),
        ("gloo_measured", 0.269e-3, 1.77e9),
    ],
)
def test_study_keeps_its_own_table(name, alpha, bandwidth):
    entry = study_interconnects()[name]
    assert (entry.alpha, entry.bandwidth) == (alpha, bandwidth)
