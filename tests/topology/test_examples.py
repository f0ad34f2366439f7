"""The topologies that come with the planner: each builds, has a price and says what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric

TOPOLOGIES = Path(__file__).parents[2] / "topologies"
FILES = sorted(TOPOLOGIES.glob("*.yaml"))


def read(file: Path) -> Fabric:
    data = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    return build_fabric(TopologyDocument.model_validate(data, context={"bare_numbers": False}))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_builds_without_a_remark(file: Path) -> None:
    found = read(file)
    assert found.diagnostics == ()
    assert found.name == file.stem.replace("_", "-")
    assert all(pool.price_source == "topology" for pool in found.pools)
    first, second = file.read_text(encoding="utf-8").splitlines()[:2]
    assert first == "# yaml-language-server: $schema=../schemas/topology.schema.json"
    assert second.startswith("# ")


@pytest.mark.parametrize(
    ("name", "free", "levels"),
    [
        ("two_node_h100", [8, 8], ("gpu", "domain", "leaf")),
        ("one_node_h100", [8], ("gpu", "domain")),
        ("two_node_h200", [8, 8], ("gpu", "domain", "leaf")),
        ("six_a6000", [6], ("gpu", "pair", "host")),
        ("eight_free_as_6_plus_2", [6, 2], ("gpu", "domain", "leaf")),
        ("four_gpu_nodes", [4] * 4, ("gpu", "domain", "leaf")),
        ("four_node_h100", [8] * 4, ("gpu", "domain", "leaf")),
        ("nvl72_rack", [72], ("gpu", "domain")),
        ("small_leaf_spine", [8] * 8, ("gpu", "domain", "leaf", "spine")),
        ("v100_dgx1", [8], ("gpu", "mesh", "host")),
        ("mixed_a100_h100_l40s", [8, 4, 8, 7, 8, 8, 6, 8, 3, 4, 4, 4, 4, 0], ("gpu", "domain", "leaf")),
    ],
)
def test_free_gpus_by_scope(name: str, free: list[int], levels: tuple[str, ...]) -> None:
    found = read(TOPOLOGIES / f"{name}.yaml")
    assert found.scopes.free.tolist() == free
    assert found.pools[0].levels == levels
