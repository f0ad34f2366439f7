"""Figures: each command's JSON gives rows whose figures are the command's own, and files that are what their names say."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from planner.cli.app import run
from planner.report.plots import rows
from planner.report.plots.drawing import SUFFIXES, page_svg, vega_lite, write_figure
from planner.report.plots.figures import FIGURES, figures_of

ROOT = Path(__file__).parents[2]
MODEL = ["--model", "llama-3.1-70b", "--gpu", "h100-sxm-80gb"]
LOG = "# nThread 1 nGpus 2 minBytes 8 maxBytes 1073741824\n# Rank 0 Group 0 Pid 1 on h device 0 [0x00] NVIDIA H100 80GB HBM3\n# Rank 1 Group 0 Pid 2 on h device 1 [0x01] NVIDIA H100 80GB HBM3\n"


def printed(capsys, *words):
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def documents(capsys, tmp_path):
    """One document a command."""
    lines = [LOG + "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"]
    lines += [f"{8 << n} {2 << n} float sum -1 {10 + (8 << n) / 4e5:.2f} 1 1 0 {10 + (8 << n) / 4e5:.2f} 1 1 0" for n in range(0, 27, 2)]
    log = tmp_path / "log.txt"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    steps = {"comparison": {"rows": [{"model": "m", "gpu": "g", "shape": "TP8", "batch": 8, "measured_s": 0.02, "predicted_s": 0.022}]}}
    problem = str(ROOT / "problems/two_node_h100.yaml")
    return {
        "scaling": printed(capsys, "scaling", *MODEL),
        "regimes": printed(capsys, "regimes", *MODEL),
        "estimate": printed(capsys, "estimate", *MODEL, "--tp", "4,8", "--pp", "1,2"),
        "memory": printed(capsys, "memory", "--model", "llama-3.1-70b", "--gpu", "h100-sxm-80gb,a6000-48gb"),
        "fit": printed(capsys, "fit", str(log), "--operation", "all_reduce"),
        "comparison": steps,
        "pareto": printed(capsys, "solve", problem, "--pareto"),
        "whatif": printed(capsys, "whatif", problem, "--grid", "prices=x1,x2", "--growth", "50%/month"),
    }


def test_every_figure_is_drawn_of_its_command(documents, tmp_path):
    """SVG that is XML with marks in it, PNG that is one, JSON that is the specification."""
    drawn = {}
    for document in documents.values():
        drawn |= {figure.name: (figure, found, document) for figure, found in figures_of(document)}
    assert set(drawn) == {figure.name for figure in FIGURES}
    for name, (_, found, document) in drawn.items():
        specification = vega_lite(document, "x.json", name)
        for suffix in SUFFIXES:
            write_figure(specification, tmp_path / f"{name}{suffix}")
        tree = ET.fromstring((tmp_path / f"{name}.svg").read_text(encoding="utf-8"))
        assert len([part for part in tree.iter() if part.tag.endswith(("path", "rect"))]) >= min(3, len(found))
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) == specification
        assert "var(--ink)" in page_svg(specification)


def test_rows_are_the_commands_figures(documents):
    """Efficiency, memory, cost, times and the front are those of the documents."""
    (answer,) = documents["scaling"]["answers"]
    assert [row["efficiency"] for row in rows.scaling_rows(documents["scaling"])] == [point["efficiency"] for point in answer["points"]]
    first = documents["estimate"]["answers"][0]
    parts = [row for row in rows.layout_rows(documents["estimate"]) if row["layout"] == "TP4"]
    assert sum(row["ms"] for row in parts) == pytest.approx(first["times"]["tpot_s"] * 1e3)
    bubbles = {row["microbatches"]: row["bubble"] for row in rows.bubble_rows(documents["estimate"])}
    assert bubbles[4] == pytest.approx(1 / 5)
    front = list(rows.front_rows(documents["pareto"]))
    assert [row["money"] for row in front] == [point["cost_per_hour"] for point in documents["pareto"]["pareto"]["points"]]
    costs = {row["name"]: row["cost"] for row in rows.scenario_rows(documents["whatif"])}
    assert costs["prices=x2"] == pytest.approx(2 * costs["as it is"])
    months = list(rows.growth_rows(documents["whatif"]))
    assert months[-1]["cost"] is None
    assert all(row["cost"] for row in months[:-1])
    lines = list(rows.link_rows(documents["fit"]))
    assert {row["kind"] for row in lines} == {"measured", "alpha + beta"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("[1]", []),
        ("{}", []),
        ('{"calculator": "scaling"}', []),
        ('{"calculator": "scaling", "answers": [{"points": [{}]}]}', []),
        ('{"scenarios": [1], "questions": 2}', []),
        ("[" * 50_000, []),
        ('{"calculator": "memory", "answers": []}', ["--figure", "smallest"]),
        ('{"calculator": "memory", "answers": []}', ["--figure", "nothing"]),
    ],
)
def test_what_is_no_document_is_refused(text, words, tmp_path, capsys):
    """One sentence with what to give."""
    source = tmp_path / "in.json"
    source.write_text(text, encoding="utf-8")
    assert run(["plot", str(source), "-o", str(tmp_path / "out.svg"), *words]) == 1
    assert capsys.readouterr().err.strip()
    assert not (tmp_path / "out.svg").exists()


def test_other_suffixes_and_places_are_refused(documents, tmp_path, capsys):
    """A file that is no figure, a folder that is not there, no file at all."""
    source = tmp_path / "in.json"
    source.write_text(json.dumps(documents["scaling"]), encoding="utf-8")
    for words in (["-o", str(tmp_path / "out.gif")], ["-o", str(tmp_path / "no" / "out.svg")], []):
        assert run(["plot", str(source), *words]) == 1
        assert capsys.readouterr().err.startswith("error: ")
    assert run(["plot"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(FIGURES)


def test_a_what_if_has_a_page(documents, tmp_path, capsys):
    """Base, scenarios, questions and their curves; a broken document is refused."""
    source, page = tmp_path / "what_if.json", tmp_path / "what_if.html"
    source.write_text(json.dumps(documents["whatif"]), encoding="utf-8")
    assert run(["report", str(source), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    for sentence in [item["sentence"] for item in documents["whatif"]["questions"]] + ["as it is", "prices=x2", "+$24.00"]:
        assert sentence in text
    assert "<svg" in text
    source.write_text(json.dumps({**documents["whatif"], "base": 1}), encoding="utf-8")
    assert run(["report", str(source), "-o", str(page)]) == 1
    assert "PLAN_NOT_READABLE" in capsys.readouterr().err


def test_a_plan_with_a_front_shows_it(documents, tmp_path):
    """The table and the figure of cost against latency."""
    source, page = tmp_path / "plan.json", tmp_path / "plan.html"
    source.write_text(json.dumps(documents["pareto"]), encoding="utf-8")
    assert run(["report", str(source), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "Cost against latency" in text
    assert "<svg" in text
