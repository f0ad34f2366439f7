"""A fleet with three deployments and a legal placement of them, as plain data that tests may break."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from planner.placement.judge import judge
from planner.placement.kinds import read_placement_text
from planner.problem.load import load_problem

NETWORK = {"nics": {"count": 8, "speed": "400Gb/s"}, "leaf": "leaf-1"}

PROBLEM = {
    "name": "three",
    "topology": {
        "name": "fleet",
        "fabric": {"kind": "infiniband"},
        "nodes": [
            {"name": "n[1-4]", "gpu": "h100-sxm-80gb", "gpus": 8, "price": "$24/h", **NETWORK},
            {"name": "a1", "gpu": "a100-sxm-80gb", "gpus": 8, "price": "$14/h", **NETWORK},
        ],
        "taken": ["n4:7"],
        "failed": ["n4:6"],
    },
    "deployments": [
        {
            "name": "big",
            "model": "llama-3.1-405b",
            "precision": {"weights": "bf16", "kv_cache": "bf16"},
            "workload": {"prompt_tokens": 2048, "output_tokens": 512, "concurrency": 16},
            "slo": {"tpot": "120ms", "ttft": "5s"},
        },
        {
            "name": "small",
            "model": "llama-3.1-8b",
            "workload": {"prompt_tokens": 512, "output_tokens": 64, "concurrency": 40},
            "slo": {"tpot": "40ms", "ttft": "2s"},
            "replicas": {"min": 2},
        },
        {
            "name": "experts",
            "model": "qwen3-30b-a3b",
            "workload": {"prompt_tokens": 512, "output_tokens": 128, "concurrency": 8},
        },
    ],
    "objective": "cost",
    "budget": {"per_hour": "$100/h"},
}

PLACEMENT = {
    "deployments": [
        {"name": "big", "tp": 8, "pp": 2, "partition": [63, 63], "ranks": [f"n{node}:{gpu}" for node in (1, 2) for gpu in range(8)]},
        {"name": "small", "tp": 1, "replicas": [["n3:0"], ["n3:1"]]},
        {"name": "experts", "tp": 2, "ep": 2, "ranks": ["n3:2", "n3:3"]},
    ]
}


def fresh():
    """Copies of the problem and the placement, free to be changed."""
    return copy.deepcopy(PROBLEM), copy.deepcopy(PLACEMENT)


def load(problem, folder):
    """Load a problem given as data."""
    path = Path(folder) / "problem.json"
    path.write_text(json.dumps(problem), encoding="utf-8")
    return load_problem(str(path))


def judged(problem, placement, folder):
    """Judge a placement given as data."""
    loaded = load(problem, folder)
    return judge(loaded, read_placement_text(json.dumps(placement, indent=1), "placement.json", loaded, "yaml"))
