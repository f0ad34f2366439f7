"""The interface for programs: typed results, a light import, and documented examples that run."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import planner

ROOT = Path(__file__).parents[1]
SHIPPED = str(ROOT / "problems/two_node_h100.yaml")


@pytest.fixture(scope="module")
def solution():
    return planner.solve(SHIPPED)


def test_importing_planner_imports_nothing_else():
    code = (
        "import sys; before = set(sys.modules); import planner; dir(planner); planner.__version__; "
        "new = {name for name in set(sys.modules) - before if name.partition('.')[0] not in sys.stdlib_module_names}; "
        "assert new == {'planner'}, new"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_everything_named_is_there():
    assert all(getattr(planner, name) is not None for name in planner.__all__)
    with pytest.raises(AttributeError, match="no attribute 'unicorn'"):
        planner.unicorn  # noqa: B018


def test_functions_share_their_names_with_rooms(solution):
    import planner.audit.audit
    from planner.solve import answer

    assert answer.solve is planner.solve.answer.solve
    assert planner.solve(solution.problem).plan == solution.plan
    assert planner.audit(SHIPPED, solution).ok


def test_a_solution_is_what_the_command_answers(solution, capsys):
    from planner.cli.app import run

    assert run(["solve", SHIPPED, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(solution.plan.model_dump_json())
    assert (solution.status, solution.cost_per_hour, solution.gpus_used) == ("optimal", 24.0, 8)
    assert "CROSS_NODE_TP" in "\n".join(solution.explain("tp16"))


def test_loading_takes_overrides():
    loaded = planner.load(Path(SHIPPED), ["deployments.chat.workload.concurrency=64"])
    assert loaded.problem.deployments[0].workload.concurrency == 64
    assert repr(loaded).startswith("<LoadedProblem two-node-h100: a valid problem")
    with pytest.raises(planner.PlannerError) as caught:
        planner.load("no-such-file.yaml")
    assert caught.value.diagnostics[0].code == "FILE_NOT_FOUND"
    with pytest.raises(planner.PlannerError):
        planner.solve(loaded, ["objective=gpus"])


def test_an_audit_tells_what_is_wrong(solution, tmp_path):
    wrong = solution.plan.model_copy(update={"gpus_used": 9})
    report = planner.audit(SHIPPED, wrong)
    assert not report.ok
    assert len(report) == len(list(report)) >= 1
    assert report.diagnostics[0].code in repr(report)
    path = tmp_path / "plan.json"
    path.write_text(solution.plan.model_dump_json())
    assert planner.audit(planner.load(SHIPPED), path).ok


def test_what_ifs_have_names_rows_and_frames():
    found = planner.what_if(
        SHIPPED, {"twice": {"load": "x2"}, "tight": {"deployments.chat.slo.tpot": "1ms"}}, grid={"load": ["x1", "x3"]}, max_load="chat"
    )
    assert len(found) == 4
    assert found["twice"].answer.status == "optimal"
    assert found["tight"].answer.status == "infeasible"
    assert found["tight"].difference is None
    assert found.questions[0].value > 32
    assert list(found.frame()["scenario"]) == ["as it is", "twice", "tight", "load=x1", "load=x3"]
    assert "twice: optimal" in str(found)
    with pytest.raises(planner.PlannerError) as caught:
        planner.what_if(SHIPPED, [{"load": "x2"}], jobz=3)
    assert caught.value.diagnostics[0].code == "OPTION_UNKNOWN"


def test_results_show_themselves_in_a_notebook(solution):
    found = planner.what_if(SHIPPED, [{"load": "x2"}])
    for result in (solution, planner.audit(SHIPPED, solution), found):
        html = result._repr_html_()
        assert html.startswith("<table>")
        assert html.count("<tr>") == html.count("</tr>")
        assert len(repr(result)) < 200
    assert "TP8 on h100-sxm-80gb" in solution._repr_html_()


def test_names_from_a_file_are_escaped_in_html():
    from planner.results import html_table

    assert "<script>" not in html_table([{"name": "<script>"}], "<script>")


@pytest.mark.parametrize("page", ["docs/python-api.md"])
def test_documented_examples_run(page, tmp_path):
    """Blocks of Python in the page are doctests; they run one after another, from the repository's root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 4
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {"tmp_path": tmp_path}, page, page, 0)
    assert test.examples
    here = Path.cwd()
    os.chdir(ROOT)
    try:
        told: list[str] = []
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    finally:
        os.chdir(here)
    assert result.failed == 0, "".join(told)
