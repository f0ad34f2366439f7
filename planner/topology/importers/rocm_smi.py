"""`rocm-smi --showtopo` -> the links between the GPUs of one AMD node.

Four blocks (weight, hops, link type, NUMA), any of which may be missing; only the link type is needed. Where hops are printed, XGMI over more than one
hop is no link of the two GPUs' own.
"""

from __future__ import annotations

import re
from typing import Final

from planner.diagnostics import Diagnostic, Place
from planner.topology.importers.facts import NodeFacts, Reading, ScaleUpLinks, several, shown, warning
from planner.topology.importers.lines import clean_lines, refusal

KIND: Final = "rocm-smi"
LARGEST: Final = 2 * 2**20
MOST_GPUS: Final = 128

_TITLE: Final = re.compile(r"\s*=+\s*([A-Za-z][^=]{0,80}?)\s*=+\s*")
_BLOCKS: Final = {"weight between two gpus": "weight", "hops between two gpus": "hops", "link type between two gpus": "type"}
_ROW: Final = re.compile(r"\s*(GPU\d{1,3})\s+((?!GPU)\S.*)")

Rows = dict[str, tuple[int, list[str]]]


def _blocks(lines: list[str]) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    current: Rows | None = None
    for number, line in enumerate(lines, start=1):
        title = _TITLE.fullmatch(line)
        if title is not None:
            name = _BLOCKS.get(" ".join(title[1].lower().split()))
            current = found.setdefault(name, {}) if name is not None else None
            continue
        row = _ROW.fullmatch(line) if current is not None else None
        if row is not None and current is not None:
            current.setdefault(row[1], (number, row[2].split()))
    return found


def read_rocm_smi(text: str, file: str) -> Reading:
    """Read the output of `rocm-smi --showtopo`.

    Raises
    ------
    PlannerError
        LINK_TYPES_MISSING, MATRIX_UNEVEN, TOO_MANY_GPUS, and those of `clean_lines`.
    """
    blocks = _blocks(clean_lines(text, file, LARGEST))
    types = blocks.get("type", {})
    if not types:
        message = "has no block `Link Type between two GPUs`"
        raise refusal("LINK_TYPES_MISSING", message, "save the whole output of `rocm-smi --showtopo`", file)
    gpus = list(types)
    if len(gpus) > MOST_GPUS:
        raise refusal("TOO_MANY_GPUS", f"names {len(gpus)} GPUs", f"a node has 1 to {MOST_GPUS}", file)
    for label, (line, cells) in types.items():
        if len(cells) != len(gpus):
            message = f"{label} has {len(cells)} cells for {len(gpus)} GPUs"
            raise refusal("MATRIX_UNEVEN", message, "save the whole output of `rocm-smi --showtopo`", file, line)
    hops = blocks.get("hops", {})
    diagnostics: list[Diagnostic] = []
    counts: dict[tuple[int, int], int] = {}
    for first, one in enumerate(gpus):
        for second in range(first + 1, len(gpus)):
            there, back = types[one][1][second].upper(), types[gpus[second]][1][first].upper()
            if there != back:
                message = f"{one} sees {gpus[second]} as {there} and is seen as {back}; no XGMI is taken"
                diagnostics.append(warning("MATRIX_NOT_SYMMETRIC", message, "save the output again", file, types[one][0]))
            elif there == "XGMI" and _one_hop(hops, one, second):
                counts[first, second] = 1
    pairs = len(gpus) * (len(gpus) - 1) // 2
    if counts and len(counts) < pairs:
        message = f"XGMI joins {len(counts)} of {pairs} pairs of GPUs only"
        diagnostics.append(warning("XGMI_PARTIAL", message, "check the board; a mesh of some pairs is planned as PCIe", file))
    unknown = {cell for _, cells in types.values() for cell in cells} - {"0", "XGMI", "PCIE", "N/A"}
    if unknown:
        message = f"the link types {shown(sorted(unknown))} are not known and count as PCIe"
        diagnostics.append(warning("LINK_TYPE_UNKNOWN", message, "give --gpu and check the result", file))
    first_line = min(line for line, _ in types.values())
    node = NodeFacts(None, Place(file, first_line), gpus=len(gpus), scale_up=ScaleUpLinks(len(gpus), "xgmi", counts))
    words = "alone" if len(gpus) == 1 else f"XGMI between {len(counts)} of {several(pairs, 'pair')}"
    return Reading(KIND, file, (node,), learnt=(f"{several(len(gpus), 'GPU')}, {words}",), diagnostics=tuple(diagnostics))


def _one_hop(hops: Rows, one: str, second: int) -> bool:
    cells = hops[one][1] if one in hops else []
    return second >= len(cells) or cells[second] == "1"


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like rocm-smi's."""
    return re.search(r"ROCm System Management|Link Type between two GPUs|between two GPUs ={3,}|GPU\[\d+\]\s*:", head) is not None
