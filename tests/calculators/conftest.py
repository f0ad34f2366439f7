"""Calculators asked as a person asks them: by their command lines."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from planner.cli.app import run


@pytest.fixture
def ask(capsys):
    """Run a command line with --json and give its document."""

    def asked(line: str):
        assert run([*line.split(), "--json"]) == 0, capsys.readouterr().err
        captured = capsys.readouterr()
        document = json.loads(captured.out)
        assert document["format_version"] == 1
        return document

    return asked


@pytest.fixture(scope="session")
def figures():
    """Figures of the public paper calculators, each the exact value of its document's own formula."""
    return tomllib.loads((Path(__file__).parents[1] / "cost" / "seed_figures.toml").read_text(encoding="utf-8"))
