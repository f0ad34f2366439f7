"""`planner init`: a commented problem and topology to start from."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError

FILES = {"problem.yaml": "problem.yaml", "topology.yaml": "topology.yaml"}


def init(directory: Path = Path(), /) -> int:
    """Write a commented problem and topology into a folder; existing files are never overwritten.

    Parameters
    ----------
    directory
        Folder to write into; made when it does not exist.
    """
    there = [directory / name for name in FILES if (directory / name).exists()]
    if there:
        raise PlannerError(
            Diagnostic("FILE_EXISTS", f"{path} exists already", "name another folder, or move the file away") for path in there
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, template in FILES.items():
            text = resources.files("planner.cli").joinpath("templates", template).read_text(encoding="utf-8")
            (directory / name).write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {directory / name}\n")
    except OSError as error:
        message = f"cannot write into {directory}: {error.strerror or error}"
        raise PlannerError([Diagnostic("OUTPUT_NOT_WRITABLE", message, "name a folder that may be written")]) from error
    sys.stdout.write(f"next: planner solve {directory / 'problem.yaml'}\n")
    return ExitCode.ANSWERED
