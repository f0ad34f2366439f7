"""Benchmark files -> runs: what kind of file it is, and how it is read."""

from __future__ import annotations

from planner.calibrate.nccl_json import read_nccl_json
from planner.calibrate.nccl_text import read_nccl_text
from planner.calibrate.runs import Run
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.source_text import display_name, read_bounded


def read_benchmark(path: str) -> tuple[Run, ...]:
    """Runs in the file at `path` (`-` = standard input): what nccl-tests prints, or its JSON.

    Raises
    ------
    PlannerError
        When the file cannot be read, is binary, or holds no run.
    """
    name = display_name(path)
    data = read_bounded(path, "give one run a file, without the debug output of all ranks")
    if b"\0" in data[: 2**20]:
        hint = "give the text that nccl-tests printed, saved as UTF-8"
        raise PlannerError([Diagnostic("BINARY_FILE", "is a binary file, or text in UTF-16", hint, place=Place(name))])
    # Logs hold whatever other programs wrote beside the table; a byte that is no UTF-8 spoils its own line only.
    return read_runs(data.decode("utf-8-sig", errors="replace"), name)


def read_runs(text: str, file: str) -> tuple[Run, ...]:
    """Runs in the text of a benchmark file.

    Raises
    ------
    PlannerError
        NO_BENCHMARK_ROWS or NOT_JSON.
    """
    begin = text.lstrip()[:1]
    return read_nccl_json(text, file) if begin == "{" else read_nccl_text(text, file)
