from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner.problem.document_types import homes_of_keys, keys_of, type_at
from planner.problem.documents import Deployment, Problem, Replicas
from planner.problem.workload import Workload

DEPLOYMENT = {"name": "chat", "model": "m", "workload": {"prompt_tokens": 10, "output_tokens": 5, "concurrency": 2}}


def test_documents_made_in_code_take_si_numbers():
    deployment = Deployment.model_validate({**DEPLOYMENT, "slo": {"tpot": 0.06}, "headroom": 0.25, "min_efficiency": 0.7})
    assert (deployment.slo.tpot, deployment.headroom, deployment.min_efficiency) == (0.06, 0.25, 0.7)


def test_defaults():
    problem = Problem.model_validate({"name": "p", "topology": "t.yaml", "deployments": [DEPLOYMENT]})
    deployment = problem.deployments[0]
    assert (problem.objective, problem.profile, problem.seed, problem.budget) == ("cost", "calibrated", 0, None)
    assert (deployment.engine.name, deployment.engine.version, deployment.headroom, deployment.require_nvlink) == ("vllm", None, 0.0, False)
    assert (deployment.precision, deployment.slo, deployment.parallelism, deployment.replicas, deployment.memory) == (None,) * 5


def test_short_forms():
    deployment = Deployment.model_validate({**DEPLOYMENT, "engine": "sglang", "precision": "any", "parallelism": {"tp": 8, "pp": [1, 2]}})
    assert deployment.engine.name == "sglang"
    assert (deployment.precision.weights, deployment.precision.kv_cache) == ("any", "any")
    assert (deployment.parallelism.tp, deployment.parallelism.pp, deployment.parallelism.ep) == ((8,), (1, 2), None)


def test_documents_are_frozen():
    workload = Workload(prompt_tokens=1, output_tokens=1, concurrency=1)
    with pytest.raises(ValidationError):
        workload.concurrency = 2


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Workload, {"prompt_tokens": 1, "output_tokens": 1}),
        (Workload, {"prompt_tokens": 1, "output_tokens": 1, "concurrency": 1, "request_rate": 1}),
        (Replicas, {"min": 2, "max": 1}),
        (Problem, {"name": "p", "topology": "t", "deployments": [DEPLOYMENT, DEPLOYMENT]}),
        (Deployment, {**DEPLOYMENT, "memory": {"max_model_len": 14}}),
    ],
)
def test_disagreeing_keys_are_refused_in_code_too(kind, data):
    with pytest.raises(ValidationError, match=";"):
        kind.model_validate(data)


def test_what_may_stand_where():
    assert "concurrency" in keys_of(type_at(Problem, ("deployments", 0, "workload")))
    assert "price" in keys_of(type_at(Problem, ("topology", "nodes", 3)))
    assert type_at(Problem, ("deployments", 0, "nothing")) is None
    homes = homes_of_keys(Problem)
    assert (homes["tp"], homes["objective"], homes["gpu_memory_utilization"]) == ("deployments.parallelism", "", "deployments.memory")
