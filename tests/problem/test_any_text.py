"""No input ends in anything but a result or a `PlannerError`."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from planner.diagnostics import PlannerError
from planner.problem.load import load_any, load_problem
from planner.problem.source_text import decode
from planner.problem.yaml_source import read_yaml

SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
YAML_LETTERS = st.text(alphabet="abn0123.:-?,[]{}#&*!|>'\"%@`\\ \t\n~<=", max_size=60)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def answers(read):
    """Only a PlannerError may be raised, and every diagnostic of it says something."""
    try:
        read()
    except PlannerError as error:
        silent = [fault for fault in error.diagnostics if not (fault.code and fault.message)]
        assert silent == []


@given(st.text(max_size=80) | YAML_LETTERS)
@example("%YAML 9\n---\n")
@example('"\\UFFFFFFFF"')
@example("a: !<")
@example("\ufeff")
@settings(deadline=None)
def test_any_text_is_read_or_refused(text):
    answers(lambda: read_yaml(text, "any.yaml"))


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data):
    answers(lambda: decode(data, "any.yaml"))


@given(st.integers(0, 400), st.integers(0, 20), YAML_LETTERS | st.text(max_size=10))
@SAME_FOLDER
def test_any_slip_of_the_pen_is_read_or_refused(folder, start, length, inserted):
    text = folder.PROBLEM[:start] + inserted + folder.PROBLEM[start + length :]
    path = folder.write("slip.yaml", text.encode("utf-8", "surrogatepass"))
    answers(lambda: load_any(path))


@pytest.mark.parametrize(
    "path",
    [
        ("name",),
        ("topology",),
        ("deployments",),
        ("deployments", 0),
        ("deployments", 0, "name"),
        ("deployments", 0, "model"),
        ("deployments", 0, "engine"),
        ("deployments", 0, "precision"),
        ("deployments", 0, "workload"),
        ("deployments", 0, "parallelism"),
        ("deployments", 0, "memory"),
        ("budget",),
    ],
)
@given(value=PLAIN)
@settings(SAME_FOLDER, max_examples=15)
def test_any_value_anywhere_is_read_or_refused(folder, path, value):
    data = read_yaml(folder.PROBLEM, None).data
    part = data
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    file = folder.write("any.json", json.dumps(data))
    answers(lambda: load_any(file))


@pytest.mark.parametrize(
    "path", [("nodes",), ("nodes", 0), ("nodes", 0, "name"), ("nodes", 0, "gpu"), ("nodes", 0, "nics"), ("fabric",), ("taken",)]
)
@given(value=PLAIN)
@settings(SAME_FOLDER, max_examples=15)
def test_any_value_in_a_topology_is_read_or_refused(folder, path, value):
    data = read_yaml(folder.TOPOLOGY, None).data
    part = data
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    folder.write("topology.yaml", json.dumps(data))
    answers(lambda: load_problem(folder.name("problem.yaml")))
    with contextlib.suppress(PlannerError):
        load_any(folder.name("topology.yaml"))


@given(
    st.text(max_size=40) | st.from_regex(r"[a-z.]{1,30}=.{0,20}", fullmatch=True) | YAML_LETTERS.map("deployments.chat.slo.tpot={}".format)
)
@SAME_FOLDER
def test_any_override_is_taken_or_refused(folder, text):
    answers(lambda: load_problem(folder.name("problem.yaml"), [text]))
