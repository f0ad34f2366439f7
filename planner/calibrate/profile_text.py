"""A profile as the YAML file that problems name: quantities with their units, to six digits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from planner.diagnostics import Diagnostic, PlannerError
from planner.problem.profile_document import Collective, Constants, GpuProfile, LinkProfile, ProfileDocument

HEADER = "# Links and collectives as they were measured. A problem takes it with `profile: this-file.yaml`, a command with `--profile`.\n"


def profile_text(document: ProfileDocument) -> str:
    """Text of the profile file; reading it gives the document again, to the digits that are written."""
    return HEADER + "\n".join(_lines(document)) + "\n"


def _lines(document: ProfileDocument) -> Iterator[str]:
    yield f"name: {quoted(document.name)}"
    if document.description:
        yield f"description: {quoted(document.description)}"
    yield f"base: {document.base}"
    if document.links:
        yield "links:"
    for name, entry in document.links.items():
        yield f"  {quoted(name)}:"
        yield from _link(entry)
    if document.gpus:
        yield "gpus:"
    for name, reached in document.gpus.items():
        yield f"  {quoted(name)}:"
        yield from _gpu(reached)


def _link(entry: LinkProfile) -> Iterator[str]:
    yield f"    source: {quoted(entry.source)}"
    for name, constants in (("hockney", entry.hockney), ("calibrated", entry.calibrated)):
        if constants is not None and (written := _constants(constants)):
            yield f"    {name}: {{{written}}}"
    if entry.collectives:
        yield "    collectives:"
    for collective in entry.collectives:
        yield from _collective(collective)


def _constants(constants: Constants) -> str:
    parts = []
    if constants.alpha is not None:
        parts.append(f"alpha: {seconds(constants.alpha)}")
    if constants.bandwidth is not None:
        parts.append(f"bandwidth: {bandwidth(constants.bandwidth)}")
    return ", ".join(parts)


def _collective(collective: Collective) -> Iterator[str]:
    yield f"      - operation: {collective.operation}"
    yield f"        library: {quoted(collective.library)}"
    if collective.version:
        yield f"        version: {quoted(collective.version)}"
    yield f"        form: {collective.form}"
    yield f"        c0: {seconds(collective.c0)}"
    yield f"        alpha: {seconds(collective.alpha)}"
    if collective.ranks_inside != 1:
        yield f"        ranks_inside: {collective.ranks_inside}"
    if collective.held_out is not None:
        yield f"        held_out: {collective.held_out:.4f}"
    yield "        groups:"
    for group in collective.groups:
        yield f"          - ranks: {group.ranks}"
        yield "            pieces:"
        for piece in group.pieces:
            below = "" if piece.below is None else f"below: {size(piece.below)}, "
            speed = "" if piece.bandwidth is None else f", bandwidth: {bandwidth(piece.bandwidth)}"
            yield f"              - {{{below}last: {size(piece.last)}, start: {seconds(piece.start)}{speed}}}"


def _gpu(reached: GpuProfile) -> Iterator[str]:
    yield f"    source: {quoted(reached.source)}"
    if reached.memory_bandwidth is not None:
        yield f"    memory_bandwidth: {bandwidth(reached.memory_bandwidth)}"
    if reached.flops:
        yield f"    flops: {{{', '.join(f'{dtype}: {value / 1e12:.6g}TFLOP/s' for dtype, value in reached.flops.items())}}}"


def quoted(text: str) -> str:
    """Text in double quotes, as YAML and JSON both read it."""
    import json

    return json.dumps(text, ensure_ascii=False)


def seconds(value: float) -> str:
    """Time in microseconds."""
    return f"{value * 1e6:.6g}us"


def bandwidth(value: float) -> str:
    """Bandwidth in GB/s."""
    return f"{value / 1e9:.6g}GB/s"


def size(value: float) -> str:
    """Bytes in the largest binary unit that leaves a whole number."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= scale and value % scale == 0:
            return f"{value / scale:.0f}{unit}"
    return f"{value:.0f}B"


def write_profile(document: ProfileDocument, output: Path) -> None:
    """Write a profile to a file.

    Raises
    ------
    PlannerError
        OUTPUT_NOT_WRITABLE.
    """
    try:
        output.write_text(profile_text(document), encoding="utf-8")
    except OSError as error:
        message = f"cannot write {output}: {error.strerror or error}"
        hint = "name a file in a folder that exists and may be written"
        raise PlannerError([Diagnostic("OUTPUT_NOT_WRITABLE", message, hint)]) from error
