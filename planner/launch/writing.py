"""A launch directory onto the disk: nothing that is there is lost unless it is asked for."""

from __future__ import annotations

from pathlib import Path

from planner.diagnostics import Diagnostic, PlannerError
from planner.launch.directory import LaunchDirectory


def write_directory(directory: LaunchDirectory, folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write the files of a launch directory into `folder`, which is made where it does not exist.

    With `force` files of the same name are overwritten; others are left as they are.

    Raises
    ------
    PlannerError
        DIRECTORY_NOT_EMPTY, OUTPUT_NOT_WRITABLE.
    """
    try:
        if not force and folder.is_dir() and any(folder.iterdir()):
            message = f"{folder} holds files already"
            raise PlannerError(
                [Diagnostic("DIRECTORY_NOT_EMPTY", message, "name another folder, or overwrite files of the same name: --force")]
            )
        written = []
        for file in directory.files:
            path = folder.joinpath(*file.path.split("/"))
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                path.unlink()  # a link to elsewhere is replaced, not followed
            path.write_text(file.text, encoding="utf-8", newline="\n")
            if file.executable:
                path.chmod(0o755)
            written.append(path)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        message = f"cannot write into {folder}: {reason}"
        raise PlannerError([Diagnostic("OUTPUT_NOT_WRITABLE", message, "name a folder that may be written")]) from error
    return tuple(written)
