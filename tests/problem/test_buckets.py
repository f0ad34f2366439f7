"""Loads in buckets and figures of one's own: what they mean, and every slip told with its place and what to write."""

from __future__ import annotations

import pytest

from planner.diagnostics import PlannerError
from planner.problem.load import load_problem

PROBLEM = """\
name: buckets
topology:
  name: nodes
  nodes:
    - {name: "a10g-[1-4]", gpu: a10g-24gb, gpus: 1, nics: {count: 1, speed: 25Gb/s}, price: $1/h}
    - {name: "a100-[1-4]", gpu: a100-sxm-80gb, gpus: 1, nics: {count: 1, speed: 100Gb/s}, price: $4/h}
  fabric: {kind: ethernet, oversubscription: 1}
deployments:
  - name: chat
    model: llama-2-7b
    workload:
      request_rate: 30/s
      buckets:
        - {name: short, prompt_tokens: 100, output_tokens: 50, share: 75%}
        - {name: long, prompt_tokens: 1000, output_tokens: 200, share: 25%}
    throughput:
      - {gpu: a10g-24gb, rate: {short: 5/s, long: 1/s}}
      - {gpu: A100 SXM 80GB, rate: {short: 20/s, long: 8/s}}
objective: cost
"""


def faults(tmp_path, *changes):
    text = PROBLEM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "problem.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlannerError) as caught:
        load_problem(str(path))
    return caught.value.diagnostics


def found(tmp_path, *changes):
    return [(fault.code, fault.place.line, fault.hint) for fault in faults(tmp_path, *changes)]


def test_buckets_are_read(tmp_path):
    path = tmp_path / "problem.yaml"
    path.write_text(PROBLEM.replace("name: short, ", "").replace("short:", "100-50:"), encoding="utf-8")
    loaded = load_problem(str(path))
    deployment = loaded.problem.deployments[0]
    assert [bucket.title for bucket in deployment.workload.buckets] == ["100-50", "long"]
    assert sum(bucket.part for bucket in deployment.workload.buckets) == 1
    assert [entry.gpu for entry in deployment.throughput] == ["a10g-24gb", "a100-sxm-80gb"]
    assert deployment.workload.longest == 1200
    assert type(deployment).model_validate(deployment.model_dump()) == deployment


def test_buckets_that_are_not_asked_leave_the_digest_as_it_was(tmp_path):
    path = tmp_path / "problem.yaml"
    start, end = PROBLEM.index("      buckets:"), PROBLEM.index("objective")
    plain = PROBLEM[:start] + "      prompt_tokens: 100\n      output_tokens: 50\n" + PROBLEM[end:]
    path.write_text(plain, encoding="utf-8")
    assert load_problem(str(path)).sha256 == "f51c16ce1ddf57113b33e57968667e8fdb085fbd60aa83a221fb280047d81755"


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "hint"),
    [
        ("share: 25%", "share: 20%", "SHARES_NOT_WHOLE", 14, "add 5 %"),
        ("share: 25%", "share: 35%", "SHARES_NOT_WHOLE", 14, "take away 10 %"),
        ("share: 25%", "share: -25%", "OUT_OF_RANGE", 15, ""),
        ("share: 25%", "share: 0", "OUT_OF_RANGE", 15, "more than 0"),
        ("name: long", "name: short", "DUPLICATE_NAME", 15, "another `name`"),
        ("request_rate: 30/s", "request_rate: 30/s\n      prompt_tokens: 5", "LENGTHS_TWICE", 13, "leave `prompt_tokens` out"),
        ("buckets:", "slices: 0\n      buckets:", "OUT_OF_RANGE", 13, "at least 1"),
        ("rate: {short: 5/s, long: 1/s}", "rate: {short: 5/s}", "FIGURE_MISSING", 17, "add `long: 4/s`"),
        ("rate: {short: 5/s, long: 1/s}", "rate: {short: 5/s, long: 1/s, wide: 2/s}", "FIGURE_OF_NO_BUCKET", 17, "short, long"),
        ("rate: {short: 5/s, long: 1/s}", "rate: {short: 0, long: 0}", "FIGURE_MISSING", 17, "leave this shape out"),
        ("rate: {short: 5/s, long: 1/s}", "rate: {short: -5/s, long: 1/s}", "OUT_OF_RANGE", 17, ""),
        ("rate: {short: 5/s, long: 1/s}", "rate: 4/s", "FIGURE_MISSING", 17, "{short: 4/s, long: 4/s}"),
        ("rate: {short: 5/s, long: 1/s}", "sequences: {short: 5, long: 1}", "FIGURE_OF_ANOTHER_KIND", 17, "give `rate`"),
        ("rate: {short: 5/s, long: 1/s}", "tp: 1", "FIGURE_MISSING", 17, "add `rate: {short: 4/s"),
        ("gpu: a10g-24gb, rate", "gpu: a10h-24gb, rate", "UNKNOWN_GPU", 17, "a10g-24gb"),
        ("gpu: A100 SXM 80GB, rate", "gpu: a10g-24gb, rate", "DUPLICATE_VALUE", 18, "keep one"),
        ("objective: cost", "objective: latency", "RULES_NOT_TOGETHER", 14, "`slo`"),
    ],
)
def test_a_slip_is_told_with_its_place_and_what_to_write(tmp_path, old, new, code, line, hint):
    told = found(tmp_path, (old, new))
    assert any((code, line) == (one, where) and hint in what for one, where, what in told), told


def test_figures_of_a_workload_without_buckets(tmp_path):
    start, end = PROBLEM.index("      buckets:"), PROBLEM.index("    throughput:")
    told = found(tmp_path, (PROBLEM[start:end], "      prompt_tokens: 100\n      output_tokens: 50\n"))
    assert [code for code, _, _ in told] == ["FIGURE_OF_NO_BUCKET"] * 2


def test_lengths_are_asked_for_where_there_are_no_buckets(tmp_path):
    start, end = PROBLEM.index("      buckets:"), PROBLEM.index("    throughput:")
    told = found(tmp_path, (PROBLEM[start:end], "      slices: 2\n"))
    assert {code for code, _, _ in told} >= {"MISSING_KEY", "RULES_NOT_TOGETHER"}


def test_rules_that_say_nothing_of_buckets_are_refused(tmp_path):
    told = faults(tmp_path, ("objective: cost", "    resilience: node\nobjective: cost"))
    assert [(fault.code, fault.place.path) for fault in told] == [("RULES_NOT_TOGETHER", "deployments.chat.resilience")]
    told = faults(tmp_path, ("      buckets", "      slices: 2\n      buckets"), ("objective: cost", "objective: throughput"))
    assert [(fault.code, fault.place.path) for fault in told] == [("RULES_NOT_TOGETHER", "deployments.chat.workload.slices")]


def test_every_bucket_fits_the_context(tmp_path):
    told = faults(tmp_path, ("prompt_tokens: 1000", "prompt_tokens: 9000"))
    assert [(fault.code, fault.place.line) for fault in told] == [("CONTEXT_TOO_LONG", 15)]
    told = faults(tmp_path, ("    throughput:", "    memory: {max_model_len: 500}\n    throughput:"))
    assert [(fault.code, fault.place.path) for fault in told] == [("CONTEXT_TOO_LONG", "deployments.chat.memory.max_model_len")]
