"""Forms of the calculators' answers: one JSON document, CSV of equal rows, tables without colours, help that reads."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest

from planner.cli.app import run

BASE = "--model llama-3-8b,gpt2 --gpu h100-sxm-80gb --prompt-tokens 512 --output-tokens 64"
COMMANDS = ("estimate", "scaling", "crossover", "regimes", "memory")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("profile", ["hockney", "calibrated"])
def test_json_is_one_document(command, profile, capsys):
    assert run([*f"{command} {BASE} --profile {profile}".split(), "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["format_version"] == 1
    assert document["calculator"] == command
    assert document["profile"] == profile
    assert {answer["model"] for answer in document["answers"]} == {"llama-3-8b", "gpt2"}
    assert captured.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_csv_rows_are_flat_and_agree_with_json(command, capsys):
    assert run([*f"{command} {BASE}".split(), "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) >= 2
    assert {row["model"] for row in rows} == {"llama-3-8b", "gpt2"}
    assert all(len(row) == len(rows[0]) and None not in row for row in rows)
    assert run([*f"{command} {BASE}".split(), "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    if command in {"crossover", "regimes"}:
        assert [list(answer) for answer in answers] == [list(row) for row in rows]
    elif command == "scaling":
        assert len(rows) == sum(len(answer["points"]) for answer in answers)
    else:
        assert len(rows) == len(answers)


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_are_plain_when_piped(command, capsys):
    assert run(f"{command} {BASE}".split()) == 0
    out = capsys.readouterr().out
    assert "llama-3-8b" in out
    assert "gpt2" in out
    assert "\x1b" not in out


def test_one_layout_shows_everything(capsys):
    assert (
        run(["estimate", "--model", "llama-3-70b", "--gpu", "h100-sxm-80gb", "--tp", "16", "--profile", "hockney", "--jitter", "0.1"]) == 0
    )
    out = capsys.readouterr().out
    for words in ("time per token", "first token", "tails", "budget", "half-ring-across", "CROSS_NODE_TP", "10 ok", "recommendation:"):
        assert words in out


def test_commas_and_repetition_ask_the_same(capsys):
    assert run(["estimate", "--model", "llama-3-8b", "--gpu", "h100-sxm-80gb", "--tp", "1,2,4", "--csv"]) == 0
    listed = capsys.readouterr().out
    assert run(["estimate", "--model", "llama-3-8b", "--gpu", "h100-sxm-80gb", "--tp", "1", "--tp", "2,4", "--csv"]) == 0
    assert capsys.readouterr().out == listed
    assert listed.count("\n") == 4


def test_the_same_question_has_the_same_answer(capsys):
    line = ["estimate", "--model", "deepseek-v3", "--gpu", "h200-sxm-141gb", "--tp", "8", "--ep", "8", "--json"]
    assert run(line) == 0
    first = capsys.readouterr().out
    assert run(line) == 0
    assert capsys.readouterr().out == first


def test_a_warning_is_told_once_and_quiet_is_quiet(capsys):
    line = ["memory", "--model", "gpt2", "--gpu", "h100-sxm-80gb,l40s-48gb"]
    assert run(line) == 0
    assert capsys.readouterr().err.count("CONTEXT_TOO_LONG") == 1
    assert run([*line, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_is_asked(command, capsys):
    assert run([command, "--help"]) == 0
    out = capsys.readouterr().out
    for flag in ("--model", "--tp", "--batch", "--profile", "--json", "--csv"):
        assert flag in out
    assert "hockney" in out


def test_no_solver_is_loaded():
    lines = [f"{command} {BASE}".split() for command in COMMANDS]
    code = f"import sys; from planner.cli.app import run; codes = [run(line) for line in {lines!r}]; assert 'ortools' not in sys.modules; sys.exit(max(codes))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_degree_that_pays_and_does_not_fit_is_told_so(capsys):
    assert run(["scaling", "--model", "llama-3.1-8b", "--gpu", "t4-16gb", "--tp", "1,2,4"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " at " in line or "fastest" in line]
    assert [line for line in lines if "TP2 is" in line and line.endswith("it does not fit or is not legal")]
    assert [line for line in lines if "TP4" in line and "does not fit" not in line]
