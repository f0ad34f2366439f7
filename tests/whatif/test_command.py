"""The command `planner whatif`: exit codes, clean stdout, and every form of its answer."""

from __future__ import annotations

import csv
import io
import json

import pytest

from planner.cli.app import run
from planner.whatif.tables import COLUMNS

from .conftest import problem, write


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_infeasible_scenarios_are_answers(fleet, capsys):
    assert run(["whatif", fleet, "--grid", "load=x1,x20", "--csv", "-q"]) == 0
    found = rows(capsys.readouterr().out)
    assert [row["scenario"] for row in found] == ["as it is", "load=x1", "load=x20"]
    assert [row["status"] for row in found] == ["optimal", "optimal", "infeasible"]
    assert list(found[0]) == list(COLUMNS)
    assert float(found[1]["cost_change"]) == 0.0
    assert found[1]["moved"] == "0"
    assert found[2]["cost_per_hour"] == ""
    assert "would do" in found[2]["why"] or "[" in found[2]["why"]


def test_the_table_names_every_scenario_and_what_would_mend_it(fleet, capsys):
    assert run(["whatif", fleet, "--grid", "load=x1,x20", "--patch", "prices=+10%"]) == 0
    captured = capsys.readouterr()
    assert "load=x20" in captured.out
    assert "infeasible" in captured.out
    assert "\x1b" not in captured.out


def test_json_is_one_document(fleet, capsys):
    assert run(["whatif", fleet, "--lose", "h100-02", "--max-load", "chat", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format_version"] == 1
    assert document["complete"] is True
    assert document["scenarios"][0]["changes"] == ["lose=h100-02"]
    assert document["questions"][0]["question"] == "max_load"
    assert document["questions"][0]["proved"] is True


def test_the_same_question_gives_the_same_bytes(fleet, capsys):
    texts = []
    for _ in range(2):
        assert run(["whatif", fleet, "--grid", "load=x1,x1.5", "--json", "-q"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_a_scenario_file_and_options_together(fleet, tmp_path, capsys):
    path = tmp_path / "scenarios.yaml"
    path.write_text("scenarios: [{name: twice, set: {load: x2}}]\nquestions: {growth: 50%/month}\n")
    assert run(["whatif", fleet, str(path), "--patch", "prices=+10%", "-q"]) == 0
    text = capsys.readouterr().out
    assert "twice" in text
    assert "prices=+10%" in text
    assert "runs out" in text


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--patch", "deployments.chat.lod=x2"], "UNKNOWN_PATH"),
        (["--lose", "h100-77"], "UNKNOWN_NODE"),
        (["--patch", "load=x2", "--patch", "load=x3"], "CONTRADICTORY_CHANGES"),
        (["--patch", "load"], "OVERRIDE_NOT_UNDERSTOOD"),
        (["--grid", "load=x1,x1"], "DUPLICATE_NAME"),
        (["--max-load", "nobody"], "UNKNOWN_DEPLOYMENT"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_solved(fleet, options, code, capsys, monkeypatch):
    monkeypatch.setattr("planner.whatif.study.solve_base", None)
    assert run(["whatif", fleet, *options]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert code in captured.err
    assert "Traceback" not in captured.err


def test_a_problem_without_a_plan_is_a_base_too(tmp_path, capsys):
    path = write(tmp_path / "problem.json", problem(load=5000))
    assert run(["whatif", path, "--patch", "deployments.chat.load=40", "--csv", "-q"]) == 0
    found = rows(capsys.readouterr().out)
    assert [row["status"] for row in found] == ["infeasible", "optimal"]
    assert found[1]["cost_change"] == ""


def test_parquet_holds_the_rows(fleet, tmp_path, capsys):
    import pandas as pd

    path = tmp_path / "rows.parquet"
    assert run(["whatif", fleet, "--grid", "load=x1,x20", "--parquet", str(path), "--csv", "-q"]) == 0
    found = pd.read_parquet(path)
    assert list(found["scenario"]) == [row["scenario"] for row in rows(capsys.readouterr().out)]
    assert list(found.columns) == list(COLUMNS)
    assert run(["whatif", fleet, "--parquet", str(tmp_path / "nowhere" / "rows.parquet"), "-q"]) == 1
    assert "OUTPUT_NOT_WRITABLE" in capsys.readouterr().err


def test_progress_is_not_on_stdout(fleet, capsys, monkeypatch):
    monkeypatch.setattr("planner.whatif.progress.SECONDS_APART", {True: 0.0, False: 0.0})
    assert run(["whatif", fleet, "--grid", "load=x1,x1.2,x1.4", "--csv"]) == 0
    captured = capsys.readouterr()
    assert "3 of 3 solved" in captured.err
    assert "left" in captured.err
    assert "solved" not in captured.out


def test_progress_tells_rate_and_time_left():
    from planner.whatif.progress import duration, progress_line

    assert progress_line(312, 1000, 2.4) == "312 of 1000 solved · 2.4/s · 4 min 47 s left"
    assert duration(7500) == "2 h 05 min"


def test_an_extra_that_is_missing_is_named(fleet, capsys, monkeypatch):
    monkeypatch.setattr("planner.whatif.what_if.find_spec", lambda _: None)
    assert run(["whatif", fleet, "--patch", "load=x2", "--jobs", "2"]) == 1
    assert "EXTRA_MISSING" in capsys.readouterr().err
    assert run(["whatif", fleet, "--patch", "load=x2", "--engine", "ray"]) == 1
    assert "llm-deployment-planner[ray]" in capsys.readouterr().err
