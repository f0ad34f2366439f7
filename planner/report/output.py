"""Files that a user names for an answer."""

from __future__ import annotations

import os
from pathlib import Path

from planner.diagnostics import Diagnostic, PlannerError


def write_output(output: Path, content: bytes) -> None:
    """Write an answer to a file.

    Raises
    ------
    PlannerError
        OUTPUT_NOT_WRITABLE in place of what the system says.
    """
    try:
        output.write_bytes(content)
    except OSError as error:
        raise _refusal(output, error.strerror or str(error)) from error


def check_output(output: Path | None) -> None:
    """Refuse a file that cannot be written before anything is worked out for it; None asks for no file.

    Raises
    ------
    PlannerError
        OUTPUT_NOT_WRITABLE.
    """
    if output is None:
        return
    if output.is_dir():
        raise _refusal(output, "it is a folder")
    folder = output.parent
    if not folder.is_dir():
        raise _refusal(output, f"there is no folder {folder}")
    if not os.access(output if output.exists() else folder, os.W_OK):
        raise _refusal(output, "it may not be written")


def _refusal(output: Path, why: str) -> PlannerError:
    hint = "name a file in a folder that exists and may be written"
    return PlannerError([Diagnostic("OUTPUT_NOT_WRITABLE", f"cannot write {output}: {why}", hint)])
