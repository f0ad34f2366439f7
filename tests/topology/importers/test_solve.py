"""What was imported can be planned on: a 70B on a mixed list, on racks, on a fabric with a model for each leaf, and over bridges or not."""

from __future__ import annotations

import json

import pytest

import planner
from planner.topology.importers.prices import read_prices

LINKS_ACROSS = 9


def deployment(name: str, **keys):
    """A 70B with a target for every token."""
    return {
        "name": name,
        "model": "llama-3.1-70b",
        "engine": "vllm",
        "workload": {"prompt_tokens": 1024, "output_tokens": 256, "concurrency": 16},
        "slo": {"tpot": "60ms"},
        **keys,
    }


def solved(folder, found, *deployments):
    """Solution of a problem on an imported topology, both by way of their files."""
    (folder / "topology.yaml").write_text(found.text, encoding="utf-8")
    document = {"name": "imported", "topology": "topology.yaml", "deployments": list(deployments)}
    (folder / "problem.json").write_text(json.dumps(document), encoding="utf-8")
    return planner.solve(str(folder / "problem.json"))


def placed(solution) -> dict[str, set[str]]:
    """Nodes that each deployment uses."""
    return {each.name: {rank.node for replica in each.replicas for rank in replica.ranks} for each in solution.plan.deployments}


def fabric_of_leaves(uplinks: dict[str, int]) -> str:
    """Records of leaves with two hosts each on one cable, and with so many cables upwards, dealt to nine spines."""
    lines: list[str] = []
    for number, (leaf, cables) in enumerate(uplinks.items()):
        lines.append(f'Switch 65 "S-{0xA000 + number:016x}" # "MF0;{leaf}:MQM9700/U1" enhanced port 0 lid {number + 1} lmc 0')
        for host in (1, 2):
            guid = f"{0xC0000 + 16 * number + host:016x}"
            lines.append(f'[{host}] "H-{guid}"[1]({guid}) # "gpu-{leaf}-{host} mlx5_0" lid {1000 + 2 * number + host} 4xNDR')
        for port in range(cables):
            spine = (number + port) % LINKS_ACROSS
            far = 1 + sum(list(uplinks.values())[:number]) + port
            lines.append(f'[{33 + port}] "S-{0xB000 + spine:016x}"[{far}] # "MF0;top-{spine + 1}:MQM9700/U1" lid {900 + spine} 4xNDR')
        lines.append("")
    return "\n".join(lines)


def test_a_70b_on_a_mixed_list_of_kubernetes_nodes(imported, text_of_input, tmp_path):
    found = imported("kubernetes.json", prices=read_prices(text_of_input("prices.csv"), "prices.csv"))
    degrees = {"tp": [1, 2, 4], "pp": 1}
    solution = solved(tmp_path, found, deployment("chat", parallelism=degrees, forbid=["amd-1"]))
    # One GPU of a tray, at a fourth of its $48 an hour, holds the weights; a $64 node of eight gives two of its own for more.
    assert (solution.status, solution.gpus_used, solution.cost_per_hour) == ("optimal", 1, 12.0)
    assert placed(solution)["chat"] <= {"gke-1", "gke-3"}  # gke-2 is cordoned
    elsewhere = solved(tmp_path, found, deployment("chat", parallelism=degrees, forbid=["gke-[1-3]", "amd-1"]))
    assert elsewhere.plan.deployments[0].replicas[0].shape.gpu == "h100-sxm-80gb"
    assert placed(elsewhere)["chat"] <= {"aws-1", "aws-2", "own-1", "own-3"}  # own-2 is not ready
    assert planner.audit(elsewhere.problem, elsewhere).ok


def test_a_70b_on_racks_crosses_trays_but_never_racks(imported, tmp_path):
    found = imported("topograph.yaml", gpu="gb200-186gb", nics=(4, 50e9, "infiniband"))
    solution = solved(tmp_path, found, deployment("wide", parallelism={"tp": 8, "pp": 1}))
    assert (solution.status, solution.gpus_used) == ("optimal", 8)
    nodes = placed(solution)["wide"]
    assert len(nodes) > 1
    assert len({rank.domain for rank in solution.plan.deployments[0].replicas[0].ranks}) == 1


def test_a_model_for_each_of_31_leaves(tmp_path):
    from planner.catalog.gpus import gpu
    from planner.topology.importers.completing import Assumptions
    from planner.topology.importers.importing import SourceFile, import_topology

    uplinks = {f"leaf-{number:02d}": 1 if number % 5 == 0 else 2 for number in range(1, 32)}
    sources = [SourceFile("fabric.txt", fabric_of_leaves(uplinks))]
    found = import_topology("ibnetdiscover", sources, assumptions=Assumptions(gpu("h100-sxm-80gb")))
    assert found.learnt == ("fabric.txt: 31 leaves, 9 spines; 62 ports of 62 named hosts; 2 ports to hosts and 1 to 2 uplinks a leaf",)
    assert found.data["fabric"]["leaf_oversubscription"] == {leaf: "2:1" for leaf, cables in uplinks.items() if cables == 1}
    models = [deployment(f"on-{leaf}", pin=[f"gpu-{leaf}-[1-2]"], parallelism={"tp": 4, "pp": 1}) for leaf in uplinks]
    solution = solved(tmp_path, found, *models)
    assert (solution.status, solution.gpus_used) == ("optimal", 4 * 31)
    assert all(name.removeprefix("on-") in node for name, nodes in placed(solution).items() for node in nodes)
    assert planner.audit(solution.problem, solution).ok


@pytest.mark.parametrize(("tp", "inside"), [(2, True), (4, False)])
def test_tensor_parallel_across_bridged_pairs_is_priced_over_pcie(tp, inside, imported, tmp_path):
    found = imported("nvidia_smi_a100_pairs.txt", gpu="a100-pcie-80gb")
    (group,) = found.data["nodes"]
    assert group["pairs"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    bridged = solved(tmp_path, found, deployment("chat", parallelism={"tp": tp, "pp": 1}))
    apart = dict(group) | {"scale_up": "none"}
    del apart["pairs"]
    text = json.dumps(found.data | {"nodes": [apart]})
    (tmp_path / "topology.yaml").write_text(text, encoding="utf-8")
    without = planner.solve(str(tmp_path / "problem.json"))
    over = [each.plan.deployments[0].replicas[0].times.tp_comm_s for each in (bridged, without)]
    assert over[0] < over[1] if inside else over[0] == over[1]
