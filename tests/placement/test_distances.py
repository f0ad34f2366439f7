"""Distance is a price where it is no fault: it is named, and it is what the cost model gives for the two places."""

from __future__ import annotations

import json

import numpy as np
import pytest

from planner.cost.evaluation import evaluate
from planner.diagnostics import Place, Severity
from planner.placement.distances import Distances, distances
from planner.placement.gpu_words import gpus_of_word
from planner.placement.judge import judge
from planner.placement.kinds import read_placement_text
from planner.placement.nearness import nearest_level, unused_gpus
from planner.placement.proposal import EngineSettings
from planner.placement.settings import running
from planner.plan.shape import Degrees
from planner.topology.fabric import GpuId
from tests.placement.fleet import load

PAIRED = {"name": "box", "gpu": "a100-pcie-80gb", "gpus": 8, "scale_up": "nvlink-pairs", "pairs": [[0, 2], [1, 3], [4, 5], [6, 7]]}
NODES = {"gpu": "h100-sxm-80gb", "gpus": 8, "nics": {"count": 8, "speed": "400Gb/s"}}


def problem(nodes, **asked):
    """A 70B for 16 people, on paper: the textbook profile."""
    deployment = {
        "name": "served",
        "model": "llama-3.1-70b",
        "workload": {"prompt_tokens": 1024, "output_tokens": 256, "concurrency": 16},
        **asked,
    }
    topology = {"name": "fleet", "fabric": {"kind": "infiniband", "oversubscription": 2}, "nodes": nodes}
    return {"name": "near", "topology": topology, "deployments": [deployment], "objective": "gpus", "profile": "hockney"}


def found(loaded, placement, code):
    judgement = judge(loaded, read_placement_text(json.dumps(placement), "placement", loaded))
    return judgement, [item for item in judgement.diagnostics if item.code == code]


def test_ranks_off_the_pairs_cost_what_the_cost_model_says(tmp_path):
    """TP2 x PP4 in the order of the cards' numbers: a warning with the milliseconds, and the order that would cost nothing."""
    loaded = load(problem([PAIRED]), tmp_path)
    judgement, warned = found(loaded, {"tp": 2, "pp": 4, "ranks": ["box:[0-7]"]}, "NVLINK_PAIRS_SPLIT")
    assert judgement.valid
    assert [item.severity for item in warned] == [Severity.WARNING]
    replica = judgement.plan.deployments[0].replicas[0]
    runs, _ = running(loaded, 0, EngineSettings())
    setting = runs.on(loaded.fabric.pools[0]).setting
    placed, near = (
        float(evaluate(setting, Distances(level, level, 2, 1, 1).shapes(Degrees(2, 4), np.array([replica.shape.batch]))).tpot[0])
        for level in (2, 1)
    )
    assert placed > near
    assert f"costs {(placed - near) * 1e3:.1f} ms a step" in warned[0].message
    assert "order the GPUs of box as 0,2,1,3,4,5,6,7" in warned[0].hint
    assert replica.times.tpot_s == pytest.approx(placed)


def test_the_order_of_the_hint_costs_nothing(tmp_path):
    """The same cards in that order are not warned of, and are as fast as the price promised."""
    loaded = load(problem([PAIRED]), tmp_path)
    judgement, warned = found(loaded, {"tp": 2, "pp": 4, "ranks": ["box:0,2,1,3,4,5,6,7"]}, "NVLINK_PAIRS_SPLIT")
    assert judgement.valid
    assert not warned


def test_nvlink_as_a_condition_is_an_error(tmp_path):
    """With `require_nvlink` the same order is refused, and no price is named beside."""
    loaded = load(problem([PAIRED], require_nvlink=True), tmp_path)
    judgement, warned = found(loaded, {"tp": 2, "pp": 4, "ranks": ["box:[0-7]"]}, "NVLINK_PAIRS_SPLIT")
    assert "NVLINK_REQUIRED" in judgement.codes
    assert not warned


def test_stages_far_apart_are_told_while_near_ones_are_free(tmp_path):
    """Two stages on two leaves, where one leaf has room: the warning names the level and the price."""
    nodes = [{"name": f"{leaf}[1-2]", "leaf": leaf, "spine": "s", **NODES} for leaf in ("a", "b")]
    loaded = load(problem(nodes), tmp_path)
    judgement, warned = found(loaded, {"tp": 8, "pp": 2, "ranks": ["a1", "b1"]}, "STAGES_FAR_APART")
    assert judgement.valid
    assert len(warned) == 1
    assert "level spine" in warned[0].message
    assert "within one leaf" in warned[0].message
    _, quiet = found(loaded, {"tp": 8, "pp": 2, "ranks": ["a1", "a2"]}, "STAGES_FAR_APART")
    assert not quiet


def test_stages_are_not_far_where_nothing_nearer_is_free(tmp_path):
    """GPUs that other replicas of the placement use are not free."""
    nodes = [{"name": f"{leaf}[1-2]", "leaf": leaf, "spine": "s", **NODES} for leaf in ("a", "b")]
    loaded = load(problem(nodes), tmp_path)
    several = {"tp": 8, "pp": 2, "replicas": [["a1", "b1"], ["a2", "b2"]]}
    assert len(found(loaded, several, "STAGES_FAR_APART")[1]) == 0
    fabric, pool = loaded.fabric, loaded.fabric.pools[0]
    assert nearest_level(fabric, pool, 8, 16, unused_gpus(fabric, ())) == pool.levels.index("leaf")
    taken = [GpuId(node, gpu) for node in ("a2", "b2") for gpu in range(8)]
    assert nearest_level(fabric, pool, 8, 16, unused_gpus(fabric, taken)) == pool.levels.index("spine")


def test_experts_over_two_nodes_have_a_price(tmp_path):
    """EP16 over two nodes of eight: no domain holds it, so it is a warning that says what a step costs."""
    asked = {"model": "qwen3-30b-a3b", "engine": "sglang"}
    loaded = load(problem([{"name": "n[1-2]", "leaf": "l", **NODES}], **asked), tmp_path)
    judgement, warned = found(loaded, {"tp": 1, "dp": 16, "ep": 16, "ranks": ["n[1-2]"]}, "CROSS_NVLINK_DOMAIN_EP")
    assert judgement.valid, [str(item) for item in judgement.diagnostics]
    assert "spans 2 NVLink domains" in warned[0].message
    assert "costs" in warned[0].message


@pytest.mark.parametrize(
    ("words", "degrees", "expected"),
    [
        (["box:0,2"], Degrees(2), (1, 1, 1)),
        (["box:0,1"], Degrees(2), (2, 2, 2)),
        (["box:[0,2,1,3]"], Degrees(2, 2), (1, 1, 2)),
        (["box:[0-3]"], Degrees(2, 2), (2, 2, 2)),
        (["box:5"], Degrees(1), (0, 0, 0)),
    ],
)
def test_levels_are_those_of_the_graph(words, degrees, expected, tmp_path):
    """The widest level that joins a TP group, a stage, and the replica."""
    fabric = load(problem([PAIRED]), tmp_path).fabric
    gpus = [gpu for word in words for gpu in gpus_of_word(word, Place(), fabric)]
    apart = distances(fabric, fabric.pools[0], degrees, gpus)
    assert (apart.tensor, apart.stage, apart.replica) == expected


def test_a_failed_node_takes_the_only_replica(tmp_path):
    """A note, until the problem asks for more."""
    loaded = load(problem([{"name": "n[1-2]", "leaf": "l", **NODES}]), tmp_path)
    judgement, noted = found(loaded, {"tp": 8, "ranks": ["n1"]}, "FAILURE_DOMAIN_SHARED")
    assert judgement.valid
    assert [item.severity for item in noted] == [Severity.NOTE]
