"""Small fleets on which a solve takes milliseconds."""

from __future__ import annotations

import json

import pytest

NICS = {"count": 8, "speed": "400Gb/s"}


def problem(nodes: int = 3, load: int = 40, **changes):
    """Llama-3.1-70B and a small model on H100 nodes beside A100 nodes."""
    return {
        "name": "small-fleet",
        "topology": {
            "name": "small",
            "nodes": [
                {
                    "name": f"h100-[01-0{nodes}]" if nodes > 1 else "h100-01",
                    "gpu": "h100-sxm-80gb",
                    "gpus": 8,
                    "nics": NICS,
                    "leaf": "leaf-1",
                    "price": "$24/h",
                },
                {"name": "a100-[01-02]", "gpu": "a100-sxm-80gb", "gpus": 8, "nics": NICS, "leaf": "leaf-2", "price": "$15/h"},
            ],
            "fabric": {"kind": "infiniband"},
            "taken": ["h100-01:[6,7]"],
        },
        "deployments": [
            {
                "name": "chat",
                "model": "llama-3.1-70b",
                "parallelism": {"tp": [2, 4, 8], "pp": 1},
                "workload": {"prompt_tokens": 1024, "output_tokens": 256, "concurrency": load},
                "slo": {"tpot": "50ms"},
            },
            {
                "name": "tags",
                "model": "llama-3.1-8b",
                "parallelism": {"tp": [1, 2], "pp": 1},
                "workload": {"prompt_tokens": 512, "output_tokens": 32, "request_rate": "20/s"},
            },
        ],
        **changes,
    }


@pytest.fixture
def fleet(tmp_path):
    """Path of the small fleet's problem."""
    return write(tmp_path / "problem.json", problem())


def write(path, data) -> str:
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)
