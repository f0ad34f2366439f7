"""Broken files: each fault has its code and its place, and no file ends in anything but diagnostics."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pytest

from planner.diagnostics import PlannerError
from planner.problem.load import load_any, load_problem
from planner.problem.source_text import LARGEST_FILE, read_bounded
from planner.problem.yaml_source import LONGEST_YAML

# What stands in the problem -> what to write instead of it -> code, line, column, path of the fault.
BROKEN = {
    "tab": ("    model: m", "\tmodel: m", "YAML_SYNTAX", 5, 1, ""),
    "bracket never closed": ("concurrency: 32}", "concurrency: 32", "YAML_SYNTAX", 9, 8, ""),
    "quote never closed": ("objective: cost", "objective: 'cost", "YAML_SYNTAX", 10, 12, ""),
    "colon in text": ("name: two-nodes", "name: two: nodes", "YAML_SYNTAX", 1, 10, ""),
    "indentation": ("    model: m", "   model: m", "YAML_SYNTAX", 5, 4, ""),
    "value begins with @": ("two-nodes", "@two", "YAML_SYNTAX", 1, 7, ""),
    "second document": ("objective: cost", "---\nobjective: cost", "SEVERAL_DOCUMENTS", 10, 1, ""),
    "duplicate key": ("objective: cost", "objective: cost\nname: again", "DUPLICATE_KEY", 11, 1, "name"),
    "duplicate key inside": ("{name: vllm}", "{name: vllm, name: sglang}", "DUPLICATE_KEY", 7, 26, "deployments.chat.engine.name"),
    "unknown alias": ("two-nodes", "*two", "UNKNOWN_ALIAS", 1, 7, ""),
    "recursive alias": ("objective: cost", "budget: &b {gpus: *b}", "RECURSIVE_ALIAS", 10, 19, ""),
    "tag": ("two-nodes", "!python/name two", "UNKNOWN_TAG", 1, 7, ""),
    "list as key": ("objective: cost", "? [a]\n: cost", "BAD_KEY", 10, 3, ""),
    "unknown key": ("objective:", "objectiv:", "UNKNOWN_KEY", 10, 1, "objectiv"),
    "unknown key inside": ("concurrency:", "concurency:", "UNKNOWN_KEY", 8, 57, "deployments.chat.workload.concurency"),
    "key of another part": ("    slo:", "    tp: 8\n    slo:", "UNKNOWN_KEY", 9, 5, "deployments.chat.tp"),
    "missing key": ("    model: model/config.json\n", "", "MISSING_KEY", 4, 5, "deployments.chat.model"),
    "missing value": ("{name: vllm}", "{name: }", "MISSING_VALUE", 7, 19, "deployments.chat.engine.name"),
    "missing topology": ("topology: topology.yaml\n", "", "MISSING_KEY", 1, 1, "topology"),
    "wrong choice": ("objective: cost", "objective: costs", "WRONG_CHOICE", 10, 12, "objective"),
    "wrong dtype": ("weights: fp8", "weights: fp7", "WRONG_CHOICE", 6, 26, "deployments.chat.precision.weights"),
    "text for a number": ("concurrency: 32", 'concurrency: "32"', "WRONG_TYPE", 8, 70, "deployments.chat.workload.concurrency"),
    "number for text": ("name: vllm", "name: vllm, version: 0.12", "WRONG_TYPE", 7, 35, "deployments.chat.engine.version"),
    "list for a mapping": ("{tpot: 60ms, ttft: 3s}", "[60ms]", "WRONG_TYPE", 9, 10, "deployments.chat.slo"),
    "yes is text": ("    slo:", "    require_nvlink: yes\n    slo:", "WRONG_TYPE", 9, 21, "deployments.chat.require_nvlink"),
    "fraction of a sequence": ("concurrency: 32", "concurrency: 1.5", "WRONG_TYPE", 8, 70, "deployments.chat.workload.concurrency"),
    "no unit": ("tpot: 60ms", "tpot: 60", "MISSING_UNIT", 9, 17, "deployments.chat.slo.tpot"),
    "unit of another kind": ("tpot: 60ms", "tpot: 60GB", "WRONG_UNIT", 9, 17, "deployments.chat.slo.tpot"),
    "negative load": ("concurrency: 32", "concurrency: -3", "OUT_OF_RANGE", 8, 70, "deployments.chat.workload.concurrency"),
    "too many tokens": ("prompt_tokens: 2048", "prompt_tokens: 1e12", "OUT_OF_RANGE", 8, 31, "deployments.chat.workload.prompt_tokens"),
    "not a number": ("concurrency: 32", "concurrency: .nan", "NOT_FINITE", 8, 70, "deployments.chat.workload.concurrency"),
    "not a number as text": ("tpot: 60ms", "tpot: nan", "NOT_FINITE", 9, 17, "deployments.chat.slo.tpot"),
    "degree 0": ("    slo:", "    parallelism: {tp: 0}\n    slo:", "OUT_OF_RANGE", 9, 23, "deployments.chat.parallelism.tp"),
    "share above 1": ("    slo:", "    min_efficiency: 70\n    slo:", "OUT_OF_RANGE", 9, 21, "deployments.chat.min_efficiency"),
    "no load": (", concurrency: 32", "", "NO_LOAD", 8, 15, "deployments.chat.workload"),
    "two loads": ("concurrency: 32", "concurrency: 32, request_rate: 4/s", "TWO_LOADS", 8, 88, "deployments.chat.workload.request_rate"),
    "empty slo": ("{tpot: 60ms, ttft: 3s}", "{}", "EMPTY_PART", 9, 10, "deployments.chat.slo"),
    "empty budget": ("objective: cost", "budget: {}", "EMPTY_PART", 10, 9, "budget"),
    "no degrees": ("    slo:", "    parallelism: {tp: []}\n    slo:", "EMPTY_LIST", 9, 23, "deployments.chat.parallelism.tp"),
    "degree twice": ("    slo:", "    parallelism: {tp: [8, 8]}\n    slo:", "DUPLICATE_VALUE", 9, 27, "deployments.chat.parallelism.tp.1"),
    "min above max": ("    slo:", "    replicas: {min: 3, max: 2}\n    slo:", "MIN_ABOVE_MAX", 9, 21, "deployments.chat.replicas.min"),
    "context too short": (
        "    slo:",
        "    memory: {max_model_len: 2048}\n    slo:",
        "CONTEXT_TOO_LONG",
        9,
        29,
        "deployments.chat.memory.max_model_len",
    ),
    "context too long": ("output_tokens: 512", "output_tokens: 8192", "CONTEXT_TOO_LONG", 8, 31, "deployments.chat.workload.prompt_tokens"),
    "unknown engine": ("name: vllm", "name: vlm", "UNKNOWN_ENGINE", 7, 20, "deployments.chat.engine.name"),
    "unknown model": ("model/config.json", "lama-3.1-405b", "UNKNOWN_MODEL", 5, 12, "deployments.chat.model"),
    "no model file": ("model/config.json", "model/konfig.json", "MODEL_FILE_NOT_FOUND", 5, 12, "deployments.chat.model"),
    "unknown GPU": ("objective: cost", "budget: {gpus: {h999: 8}}", "UNKNOWN_GPU", 10, 17, "budget.gpus.h999"),
    "one GPU by two names": (
        "objective: cost",
        "budget: {gpus: {h100-sxm-80gb: 8, H100-SXM-80GB: 8}}",
        "DUPLICATE_NAME",
        10,
        50,
        "budget.gpus.H100-SXM-80GB",
    ),
    "other currency": ("objective: cost", "budget: {per_hour: 100 EUR/h}", "CURRENCY_MIXED", 10, 20, "budget.per_hour"),
    "no topology file": ("topology.yaml", "topologie.yaml", "TOPOLOGY_NOT_FOUND", 2, 11, "topology"),
    "topology is a folder": ("topology.yaml", "model", "FILE_NOT_READABLE", 2, 11, "topology"),
    "bad name": ("name: chat", "name: a b", "WRONG_VALUE", 4, 11, "deployments.a b.name"),
    "empty name": ("name: two-nodes", 'name: ""', "MISSING_VALUE", 1, 7, "name"),
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_one_fault_is_reported_at_its_place(folder, case):
    there, instead, code, line, column, path = BROKEN[case]
    assert folder.PROBLEM.count(there) >= 1
    folder.write("problem.yaml", folder.PROBLEM.replace(there, instead, 1))
    assert folder.faults() == [(code, "problem.yaml", line, column, path)]


def test_the_unbroken_files_load(folder):
    loaded = load_problem(folder.name("problem.yaml"))
    assert loaded.problem.name == "two-nodes"


@pytest.mark.parametrize(
    ("content", "code", "line", "column"),
    [
        (b"", "EMPTY_FILE", None, None),
        (b"# nothing\n\n", "EMPTY_FILE", None, None),
        (b"null\n", "EMPTY_FILE", None, None),
        (b"\x7fELF\x00\x01", "BINARY_FILE", None, None),
        ("name: x".encode("utf-16"), "NOT_UTF8", None, None),
        (b"name: x\nmodel: caf\xe9\n", "NOT_UTF8", 2, 11),
        (b"name: x\ngpu: \x1b[31m\n", "CONTROL_CHARACTER", 2, 6),
        (b"- a\n- b\n", "ROOT_NOT_MAPPING", 1, 1),
        (b"only words\n", "ROOT_NOT_MAPPING", 1, 1),
        (b"42\n", "ROOT_NOT_MAPPING", 1, 1),
        (b"a: " + b"[" * 500, "NESTED_TOO_DEEP", 1, 67),
        (b"{" * 100_000, "BAD_KEY", 1, 2),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "NESTED_TOO_DEEP", 1, 321),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "NESTED_TOO_DEEP", 1, 321),
        (b"x" * (LARGEST_FILE + 1), "FILE_TOO_LARGE", None, None),
        (b"#" * (LONGEST_YAML + 1), "FILE_TOO_LARGE", None, None),
        (b"%YAML 7.0\n---\na: 1\n", "YAML_SYNTAX", 1, 1),
        (b'a: "\\q"\n', "YAML_SYNTAX", 1, 6),
    ],
)
def test_files_that_are_no_problem_at_all(folder, content, code, line, column):
    folder.write("problem.yaml", content)
    assert folder.faults() == [(code, "problem.yaml", line, column, "")]


def test_aliases_that_multiply_are_stopped(folder):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    folder.write("problem.yaml", "\n".join(lines))
    assert folder.faults()[0][0] == "TOO_MANY_VALUES"


def test_a_file_that_is_not_there(folder):
    (fault,) = folder.errors("problem.yml")
    assert fault.code == "FILE_NOT_FOUND"
    assert "problem.yaml" in fault.hint


def test_a_pipe_is_read_once_somebody_writes_to_it(folder, monkeypatch):
    monkeypatch.setattr("planner.problem.source_text.PATIENCE", 0.1)
    pipe = folder.name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(PlannerError) as caught:
        read_bounded(pipe, "shorten it")
    assert (caught.value.diagnostics[0].code, "nothing writes to it" in caught.value.diagnostics[0].message) == ("FILE_NOT_READABLE", True)
    monkeypatch.setattr("planner.problem.source_text.PATIENCE", 60.0)
    text = b"name: slow\n" * 20_000
    writer = threading.Thread(target=lambda: Path(pipe).write_bytes(text))
    writer.start()
    assert read_bounded(pipe, "shorten it") == text
    writer.join()


@pytest.mark.parametrize("name", ["", "model", "problem.yaml/inside", "x" * 5000, "nul\0byte"])
def test_paths_that_cannot_be_read(folder, name):
    with pytest.raises(PlannerError) as caught:
        load_problem(folder.name(name))
    assert caught.value.diagnostics[0].code in {"FILE_NOT_READABLE", "FILE_NOT_FOUND"}


def test_all_faults_of_all_files_at_once(folder):
    problem = folder.PROBLEM.replace("objective: cost", "objective: costs").replace("32}", "0}").replace("vllm", "vlm")
    folder.write("problem.yaml", problem.replace("slo:", "slos:"))
    topology = folder.TOPOLOGY.replace("400Gb/s", "400Gb").replace("oversubscription", "oversubscripton").replace("sxm-80gb", "sxm-81gb")
    folder.write("topology.yaml", topology)
    folder.write("model/config.json", '{"model_type": "llama",\n "hidden_size": }')
    assert folder.faults() == [
        ("UNKNOWN_ENGINE", "problem.yaml", 7, 20, "deployments.chat.engine.name"),
        ("OUT_OF_RANGE", "problem.yaml", 8, 70, "deployments.chat.workload.concurrency"),
        ("UNKNOWN_KEY", "problem.yaml", 9, 5, "deployments.chat.slos"),
        ("WRONG_CHOICE", "problem.yaml", 10, 12, "objective"),
        ("UNKNOWN_GPU", "topology.yaml", 3, 33, "nodes.h100-[01-02].gpu"),
        ("WRONG_UNIT", "topology.yaml", 3, 101, "nodes.h100-[01-02].nics.speed"),
        ("UNKNOWN_KEY", "topology.yaml", 4, 28, "fabric.oversubscripton"),
        ("MODEL_FILE_NOT_JSON", "config.json", 2, 17, ""),
    ]


def test_every_duplicate_is_reported_with_both_places(folder):
    folder.write("problem.yaml", folder.PROBLEM + "name: b\nobjective: gpus\nname: c\n")
    faults = folder.errors()
    assert [(fault.code, fault.place.line) for fault in faults] == [("DUPLICATE_KEY", 11), ("DUPLICATE_KEY", 12), ("DUPLICATE_KEY", 13)]
    assert all("first at line" in fault.message for fault in faults)


def test_two_deployments_of_one_name_are_told_by_position(folder):
    text = folder.PROBLEM.replace("objective: cost\n", "")
    second = text[text.index("  - name") :].replace("32}", "-1}")
    folder.write("problem.yaml", text + second)
    assert folder.faults() == [
        ("DUPLICATE_NAME", "problem.yaml", 10, 11, "deployments.1.name"),
        ("OUT_OF_RANGE", "problem.yaml", 14, 70, "deployments.1.workload.concurrency"),
    ]


@pytest.mark.parametrize(
    ("there", "instead", "code", "column", "path"),
    [
        ("h100-sxm-80gb", "h100-sxm-81gb", "UNKNOWN_GPU", 33, "nodes.h100-[01-02].gpu"),
        ("gpus: 8", "gpus: 0", "OUT_OF_RANGE", 54, "nodes.h100-[01-02].gpus"),
        ("$24/h", "$24/day", "WRONG_UNIT", 132, "nodes.h100-[01-02].price"),
        ("nvswitch", "nvswich", "WRONG_CHOICE", 67, "nodes.h100-[01-02].scale_up"),
    ],
)
def test_faults_inside_the_topology_have_its_positions(folder, there, instead, code, column, path):
    folder.write("topology.yaml", folder.TOPOLOGY.replace(there, instead))
    assert folder.faults() == [(code, "topology.yaml", 3, column, path)]
    assert folder.faults("topology.yaml") == [(code, "topology.yaml", 3, column, path)]


def test_a_topology_with_broken_syntax_is_reported_at_its_place(folder):
    folder.write("topology.yaml", "name: [\n")
    assert folder.faults() == [("YAML_SYNTAX", "topology.yaml", 1, 7, "")]


def test_an_inline_topology_is_checked_in_place(folder):
    inner = "".join(f"  {line}\n" for line in folder.TOPOLOGY.replace("gpus: 8", "gpus: 0").splitlines())
    folder.write("problem.yaml", folder.PROBLEM.replace("topology: topology.yaml\n", f"topology:\n{inner}"))
    assert folder.faults() == [("OUT_OF_RANGE", "problem.yaml", 5, 56, "topology.nodes.h100-[01-02].gpus")]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("[]", "MODEL_FILE_NOT_JSON"),
        ("[" * 100_000, "MODEL_FILE_NOT_JSON"),
        ("", "MODEL_FILE_NOT_JSON"),
        ("{}", "MODEL_NOT_UNDERSTOOD"),
    ],
)
def test_a_model_file_that_is_no_model(folder, content, code):
    folder.write("model/config.json", content)
    assert {fault[0] for fault in folder.faults()} == {code}


def test_hints_name_what_to_write(folder):
    folder.write("problem.yaml", folder.PROBLEM.replace("cost", "costs").replace("chat", "chat\n    tp: 8").replace("slo:", "slow:"))
    hints = {fault.place.path: fault.hint for fault in folder.errors()}
    assert hints["objective"] == "write cost"
    assert "deployments.parallelism" in hints["deployments.chat.tp"]
    assert "`slo`" in hints["deployments.chat.slow"]


def test_many_faults_are_cut_off(folder):
    rows = "".join(f"  - {{name: n{number}, gpus: 0}}\n" for number in range(200))
    folder.write("topology.yaml", f"name: many\nnodes:\n{rows}")
    faults = folder.errors("topology.yaml")
    assert len(faults) == 101
    assert faults[-1].code == "MORE_FAULTS"


def test_standard_input_is_read_and_named(folder, monkeypatch):
    text = folder.PROBLEM.replace("topology.yaml", folder.name("topology.yaml")).replace(
        "model/config.json", folder.name("model/config.json")
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert load_any("-").problem.name == "two-nodes"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.replace("cost", "costs").encode())))
    with pytest.raises(PlannerError) as caught:
        load_any("-")
    assert str(caught.value).startswith("<stdin>:10:12: objective: ")


def test_a_byte_order_mark_and_windows_lines_are_fine(folder):
    folder.write("problem.yaml", b"\xef\xbb\xbf" + folder.PROBLEM.replace("\n", "\r\n").encode())
    assert load_problem(folder.name("problem.yaml")).problem.name == "two-nodes"
