"""Scenarios change what they name, and whatever is wrong with them is told at once, before anything is solved."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError
from planner.whatif.patching import check_all, open_base, patched
from planner.whatif.scenarios import Scenario, grid_scenarios, read_change


def scenario(*changes: str) -> Scenario:
    return Scenario(", ".join(changes), tuple(read_change(change, "--patch") for change in changes))


@pytest.fixture
def base(fleet):
    return open_base(fleet)


def codes(base, *changes: str) -> list[tuple[str, str, str]]:
    with pytest.raises(PlannerError) as caught:
        patched(base, scenario(*changes))
    return [(item.code, item.message, item.hint) for item in caught.value.diagnostics]


def test_load_doubles_whatever_it_is_written_as(base):
    chat, tags = patched(base, scenario("load=x2")).problem.deployments
    assert chat.workload.concurrency == 80
    assert tags.workload.request_rate == 40


def test_context_doubles_prompt_and_output(base):
    chat, tags = patched(base, scenario("deployments.chat.context=x2")).problem.deployments
    assert (chat.workload.prompt_tokens, chat.workload.output_tokens) == (2048, 512)
    assert tags.workload.prompt_tokens == 512


def test_prices_rise_everywhere(base):
    assert [pool.price_per_node for pool in patched(base, scenario("prices=+20%")).fabric.pools] == pytest.approx([28.8, 18.0])


def test_a_star_stands_for_every_name(base):
    loaded = patched(base, scenario("deployments.*.engine=sglang", "nodes.*.price=$10/h"))
    assert {deployment.engine.name for deployment in loaded.problem.deployments} == {"sglang"}
    assert {pool.price_per_node for pool in loaded.fabric.pools} == {10.0}


def test_groups_grow_and_shrink(base):
    fabric = patched(base, scenario("nodes.h100-[01-03].count=5", "nodes.a100-[01-02].count=1")).fabric
    assert fabric.nodes == ("h100-01", "h100-02", "h100-03", "h100-04", "h100-05", "a100-01")
    assert patched(base, scenario("nodes.a100-[01-02].count=0")).fabric.nodes == ("h100-01", "h100-02", "h100-03")
    assert len(patched(base, scenario("nodes.h100-[01-03].count=x2")).fabric.nodes) == 8


def test_marks_of_removed_nodes_go_with_them(fleet, base):
    grown = open_base(fleet, ["taken=[h100-03]"])
    assert "h100-03" not in patched(grown, scenario("nodes.h100-[01-03].count=2")).fabric.nodes


def test_what_is_lost_is_failed(base):
    from planner.topology.inventory import GpuId

    fabric = patched(base, scenario("lose=h100-02", "lose=a100-01:3")).fabric
    assert fabric.state(GpuId("h100-02", 0)) == "failed"
    assert fabric.state(GpuId("a100-01", 3)) == "failed"
    assert fabric.state(GpuId("a100-01", 4)) == "free"
    lost_leaf = patched(base, scenario("lose=leaf-2")).fabric
    assert {lost_leaf.state(GpuId(node, 0)) for node in ("a100-01", "a100-02")} == {"failed"}


def test_a_scenario_is_what_set_makes_of_the_file(fleet, base):
    from planner.problem.load import load_problem

    changes = [
        "deployments.chat.workload.concurrency=64",
        "deployments.chat.precision.weights=fp8",
        "nodes.a100-[01-02].price=$9/h",
        "objective=gpus",
    ]
    assert patched(base, scenario(*changes)).sha256 == load_problem(fleet, changes).sha256
    assert base.loaded.sha256 == patched(base, scenario()).sha256


def test_overrides_come_first(fleet):
    base = open_base(fleet, ["deployments.chat.workload.concurrency=10"])
    assert patched(base, scenario("load=x3")).problem.deployments[0].workload.concurrency == 30


@pytest.mark.parametrize(
    ("change", "code", "near"),
    [
        ("deployments.chat.lod=x2", "UNKNOWN_PATH", "deployments.chat.load"),
        ("deployments.chatt.workload.concurrency=3", "UNKNOWN_PATH", "deployments.chat.workload.concurrency"),
        ("nodes.h100-[01-03].cont=3", "UNKNOWN_PATH", "nodes.h100-[01-03].count"),
        ("nodes.h100-[01-04].count=3", "UNKNOWN_PATH", "nodes.h100-[01-03].count"),
        ("price=+20%", "UNKNOWN_PATH", "prices"),
        ("deployments.chat.headroom=+20%", "RELATIVE_WITHOUT_VALUE", "write the new value itself"),
        ("deployments.chat.model=x2", "RELATIVE_WITHOUT_VALUE", "write the new value itself"),
        ("prices=$3/h", "RELATIVE_WITHOUT_VALUE", "x2"),
        ("nodes.h100-[01-03].count=many", "COUNT_NOT_UNDERSTOOD", "there are 3 now"),
        ("nodes.h100-[01-03].count=-1", "COUNT_NOT_UNDERSTOOD", "there are 3 now"),
        ("lose=h100-09", "UNKNOWN_NODE", "nearest"),
        ("lose=h100-01:9", "GPU_INDEX_OUT_OF_RANGE", "count GPUs from 0"),
        ("deployments.chat.model=lama-3.1-70b", "UNKNOWN_MODEL", "llama-3.1-70b"),
    ],
)
def test_what_is_wrong_is_told_with_what_is_near(base, change, code, near):
    found = codes(base, change)
    assert [item[0] for item in found] == [code]
    assert near in found[0][2]


@pytest.mark.parametrize(
    "changes",
    [
        ("load=x2", "deployments.chat.workload.concurrency=9"),
        ("deployments.chat.slo={tpot: 40ms}", "deployments.chat.slo.tpot=30ms"),
        ("deployments.chat.slo.tpot=30ms", "deployments.chat.slo={tpot: 40ms}"),
        ("nodes.*.price=$3/h", "nodes.a100-[01-02].price=$4/h"),
        ("nodes.a100-[01-02].count=0", "nodes.a100-[01-02].price=$4/h"),
        ("nodes.a100-[01-02].price=$4/h", "nodes.a100-[01-02].count=0"),
        ("nodes.a100-[01-02].count=3", "nodes.a100-[01-02].count=4"),
    ],
)
def test_changes_that_contradict_each_other(base, changes):
    found = codes(base, *changes)
    assert [item[0] for item in found] == ["CONTRADICTORY_CHANGES"]
    assert changes[0] in found[0][1]
    assert changes[1] in found[0][1]


def test_the_same_change_twice_contradicts_nothing(base):
    assert patched(base, scenario("load=x2", "deployments.chat.load=x2")).problem.deployments[0].workload.concurrency == 80


def test_losing_a_node_that_another_change_removes_is_told(base):
    assert [item[0] for item in codes(base, "nodes.h100-[01-03].count=2", "lose=h100-03")] == ["UNKNOWN_NODE"]


def test_all_faults_of_all_scenarios_come_at_once(base):
    scenarios = [scenario("deployments.chat.lod=x2"), scenario("load=x2"), scenario("lose=h100-09", "nodes.h100-[01-03].count=many")]
    with pytest.raises(PlannerError) as caught:
        check_all(base, scenarios)
    assert {item.code for item in caught.value.diagnostics} == {"UNKNOWN_PATH", "COUNT_NOT_UNDERSTOOD"}


def test_a_fault_that_many_scenarios_share_is_told_once(base):
    with pytest.raises(PlannerError) as caught:
        check_all(base, grid_scenarios([("deployments.chat.lod", ["x2"]), ("load", ["x1", "x2", "x3"])]))
    assert len(caught.value.diagnostics) == 1
    assert "2 more scenarios" in caught.value.diagnostics[0].message


def test_a_price_that_is_missing_is_told_before_anything_is_solved(base):
    found = codes(base, "topology.currency=EUR", "nodes.*.price=null")
    assert {item[0] for item in found} == {"PRICE_MISSING"}
