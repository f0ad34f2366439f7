"""Predicted against measured step times: errors, factors, and tables that cannot be read."""

from __future__ import annotations

import json

import pytest

from planner.calibrate.comparison import agreement, compare
from planner.calibrate.step_rows import StepRow, steps_of
from planner.cli.app import run
from planner.diagnostics import PlannerError
from planner.plan.shape import Degrees
from planner.problem.profile_document import ProfileDocument
from planner.problem.profiles import Profile, measurements

HEAD = "model,gpu,tp,pp,batch,prompt_tokens,output_tokens,tpot_ms\n"


def rows_of(*shapes, factor=1.0):
    """Rows whose measured times are the planner's own predictions times a factor."""
    rows = [
        StepRow(2 + at, "llama-3.1-8b", "h100-sxm-80gb", Degrees(tp, 1, 1, 1), batch, 1024, 256, 1e-3)
        for at, (tp, batch) in enumerate(shapes)
    ]
    predicted = compare(rows, Profile(), "steps.csv").predicted
    return HEAD + "".join(
        f"{row.model},{row.gpu},{row.degrees.tensor_parallel},1,{row.batch},{row.prompt_tokens},{row.output_tokens},{factor * time * 1e3!r}\n"
        for row, time in zip(rows, predicted, strict=True)
    )


SHAPES = [(1, 1), (1, 8), (2, 8), (4, 32), (8, 64), (8, 1)]


def test_times_of_the_model_itself_have_no_error():
    found = compare(steps_of(rows_of(*SHAPES), "s"), Profile(), "s").whole
    assert (found.rows, found.factor) == (6, pytest.approx(1.0))
    assert found.p90 == pytest.approx(0.0, abs=1e-9)


def test_the_factor_takes_a_constant_slowness_out():
    found = compare(steps_of(rows_of(*SHAPES, factor=1.25), "s"), Profile(), "s").whole
    assert found.factor == pytest.approx(1.25)
    assert found.median == pytest.approx(0.2)
    assert (found.calibrated_median, found.calibrated_p90) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_errors_with_a_factor_are_on_other_rows():
    """One outlier raises its own error with the factor, not the factor of its own half."""
    found = agreement([1.0, 1.0, 1.0, 1.0, 1.0, 2.0], [1.0] * 6)
    assert found.factor == 1.0
    assert found.calibrated_p90 == pytest.approx(0.25)
    assert agreement([1.0, 2.0], [1.0, 1.0]).calibrated_median is None


def test_a_slower_link_slows_its_predictions():
    document = ProfileDocument.model_validate({"name": "slow", "links": {"nvlink4": {"calibrated": {"alpha": 50e-6, "bandwidth": 50e9}}}})
    slow = Profile("slow", "calibrated", measurements(document)[0], document)
    rows = steps_of(rows_of((1, 8), (8, 8)), "s")
    plain, slowed = compare(rows, Profile(), "s").predicted, compare(rows, slow, "s").predicted
    assert slowed[0] == plain[0]
    assert slowed[1] > 1.5 * plain[1]


def test_names_of_other_tools_and_separators():
    text = "Model;GPU type;tensor_parallel_size;concurrency;ISL;OSL;ITL ms;note\n# a comment\n\nllama-3.1-8b;H100 SXM;2;16;1000;200;9.5;x\n"
    (row,) = steps_of(text, "s")
    assert (row.degrees.tensor_parallel, row.batch, row.prompt_tokens, row.output_tokens) == (2, 16, 1000, 200)
    assert row.tpot == pytest.approx(9.5e-3)
    seconds = text.replace("ITL ms", "tpot_s")
    assert steps_of(seconds, "s")[0].tpot == pytest.approx(9.5)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [1]),
        ("model,gpu\nx,y\n", [1]),
        (HEAD, [None]),
        (HEAD + "m,g,1,1,1,1,1,nan\nm,g,0,1,1,1,1,1\nm,,1,1,1.5,1,1,1\n", [2, 3, 4, 4]),
        (HEAD + "m,g,1,1,1,1,1\n", [2]),
        (HEAD + "m,g,1,1,1,1,1,-3\n", [2]),
    ],
)
def test_tables_that_cannot_be_read_name_their_lines(text, lines):
    with pytest.raises(PlannerError) as caught:
        steps_of(text, "s.csv")
    assert [fault.place.line for fault in caught.value.diagnostics] == lines
    assert {fault.code for fault in caught.value.diagnostics} == {"BAD_STEP_TIMES"}
    assert all(fault.hint for fault in caught.value.diagnostics)


def test_unknown_names_are_told_at_their_lines():
    text = HEAD + "llama-9,h100-sxm-80gb,1,1,1,1,1,1\nllama-3.1-8b,h900,1,1,1,1,1,1\n"
    with pytest.raises(PlannerError) as caught:
        compare(steps_of(text, "s.csv"), Profile(), "s.csv")
    assert [(fault.code, fault.place.line) for fault in caught.value.diagnostics] == [("UNKNOWN_MODEL", 2), ("UNKNOWN_GPU", 3)]
    with pytest.raises(PlannerError):
        compare(steps_of(HEAD.replace("tpot_ms", "tpot_ms,weights") + "llama-3.1-8b,h100-sxm-80gb,1,1,1,1,1,1,fp3\n", "s"), Profile(), "s")


def test_the_command_compares(tmp_path, capsys):
    path = tmp_path / "steps.csv"
    path.write_text(rows_of(*SHAPES, factor=2.0), encoding="utf-8")
    assert run(["fit", "--compare", str(path)]) == 0
    assert "multiply predicted times by 2.000" in capsys.readouterr().out
    assert run(["fit", "--compare", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["comparison"]["factor"] == pytest.approx(2.0)
    assert document["comparison"]["median_error"] == pytest.approx(0.5)
    assert len(document["comparison"]["rows"]) == len(SHAPES)
    assert run(["fit", "--compare", str(path), "--profile", "hockney", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparison"]["profile"] == "hockney"
