"""A hundred thousand GPUs: counts and answers, not times."""

from __future__ import annotations

import subprocess
import sys

from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.inventory import GpuId


def test_a_hundred_thousand_gpus() -> None:
    document = {
        "name": "large",
        "build": [
            {"kind": "hgx", "name": "h", "gpu": "h100-sxm-80gb", "scalable_units": 400, "nics": {"count": 8, "speed": "400Gb/s"}},
            {"kind": "nvl72", "name": "r", "gpu": "gb200-186gb", "racks": 100, "nics": {"count": 4, "speed": "400Gb/s"}},
        ],
        "fabric": {"kind": "infiniband"},
        "taken": ["h-[00001-06400]:[0-1]"],
    }
    found = build_fabric(TopologyDocument.model_validate(document))
    assert len(found.nodes) == 12_800 + 1_800
    assert int(found.scopes.free.sum()) == 12_800 * 8 - 12_800 + 7_200
    assert len(found.scopes) == 12_900
    placed = [gpu for scope in range(0, len(found.scopes), 1000) for gpu in found.scopes.free_gpus(scope)]
    assert found.level(placed) == "fabric"
    assert found.level([GpuId("h-00001", 0), GpuId("h-00032", 7)]) == "leaf"
    assert found.level([GpuId("h-00001", 0), GpuId("h-00128", 7)]) == "spine"
    assert found.level([GpuId("r-001-01", 0), GpuId("r-001-18", 3)]) == "domain"


def test_a_small_cluster_loads_no_graph_library_and_no_solver() -> None:
    code = (
        "import sys; from planner.topology.build import build_fabric; from planner.topology.document import TopologyDocument\n"
        "nodes = [{'name': 'h[1-2]', 'gpu': 'h100-sxm-80gb', 'gpus': 8, 'nics': {'count': 8, 'speed': '400Gb/s'}}]\n"
        "build_fabric(TopologyDocument.model_validate({'name': 'here', 'nodes': nodes}))\n"
        "print([name for name in ('networkx', 'ClusterShell', 'ortools', 'pandas', 'numpy.ma') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
