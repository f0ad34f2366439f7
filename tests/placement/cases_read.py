"""Turns a case of the tables into a problem and a placement."""

from __future__ import annotations

import json
from pathlib import Path

from ruamel.yaml import YAML

from planner.placement.judge import judge
from planner.placement.kinds import read_placement_text
from planner.problem.load import load_problem

FOLDER = Path(__file__).parent / "cases"
WORKLOAD = ("prompt_tokens", "output_tokens", "concurrency")


def table(name):
    """Read one table of cases."""
    return YAML(typ="safe").load((FOLDER / name).read_text(encoding="utf-8"))


def problem_of(case):
    """Problem of a case: one deployment called `served`, one sequence of 1,024 + 256 tokens unless the case asks for more."""
    ask = dict(case.get("ask", {}))
    workload = {"prompt_tokens": 1024, "output_tokens": 256, "concurrency": 1, **{key: ask.pop(key) for key in WORKLOAD if key in ask}}
    named = case["model"]
    model = str(FOLDER / named) if named.endswith(".json") else named
    topology = {"name": "fleet", "fabric": {"kind": "infiniband"}, "nodes": case["nodes"]}
    if "build" in case:
        topology = {"name": "fleet", "fabric": {"kind": "infiniband"}, "build": case["build"]}
    deployment = {"name": "served", "model": model, "workload": workload, **ask}
    return {"name": "case", "topology": topology, "deployments": [deployment], "objective": "gpus"}


def loaded(case, folder):
    """Load the problem of a case."""
    path = Path(folder) / "problem.json"
    path.write_text(json.dumps(problem_of(case)), encoding="utf-8")
    return load_problem(str(path))


def verdict(case, folder):
    """Judge the placement of a case."""
    question = loaded(case, folder)
    return judge(question, read_placement_text(case["placement"], "placement", question, case.get("kind")))
