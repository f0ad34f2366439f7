"""Reports about memory, put to the command as problems: the verdict, the rule it names and the figures are those of the report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from planner.cli.app import run
from tests.cases import reading

HERE = Path(__file__).parent
REPORTS = reading.table("memory_reports.yaml")
ASKED = [(report, layout) for report in REPORTS for layout in report["layouts"]]
DEGREES = ("tp", "pp", "ep", "dp")
LOAD = {"prompt_tokens": 1024, "output_tokens": 128, "concurrency": 1}


def name_of(pair):
    report, layout = pair
    return report["source"].split(" ")[0] + "-" + "".join(f"{degree}{layout[degree]}" for degree in DEGREES if degree in layout)


def problem_of(report, layout):
    fleet = report["fleet"]
    if "trays" in fleet:
        rack = {"kind": "nvl72", "gpu": fleet["gpu"], "trays": fleet["trays"], "nics": {"count": 4, "speed": "400Gb/s"}, "price": "$40/h"}
        topology = {"name": "rack", "build": [rack], "fabric": {"kind": "infiniband"}}
        return {"name": "report", "topology": topology, "deployments": [asked_of(report, layout)]}
    nodes = fleet.get("nodes", 1)
    group = {"name": f"node-[01-{nodes:02d}]" if nodes > 1 else "node", "gpu": fleet["gpu"], "gpus": fleet["gpus"], "price": "$10/h"}
    group |= {"scale_up": fleet["scale_up"]} if "scale_up" in fleet else {}
    group |= {"nics": {"count": min(fleet["gpus"], 8), "speed": "400Gb/s"}, "leaf": "leaf-1"} if nodes > 1 else {}
    fabric = {"fabric": {"kind": "infiniband"}} if nodes > 1 else {}
    return {"name": "report", "topology": {"name": "fleet", "nodes": [group], **fabric}, "deployments": [asked_of(report, layout)]}


def asked_of(report, layout):
    fixed = {degree: layout.get(degree, 1) for degree in DEGREES} if any(degree in layout for degree in DEGREES) else None
    varied = {key: layout[key] for key in ("memory", "precision", "speculative", "lora") if key in layout}
    return {"name": "served", "workload": LOAD, **report["ask"], **varied} | ({"parallelism": fixed} if fixed else {})


@pytest.fixture
def answer(tmp_path, capsys):
    shutil.copy(HERE / "405b-fp8-july-2024.json", tmp_path)

    def solve(problem):
        path = tmp_path / "report.json"
        path.write_text(json.dumps(problem), encoding="utf-8")
        status = run(["solve", str(path), "--json", "-q"])
        return status, json.loads(capsys.readouterr().out)

    return solve


@pytest.mark.parametrize(("report", "layout"), ASKED, ids=list(map(name_of, ASKED)))
def test_the_command_gives_the_verdict_of_the_report(answer, report, layout):
    status, plan = answer(problem_of(report, layout))
    told = [*plan["rejected"], *plan["diagnostics"]]
    assert plan["status"] == layout["status"], [(item["code"], item["message"]) for item in told]
    assert status == (3 if layout["status"] == "infeasible" else 0)
    codes = {item["code"] for item in told}
    if layout["status"] == "infeasible":
        assert codes & set(layout["codes"]), told
        assert all(any(character.isdigit() for character in item["message"]) for item in plan["rejected"])
    else:
        assert set(layout.get("codes", ())) <= codes, told
    assert not codes & set(layout.get("without", ()))
    if "words" in layout:
        assert any(layout["words"] in f"{item['message']} {item.get('hint', '')}" for item in told), told
    if layout["status"] == "optimal":
        replica = plan["deployments"][0]["replicas"][0]
        if "weights" in layout:
            assert replica["memory"]["weights_gib"] == pytest.approx(layout["weights"], rel=layout["within"])
        for degree, value in layout.get("chosen", {}).items():
            assert replica["shape"][degree] == value
        if "most_kv" in layout:
            free = replica["memory"]["free_gib"] + replica["memory"]["kv_gib"]
            assert 0 < free <= layout["most_kv"]


def test_compressed_tokens_on_data_parallel_ranks_holds_eight_times_as_much(answer):
    """vllm-project/recipes#762: DP8 with EP8 holds 7.7 times what TP8 with EP8 holds."""
    report = next(item for item in REPORTS if item["source"] == "vllm-project/recipes#762")
    held = [
        answer(problem_of(report, layout))[1]["deployments"][0]["replicas"][0]["memory"]["max_sequences"] for layout in report["layouts"]
    ]
    assert 7.0 <= held[1] / held[0] <= 8.0


@pytest.mark.parametrize(("name", "tokens"), [("gemma-4-31b", 626_949), ("gemma-4-31b-nvfp4", 1_007_303)])
def test_the_cache_that_a_log_will_print(capsys, name, tokens):
    """redhat-performance/configiq#112: a tool promised 972,134 and 2,684,804 tokens on one H200; the cache of 4-bit weights stays in 16 bits."""
    flags = ["--model", name, "--gpu", "h200-sxm-141gb", "--tp", "1", "--engine", "vllm 0.20", "--max-model-len", "262144", "--json"]
    assert run(["memory", *flags]) == 0
    found = json.loads(capsys.readouterr().out)["answers"][0]
    assert next(iter(_values(found, "engine_log_tokens"))) == pytest.approx(tokens, rel=0.05)


def _values(found, key):
    if isinstance(found, dict):
        if key in found:
            yield found[key]
        for value in found.values():
            yield from _values(value, key)
    elif isinstance(found, list):
        for value in found:
            yield from _values(value, key)
