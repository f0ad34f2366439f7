"""Fleets where one name of a GPU is several kinds of nodes: nothing that is told reads the same and means two things."""

from __future__ import annotations

import pytest

import planner
from planner.report.terminal import plan_lines

FLEET = """
name: fleet
currency: EUR
nodes:
  - {name: "h100-[01-02]", gpu: h100-sxm-80gb, gpus: 8, scale_up: nvswitch, nics: {count: 8, speed: 400Gb/s}, leaf: leaf-1, price: 24 EUR/h}
  - {name: odd, gpu: h100-sxm-80gb, gpus: 3, scale_up: nvswitch, price: 9 EUR/h}
  - {name: "l40s-[1-3]", gpu: l40s-48gb, gpus: 2, price: 4 EUR/h}
"""
PROBLEM = """
name: alike
topology: fleet.yaml
deployments:
  - name: chat
    model: llama-3.1-70b
    precision: any
    workload: {prompt_tokens: 2000, output_tokens: 400, request_rate: 1.5/s}
    slo: {tpot: 50ms, ttft: 2s}
"""


@pytest.fixture(scope="module")
def solution(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "problem.yaml").write_text(PROBLEM)
    return planner.solve(str(folder / "problem.yaml"))


@pytest.fixture(scope="module")
def lines(solution):
    return list(plan_lines(solution.plan, solution.problem.fabric, {}))


def listed(lines, title):
    first = lines.index(title) + 1
    return lines[first : lines.index("", first)]


def test_no_two_alternatives_or_misses_have_the_same_name(lines):
    for title, mark in (("next best", ", "), ("not possible", ": ")):
        names = [
            line.split(mark)[0] if title == "next best" else line.split(mark)[0] + line.rsplit("[", 1)[1] for line in listed(lines, title)
        ]
        assert len(names) == len(set(names)), names


def test_alike_gpus_are_told_by_their_nodes_and_formats_where_they_differ(lines):
    text = "\n".join((*listed(lines, "next best"), *listed(lines, "not possible")))
    assert "on h100-sxm-80gb of odd (" in text
    assert "on h100-sxm-80gb of h100-01 and 1 alike (fp8 weights, fp8 KV)" in text
    assert "(bf16 weights, bf16 KV): short by" in text


def test_nodes_on_no_leaf_are_not_shown_below_one(lines):
    rows = {line.split("[")[0].split()[-1]: line for line in listed(lines, "placement")}
    assert rows["odd"].startswith("  no leaf  odd")
    assert rows["h100-01"].startswith("  leaf-1   h100-01")


def test_hosts_without_a_network_are_told_so(solution):
    messages = [item.message for item in solution.plan.rejected if item.code == "NOT_ENOUGH_GPUS" and item.shape.gpu == "l40s-48gb"]
    assert messages
    assert all("no network joins the hosts; the fullest has 2" in message for message in messages)


def test_explanations_are_priced_in_the_currency_of_the_fleet(solution):
    told = solution.explain("tp4")
    assert any("EUR" in line or "€" in line for line in told)
    assert not any("$" in line for line in told)
    assert any("of h100-01 and 1 alike" in line for line in told)


def answered(folder, change):
    (folder / "fleet.yaml").write_text(FLEET)
    (folder / "problem.yaml").write_text(PROBLEM + change)
    solution = planner.solve(str(folder / "problem.yaml"))
    return list(plan_lines(solution.plan, solution.problem.fabric, {})), solution.plan


OTHER = """  - name: other
    model: llama-3.1-8b
    workload: {prompt_tokens: 2000, output_tokens: 400, concurrency: 4}
    slo: {tpot: 1ms}
"""


def test_misses_of_an_impossible_problem_are_those_in_the_way(tmp_path):
    lines, plan = answered(tmp_path, OTHER)
    misses = listed(lines, "nearest misses")
    assert all(line.startswith("  other: ") for line in misses)
    assert any("[TPOT_MISSED]" in line for line in misses)
    assert any("other cannot be served within 1ms" in line for line in listed(lines, "would help, each alone"))
    assert all(item.shortfall is None or item.shortfall >= 0.0 for item in plan.rejected)


def test_what_is_in_the_way_is_said_where_no_single_change_helps(tmp_path):
    lines, plan = answered(tmp_path, OTHER + "budget: {per_hour: 1 EUR/h}\n")
    assert plan.repairs == ()
    assert listed(lines, "in the way") == ["  other has no shape that may run on this fleet; see the nearest misses"]


def test_the_page_tells_them_apart_too(solution):
    from planner.report.page.tables import alternatives_table, rejected_table

    rows = [row[:3] for row in alternatives_table(solution.plan).rows]
    assert len(rows) == len(set(rows))
    assert any(row[2].startswith("h100-sxm-80gb of odd (") for row in rows)
    misses = rejected_table(solution.plan).rows
    assert any("(bf16 weights, bf16 KV)" in row[2] for row in misses)
    assert all(len(set(row[4].split(", "))) == len(row[4].split(", ")) for row in misses)
