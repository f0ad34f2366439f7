"""Every format gives the topology written down in its golden, word for word, and the golden is valid by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.problem.load import load_topology
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.importers.guid_map import read_guid_map
from planner.topology.importers.kinds import KINDS, detect
from planner.topology.importers.prices import read_prices

GOLDENS = Path(__file__).parent / "goldens"
FAST = (None, 50e9, None)
CASES = {
    "nvidia_smi_h100": (["nvidia_smi_h100.txt"], {"gpu": "h100-sxm-80gb", "nics": FAST, "fabric": "infiniband"}),
    "nvidia_smi_a100_pairs": (["nvidia_smi_a100_pairs.txt"], {"gpu": "a100-pcie-80gb", "hosts": "box-[1-2]"}),
    "nvidia_smi_v100_mesh": (["nvidia_smi_v100_mesh.txt"], {"gpu": "v100-sxm2-32gb", "nics": (None, 12.5e9, None)}),
    "nvidia_smi_gpu_off": (["nvidia_smi_gpu_off.txt"], {"gpu": "h200-sxm-141gb"}),
    "rocm_smi_mi300x": (["rocm_smi_mi300x.txt"], {"gpu": "mi300x-192gb", "nics": (8, 50e9, "roce")}),
    "nccl_dump": (["nccl_dump.xml"], {}),
    "nccl_partial": (["nccl_partial.xml"], {"gpu": "a100-sxm-40gb", "nics": (None, 25e9, None)}),
    "rccl_dump": (["rccl_dump.xml"], {}),
    "ibnetdiscover": (["ibnetdiscover.txt"], {"gpu": "h100-sxm-80gb"}),
    "ibnetdiscover_named": (["ibnetdiscover.txt"], {"gpu": "h100-sxm-80gb", "guid_map": "guid_map.txt", "prices": "prices.csv"}),
    "ibsim": (["ibsim.net"], {"gpu": "l40s-48gb", "gpus": 4, "nics": (None, 25e9, None)}),
    "iblinkinfo": (["iblinkinfo.txt"], {"gpu": "a100-sxm-80gb"}),
    "slurm_tree": (["slurm_tree.conf"], {"gpu": "h100-sxm-80gb", "nics": (8, 50e9, "infiniband")}),
    "slurm_block": (["slurm_block.conf"], {"gpu": "gb200-186gb"}),
    "slurm_yaml": (["slurm.yaml"], {"gpu": "gb300-279gb", "nics": (4, 100e9, "infiniband")}),
    "topograph": (["topograph.yaml"], {"gpu": "gb200-186gb", "nics": (4, 50e9, "infiniband"), "prices": "prices.csv"}),
    "topograph_capacity": (["topograph_capacity.yaml"], {}),
    "kubernetes": (["kubernetes.json"], {"prices": "prices.csv"}),
    "kueue": (["kubernetes_racks.json", "kueue.yaml"], {"nics": (8, 50e9, "roce")}),
    "joined": (["slurm_tree.conf", "nvidia_smi_h100.txt"], {"gpu": "h100-sxm-80gb", "nics": FAST, "fabric": "infiniband"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_file_gives_its_golden(name, imported, text_of_input):
    files, options = CASES[name]
    options = dict(options)
    if "prices" in options:
        options["prices"] = read_prices(text_of_input(options["prices"]), options["prices"])
    if "guid_map" in options:
        options["guid_map"] = read_guid_map(text_of_input(options["guid_map"]), options["guid_map"])
    found = imported(*files, **options)
    golden = GOLDENS / f"{name}.yaml"
    assert found.text == golden.read_text(encoding="utf-8")
    loaded = load_topology(str(golden))
    assert loaded.document == TopologyDocument.model_validate(found.data)
    assert loaded.fabric.nodes == build_fabric(loaded.document).nodes == found.fabric.nodes


def test_every_kind_has_a_golden():
    kinds = {"nvidia-smi", "rocm-smi", "nccl", "ibnetdiscover", "iblinkinfo", "slurm", "topograph", "kubernetes", "kueue"}
    assert kinds == set(KINDS)
    assert {path.stem for path in GOLDENS.glob("*.yaml")} == set(CASES)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("nvidia_smi_h100.txt", "nvidia-smi"),
        ("nvidia_smi_gpu_off.txt", "nvidia-smi"),
        ("rocm_smi_mi300x.txt", "rocm-smi"),
        ("nccl_dump.xml", "nccl"),
        ("nccl_partial.xml", "nccl"),
        ("ibnetdiscover.txt", "ibnetdiscover"),
        ("ibsim.net", "ibnetdiscover"),
        ("iblinkinfo.txt", "iblinkinfo"),
        ("slurm_tree.conf", "slurm"),
        ("slurm.yaml", "slurm"),
        ("topograph.yaml", "topograph"),
        ("topograph_capacity.yaml", "topograph"),
        ("kubernetes.json", "kubernetes"),
        ("kueue.yaml", "kueue"),
        ("prices.csv", None),
    ],
)
def test_a_text_is_recognised(file, kind, text_of_input):
    assert detect(text_of_input(file)) == kind
