"""Promises of the command: exit codes, clean stdout, and what is not imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.app import run

ROOT = Path(__file__).parents[2]
SHIPPED = "problems/two_node_h100.yaml"


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("command", [["--version"], ["--help"], ["validate", SHIPPED], ["catalog", "gpus"], ["schema", "problem"]])
def test_answers_without_the_solver(command):
    """Commands that solve nothing never import the solver."""
    code = f"import sys; from planner.cli.app import run; code = run({command!r}); assert 'ortools' not in sys.modules; sys.exit(code)"
    done = in_a_process(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", [["slove"], ["solve"], ["solve", SHIPPED, "--no-such-option"], ["catalog", "unicorns"]])
def test_usage_errors_end_with_two(command, capsys):
    assert run(command) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_missing_file_is_told(capsys):
    assert run(["solve", "no-such-file.yaml"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no-such-file.yaml" in captured.err


def test_invalid_json_answers_are_one_document(tmp_path, capsys):
    path = tmp_path / "broken.yaml"
    path.write_text("name: x\nname: y\n")
    assert run(["validate", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "invalid"
    assert document["diagnostics"]
    assert all(item["code"] and item["message"] for item in document["diagnostics"])


def test_init_writes_files_that_are_valid_and_never_overwrites(tmp_path, capsys):
    assert run(["init", str(tmp_path / "new")]) == 0
    assert run(["validate", str(tmp_path / "new" / "problem.yaml")]) == 0
    assert run(["init", str(tmp_path / "new")]) == 1
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["gpus", "models", "links", "engines", "codes"])
def test_the_catalog_lists_itself_three_ways(kind, capsys):
    assert run(["catalog", kind]) == 0
    assert capsys.readouterr().out.strip()
    assert run(["catalog", kind, "--csv"]) == 0
    assert capsys.readouterr().out.count("\n") > 1
    assert run(["catalog", kind, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[kind]


def test_a_hyphen_reads_standard_input():
    """A problem may be piped in; its paths are relative to the working folder."""
    text = (ROOT / SHIPPED).read_text(encoding="utf-8").replace("../topologies", "topologies")
    code = "import sys; from planner.cli.app import run; sys.exit(run(['validate', '-']))"
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "two-node-h100" in done.stdout


@pytest.mark.parametrize(
    ("option", "value", "word", "code"),
    [
        ("--time-limit", "5", "--time-limit: `5` has no unit", 2),
        ("--time-limit", "0s", "leaves no time for a plan", 2),
        ("--gap", "2", "--gap: `2` is more than the whole", 2),
        ("--gap", "100%", "no share from 0 to below 1", 2),
        ("--explain", "foo", "--explain: 'foo' is not a shape", 1),
        ("--force", "tp0", "--force: 'tp0' is not a shape", 1),
    ],
)
def test_a_wrong_limit_is_told_with_its_option_before_anything_is_solved(option, value, word, code, capsys):
    assert run(["solve", SHIPPED, option, value]) == code
    captured = capsys.readouterr()
    assert word in captured.err
    assert "solving" not in captured.err


def test_a_gap_may_be_written_in_percent(capsys):
    assert run(["solve", SHIPPED, "--gap", "1%", "-q"]) == 0
    assert "optimal" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "why"), [("nowhere/plan.json", "there is no folder"), (".", "it is a folder")])
def test_a_plan_that_cannot_be_written_is_refused_before_it_is_made(name, why, tmp_path, capsys):
    assert run(["solve", SHIPPED, "-o", str(tmp_path / name)]) == 1
    captured = capsys.readouterr()
    assert why in captured.err
    assert "solving" not in captured.err


def test_a_reader_that_goes_away_or_a_full_disk_ends_without_a_traceback():
    command = f"{sys.executable} -m planner"
    piped = subprocess.run(
        ["bash", "-c", f"{command} catalog codes | head -1; echo ${{PIPESTATUS[0]}}; {command} catalog models > /dev/full; echo $?"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert piped.stdout.splitlines()[-2:] == ["0", "1"]
    assert "cannot be written" in piped.stderr
    assert "Traceback" not in piped.stderr


def test_an_interrupt_while_the_command_is_being_loaded_is_told(monkeypatch, capsys):
    from planner import __main__ as program

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.cli.app.main", interrupted)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
