from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from planner.catalog.codes import codes
from planner.cli.app import app, run
from planner.cli.command_pages import commands
from planner.cli.reference import page_text
from planner.problem.documents import Problem
from planner.problem.key_pages import KINDS, examples, keys_without_example, parts
from planner.problem.profile_document import ProfileDocument
from planner.topology.document import TopologyDocument

ROOT = Path(__file__).parents[2]
PAGES = ("keys", "codes", "commands")
DOCUMENTS = {"problem": Problem, "topology": TopologyDocument, "profile": ProfileDocument}


@pytest.mark.parametrize("page", PAGES)
def test_the_committed_page_is_what_the_program_says(page):
    committed = (ROOT / f"docs/reference/{page}.md").read_text(encoding="utf-8")
    assert committed == page_text(page), "stale: run `planner reference -o docs/reference`"


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_has_an_example_in_a_file_that_is_valid(kind):
    for data in examples(kind):
        DOCUMENTS[kind].model_validate(data)
    assert keys_without_example(kind) == [], (
        f"add them to planner/problem/examples/{kind}.yaml, or to {kind}_NAME.yaml where they exclude others"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_links_between_parts_lead_somewhere(kind):
    text = page_text("keys")
    headings = {
        re.sub(r"[^a-z0-9_-]+", "", line.lstrip("# ").lower().replace(" ", "-")) for line in text.splitlines() if line.startswith("#")
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
    assert {part.anchor for part in list(parts(kind))[1:]} <= headings


def test_every_code_and_every_command_is_told():
    rows = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", page_text("codes"), flags=re.MULTILINE))
    assert rows == set(codes())
    found = [" ".join(words) for words, _ in commands(app)]
    assert {"planner solve", "planner topology import", "planner reference"} <= set(found)
    assert [line[3:] for line in page_text("commands").splitlines() if line.startswith("## planner")] == found


def test_pages_go_to_a_folder_or_to_standard_output(tmp_path, capsys):
    assert run(["reference", "-o", str(tmp_path / "new")]) == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["codes.md", "commands.md", "keys.md"]
    assert run(["reference", "codes"]) == 0
    assert capsys.readouterr().out == (tmp_path / "new/codes.md").read_text(encoding="utf-8")
    assert run(["reference"]) == 2
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert run(["reference", "codes", "-o", str(tmp_path / "file/below")]) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell, tmp_path, monkeypatch):
    # The command also writes a line into the start-up file of the shell, which here is nobody's.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ZDOTDIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    script = tmp_path / "completion"
    assert run(["--install-completion", "--shell", shell, "--output", str(script)]) == 0
    text = script.read_text(encoding="utf-8")
    assert [name for name in app if not name.startswith("-") and name not in text] == []
    assert "--time-limit" in text
    assert Path.home() == tmp_path


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"([\w./-]+\.md)\s*$", text, flags=re.MULTILINE))
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert named == there


def test_codes_are_the_same_in_every_form(capsys):
    run(["catalog", "codes", "--json"])
    listed = json.loads(capsys.readouterr().out)["codes"]
    text = page_text("codes")
    assert all(f"| `{row['code']}` |" in text for row in listed)
