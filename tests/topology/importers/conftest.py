"""Files in the shapes of the tools' own output, written for these tests, and a short way to import them."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.catalog.gpus import gpu as gpu_named
from planner.topology.importers.completing import Assumptions
from planner.topology.importers.facts import NicFacts
from planner.topology.importers.importing import Imported, SourceFile, import_topology

INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture
def text_of_input():
    """Text of an input file by name."""
    return lambda name: (INPUTS / name).read_text(encoding="utf-8")


@pytest.fixture
def imported(text_of_input):
    """Import input files by name; keywords as those of the command."""

    def run(*names: str, kind: str = "auto", gpu: str | None = None, gpus: int | None = None, nics=None, fabric=None, **others) -> Imported:
        files = [SourceFile(name, text_of_input(name)) for name in names]
        facts = NicFacts(*nics) if nics is not None else None
        assumptions = Assumptions(gpu_named(gpu) if gpu is not None else None, gpus, facts, fabric)
        return import_topology(kind, files, assumptions=assumptions, **others)

    return run


def codes(found: Imported) -> set[str]:
    """Codes of everything told about an import."""
    return {item.code for item in found.diagnostics}
