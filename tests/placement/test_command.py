"""The command: exit codes, one JSON document, the optimum beside the placement, and no solver for a file by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.app import run

ROOT = Path(__file__).parents[2]
PROBLEM = str(ROOT / "problems" / "two_node_h100.yaml")


def written(folder, text, name="placement.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_legal_placement_answers_zero(tmp_path, capsys):
    """The optimum is as cheap."""
    assert run(["validate", PROBLEM, written(tmp_path, "{tp: 8, ranks: ['h100-01:[0-7]']}")]) == 0
    shown = capsys.readouterr().out
    assert "can run: 0 errors" in shown
    assert "this placement costs as little" in shown
    assert "time per token" in shown


def test_a_dearer_placement_answers_zero_and_says_what_is_saved(tmp_path, capsys):
    """TP8 x PP2 on both nodes costs twice as much: no error."""
    assert run(["validate", PROBLEM, written(tmp_path, "{tp: 8, pp: 2, ranks: ['h100-[01-02]']}")]) == 0
    shown = capsys.readouterr().out
    assert "saves     $24.00/h, 50%" in shown
    assert "stop  chat 0" in shown
    assert "start chat 0" in shown


def test_a_wrong_placement_answers_one_with_every_fault(tmp_path, capsys):
    """Place, figure, code and repair of each."""
    path = written(tmp_path, "tp: 3\nranks:\n  - h100-01:0\n  - h100-01:0\n  - h100-07:1\n")
    assert run(["validate", PROBLEM, path]) == 1
    shown = capsys.readouterr().out
    for code in ("HEADS_NOT_DIVISIBLE", "GPU_USED_TWICE", "NODE_UNKNOWN", "WEIGHTS_DO_NOT_FIT"):
        assert f"[{code}]" in shown
    assert f"{path}:5:5: deployments.chat.replicas.0.ranks.2" in shown


def test_one_json_document(tmp_path, capsys):
    """Verdict, diagnostics with places, the placement's figures, the optimum and the difference."""
    path = written(tmp_path, "{tp: 8, pp: 2, ranks: ['h100-[01-02]']}")
    assert run(["validate", PROBLEM, path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format_version"] == 1
    assert document["status"] == "valid"
    assert document["kind"] == "yaml"
    assert document["saves_per_hour"] == pytest.approx(24.0)
    assert document["placement"]["cost_per_hour"] == pytest.approx(48.0)
    assert document["optimum"]["gpus_used"] == 8
    assert document["difference"]["gpus_before"] == 16
    assert {"code", "line", "column", "file", "path", "hint", "message", "severity"} <= set(document["diagnostics"][0])


def test_warnings_fail_when_asked(tmp_path):
    """An option that is not read is a warning."""
    path = written(tmp_path, "vllm serve llama-3.1-405b -tp 8 --kv-cache-dtype fp8 --max-model-len 4096 --what-is-this 3\n", "run.sh")
    assert run(["validate", PROBLEM, path, "--hosts", "h100-01"]) == 0
    assert run(["validate", PROBLEM, path, "--hosts", "h100-01", "--fail-on-warning"]) == 1


def test_hosts_and_degrees_may_be_said_beside_the_file(tmp_path):
    """A hostfile without degrees, and the kind given by another of its names."""
    path = written(tmp_path, "h100-01\n" * 8, "hosts.txt")
    assert run(["validate", PROBLEM, path]) == 1
    assert run(["validate", PROBLEM, path, "--as", "slurm", "--degrees", "tp8"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--as", "nonsense"], "WRONG_CHOICE"),
        (["--as", "plan"], "PLAN_NOT_READABLE"),
        (["--degrees", "wide"], "SHAPE_NOT_UNDERSTOOD"),
        (["--hosts", "h100-[3-1]"], "HOST_LIST_INVALID"),
    ],
)
def test_wrong_options_are_diagnostics(arguments, code, tmp_path, capsys):
    """Never a traceback."""
    path = written(tmp_path, "deployment: chat\ntp: 8\n")
    assert run(["validate", PROBLEM, path, *arguments]) == 1
    assert f"[{code}]" in capsys.readouterr().err


def test_options_of_a_placement_need_one(capsys):
    """`--as` alone is a slip."""
    assert run(["validate", PROBLEM, "--as", "yaml"]) == 1
    assert "[PLACEMENT_MISSING]" in capsys.readouterr().err
    assert run(["validate", PROBLEM, "missing.yaml"]) == 1
    assert "[FILE_NOT_FOUND]" in capsys.readouterr().err


def test_a_file_by_itself_never_loads_the_solver():
    """Neither does reading and judging a placement: only the optimum asks for it."""
    code = (
        "import sys; from planner.cli.app import run; rc = run(['validate', sys.argv[1]]);"
        "import planner.placement.judge, planner.placement.kinds;"
        "sys.exit(rc or any(name.startswith('ortools') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code, PROBLEM], cwd=ROOT, check=False, capture_output=True).returncode == 0


def test_a_plan_without_replicas_is_no_placement_that_can_run(tmp_path, capsys):
    plan = tmp_path / "plan.json"
    assert run(["solve", PROBLEM, "--set", "deployments.chat.slo.tpot=1ms", "-o", str(plan), "-q"]) == 3
    capsys.readouterr()
    assert run(["validate", PROBLEM, str(plan)]) == 1
    shown = capsys.readouterr().out
    assert "refused: 1 error" in shown
    assert "the plan is infeasible and places nothing" in shown
