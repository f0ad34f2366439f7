"""Files that a user names for an answer."""

from __future__ import annotations

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
        message = f"cannot write {output}: {error.strerror or error}"
        raise PlannerError(
            [Diagnostic("OUTPUT_NOT_WRITABLE", message, "name a file in a folder that exists and may be written")]
        ) from error
