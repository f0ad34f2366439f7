"""What is served beside a model: drafts, n-grams, adapters, and what is said of them."""

from __future__ import annotations

import json

import pytest

from planner.catalog.architecture import Speculation
from planner.diagnostics import PlannerError
from planner.problem.load import load_problem

TOPOLOGY = {"name": "one", "nodes": [{"name": "node", "gpu": "h100-sxm-80gb", "gpus": 8, "price": "$10/h"}]}
WORKLOAD = {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": 8}


@pytest.fixture
def loaded(tmp_path):
    def load(model="llama-3.1-8b", **more):
        path = tmp_path / "problem.json"
        deployment = {"name": "served", "model": model, "workload": WORKLOAD, **more}
        path.write_text(json.dumps({"name": "p", "topology": TOPOLOGY, "deployments": [deployment]}), encoding="utf-8")
        return load_problem(str(path))

    return load


def said(problem, code):
    return [item.message for item in problem.warnings if item.code == code]


def test_without_acceptance_the_times_are_those_without_speculation(loaded):
    problem = loaded(speculative={"model": "llama-3.2-1b", "tokens": 4})
    assert problem.architectures[0].speculation is None
    assert problem.architectures[0].draft is not None
    assert said(problem, "SPECULATION_TIMES") == [
        "times are those without speculation: how many of the proposed tokens are accepted is not given"
    ]


def test_acceptance_is_told_in_tokens_a_step(loaded):
    problem = loaded(speculative={"model": "llama-3.2-1b", "tokens": 4, "acceptance": "70%"})
    assert problem.architectures[0].speculation == Speculation(4, 0.7)
    assert "2.77 tokens a step" in said(problem, "SPECULATION_TIMES")[0]
    assert "at no cost" not in said(problem, "SPECULATION_TIMES")[0]


def test_n_grams_have_no_draft(loaded):
    problem = loaded(speculative={"method": "ngram", "tokens": 1, "acceptance": 0.5})
    assert (problem.architectures[0].draft, problem.architectures[0].speculation) == (None, Speculation(1, 0.5))
    assert said(problem, "SPECULATION_TIMES") == [
        "times assume that one proposed token is accepted with 50%: 1.50 tokens a step, proposed at no cost"
    ]
    assert not said(problem, "DRAFT_MODEL_MEMORY")


def test_a_checkpoint_without_prediction_layers_has_no_speculation_of_its_own(loaded):
    with pytest.raises(PlannerError, match="NO_PREDICTION_LAYERS"):
        loaded(speculative={"tokens": 1, "acceptance": 0.5})
    assert loaded("deepseek-v3", speculative={"tokens": 1, "acceptance": 0.5}).architectures[0].speculation == Speculation(1, 0.5)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"method": "ngram", "model": "llama-3.2-1b"}, "RULES_NOT_TOGETHER"),
        ({"method": "ngram", "tp": 1}, "RULES_NOT_TOGETHER"),
        ({"method": "eagle"}, "WRONG_CHOICE"),
        ({"acceptance": 1.2, "model": "llama-3.2-1b"}, "OUT_OF_RANGE"),
        ({"acceptance": "3ms", "model": "llama-3.2-1b"}, "WRONG_UNIT"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(loaded, asked, code):
    with pytest.raises(PlannerError) as caught:
        loaded(speculative=asked)
    fault = next(item for item in caught.value.diagnostics if item.code == code)
    assert fault.place.path.startswith("deployments.served.speculative.")
    assert fault.place.line == 1


def test_keys_that_are_left_out_do_not_change_the_digest(loaded):
    asked = {"model": "llama-3.2-1b", "tokens": 4}
    silent, explicit, other = (
        loaded(speculative={**asked, **more}).sha256 for more in ({}, {"acceptance": None, "method": None}, {"acceptance": 0.7})
    )
    assert silent == explicit != other


def test_images_of_a_request_are_the_cache_of_cross_attention(loaded):
    engine = "sglang"
    for images, word in (
        (None, "1 image a request, 6,404 tokens"),
        (3, "3 images a request"),
        (0, "no images: the 8 cross-attention layers"),
    ):
        asked = {"workload": {**WORKLOAD, **({} if images is None else {"images": images})}}
        problem = loaded("llama-3.2-11b-vision", engine=engine, **asked)
        assert word in said(problem, "IMAGE_TOKENS")[0]
        held = {kind.attention.cross_tokens for kind in problem.architectures[0].layer_kinds}
        assert held == {0, 6404 * (1 if images is None else images)}


def test_images_that_are_part_of_the_prompt_are_refused_apart(loaded):
    with pytest.raises(PlannerError, match="IMAGES_IN_PROMPT"):
        loaded("qwen2.5-vl-7b", workload={**WORKLOAD, "images": 1})
    assert not said(loaded("qwen2.5-vl-7b"), "IMAGE_TOKENS")
