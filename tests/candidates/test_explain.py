"""Why a shape is not in the plan, also where the menu never came to it."""

from __future__ import annotations

import pytest

import planner

FLEET = {"name": "f", "nodes": [{"name": "n[1-4]", "gpu": "a100-sxm-80gb", "gpus": 4, "scale_up": "nvswitch", "price": "$8/h"}]}
ASKED = {"name": "chat", "model": "llama-3.1-8b", "workload": {"prompt_tokens": 500, "output_tokens": 100, "concurrency": 4}}


@pytest.fixture(scope="module")
def solution(tmp_path_factory):
    import json

    path = tmp_path_factory.mktemp("explain") / "problem.json"
    path.write_text(json.dumps({"name": "p", "topology": FLEET, "deployments": [ASKED]}))
    return planner.solve(str(path))


@pytest.mark.parametrize(
    ("shape", "word"),
    [
        ("tp16", "chat: TP16 on a100-sxm-80gb: TP16 leaves the NVLink domain of 4 GPUs [CROSS_NODE_TP]"),
        ("tp96", "chat: TP96 on a100-sxm-80gb: 32 attention heads / TP 96 leaves 32 over [HEADS_NOT_DIVISIBLE]"),
        ("tp1-pp9", "so many stages are not tried unless `parallelism: {pp: 9}` of chat asks for them"),
    ],
)
def test_degrees_beyond_the_menu_are_explained_too(solution, shape, word):
    assert any(word in line for line in solution.explain(shape))
