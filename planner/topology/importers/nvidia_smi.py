"""`nvidia-smi topo -m` -> the links and interfaces of one node.

Cells are read by token and never by column: tabs get lost, widths vary, CPU lists may be blank. NV# counts bonded NVLinks; PIX and PXB mean the
way of a GPU to its own network interface. The matrix never names the GPU. Meaning of the words: legend of `nvidia-smi topo -m`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from planner.diagnostics import Diagnostic, Place
from planner.topology.importers.facts import NicFacts, NodeFacts, Reading, ScaleUpLinks, note, several, shown, warning
from planner.topology.importers.lines import clean_lines, refusal

KIND: Final = "nvidia-smi"
LARGEST: Final = 2 * 2**20
MOST_GPUS: Final = 128

_LABEL: Final = re.compile(r"[A-Za-z][\w.-]{0,63}")
_GPU: Final = re.compile(r"GPU\d{1,4}")
_CELL: Final = re.compile(r"\s*(NV\d{1,3}|NODE|SYS|PHB|PXB|PIX|SOC|X)(?![a-z=])")
_TOKEN: Final = re.compile(r"NV\d{1,3}|NODE|SYS|PHB|PXB|PIX|SOC|X|OK|CNS|GNS|TNS|NS|DR|U")
_PROMPT: Final = re.compile(r"^\W{0,3}(?:\(\w+\)\s*)?\[?[\w.-]{1,40}@([A-Za-z0-9][A-Za-z0-9.-]{0,63})[: ~#$%\]]")
_PCIE_ONLY: Final = re.compile(r"\btopo\s+-m?p\b|\btopo\s+-mp\b")
_NEAR: Final = frozenset({"PIX", "PXB"})


@dataclass
class _Matrix:
    """Rows as they were read: label -> line and cells; `columns` are the labels of the cells."""

    columns: list[str]
    rows: dict[str, tuple[int, list[str]]]
    second: int | None = None
    host: str | None = None
    pcie_only: bool = False

    def cell(self, row: str, column: str) -> str | None:
        """Cell of a row, None where the row or the cell was lost."""
        found = self.rows.get(row)
        place = self.columns.index(column)
        return found[1][place] if found is not None and place < len(found[1]) else None

    def between(self, one: str, other: str) -> tuple[str | None, str | None]:
        """Both cells between two devices."""
        return self.cell(one, other), self.cell(other, one)


def _cells(text: str) -> list[str]:
    found: list[str] = []
    position = 0
    while match := _CELL.match(text, position):
        found.append(match[1])
        position = match.end()
    return found


def _read_matrix(lines: list[str], file: str) -> _Matrix:
    matrix = _Matrix([], {})
    header: list[str] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.lstrip("#>| \t")
        if not matrix.rows:
            prompt = _PROMPT.match(raw)
            # What is started through a scheduler ran elsewhere.
            matrix.host = prompt[1] if prompt is not None and not re.search(r"\b(?:srun|ssh|kubectl|docker)\b", raw) else matrix.host
            matrix.pcie_only = matrix.pcie_only or _PCIE_ONLY.search(raw) is not None
        label = _LABEL.match(line)
        if label is None or _TOKEN.fullmatch(label[0]):
            continue
        cells = _cells(line[label.end() :]) if line[label.end() : label.end() + 1] in {" ", "\t"} else []
        if not cells:
            if _GPU.fullmatch(label[0]) and not matrix.rows:
                header = _header(line)
            elif label[0] in matrix.rows and _GPU.fullmatch(label[0]) and matrix.second is None:
                matrix.second = number
            continue
        if label[0] in matrix.rows:
            matrix.second = number
            break
        if matrix.second is None and (_GPU.fullmatch(label[0]) or matrix.rows):
            matrix.rows[label[0]] = (number, cells)
    matrix.columns = _columns(header, matrix, file)
    return matrix


def _header(line: str) -> list[str]:
    labels: list[str] = []
    for word in line.split():
        if word in {"CPU", "NUMA", "GPU"} or not _LABEL.fullmatch(word):
            break
        labels.append(word)
    return labels


def _columns(header: list[str], matrix: _Matrix, file: str) -> list[str]:
    """Labels of the columns: the header's, or the rows' own where it is lost."""
    if not matrix.rows:
        raise refusal("MATRIX_NOT_FOUND", "holds no matrix of GPUs", "save the output of `nvidia-smi topo -m`, or name another kind", file)
    columns = header or list(matrix.rows)
    if len(set(columns)) < len(columns):
        raise refusal("MATRIX_UNEVEN", "a column of the matrix is named twice", "save the output of `nvidia-smi topo -m` again", file)
    for label, (line, cells) in matrix.rows.items():
        if len(cells) > len(columns):
            message = f"{label} has {len(cells)} cells for {len(columns)} columns"
            raise refusal("MATRIX_UNEVEN", message, "save the output of `nvidia-smi topo -m` again", file, line)
    return columns


def read_nvidia_smi(text: str, file: str) -> Reading:
    """Read the matrix of `nvidia-smi topo -m`, as pasted.

    Raises
    ------
    PlannerError
        MATRIX_NOT_FOUND, MATRIX_UNEVEN, MATRIX_TRUNCATED, TOO_MANY_GPUS, and those of `clean_lines`.
    """
    matrix = _read_matrix(clean_lines(text, file, LARGEST), file)
    gpus = [label for label in matrix.columns if _GPU.fullmatch(label)]
    if not gpus or len(gpus) > MOST_GPUS:
        raise refusal("TOO_MANY_GPUS", f"names {len(gpus)} GPUs", f"a node has 1 to {MOST_GPUS}", file)
    diagnostics: list[Diagnostic] = []
    counts = _count_links(matrix, gpus, file, diagnostics)
    nics, near = _near_nics(matrix, gpus)
    visible = not matrix.pcie_only
    if not visible:
        diagnostics.append(
            note(
                "NVLINK_HIDDEN", "`topo -mp` shows PCIe only and hides NVLink; the GPU type's usual wiring is taken", "use `topo -m`", file
            )
        )
    lost = [label for label in matrix.columns if label not in matrix.rows]
    if lost:
        diagnostics.append(
            warning("MATRIX_CUT", f"the rows of {shown(lost)} are missing; what others say of them was used", "save the whole output", file)
        )
    if matrix.second is not None:
        diagnostics.append(
            note(
                "SECOND_MATRIX",
                "a second matrix follows; only the first was read",
                "give each matrix a file of its own",
                file,
                matrix.second,
            )
        )
    nic_facts = _nic_facts(nics, near, gpus, matrix, file, diagnostics)
    first = min(line for line, _ in matrix.rows.values())
    hints = (matrix.host,) if matrix.host is not None else ()
    node = NodeFacts(
        None,
        Place(file, first),
        hints=hints,
        gpus=len(gpus),
        scale_up=ScaleUpLinks(len(gpus), "nvlink", counts, visible=visible),
        nics=nic_facts,
    )
    learnt = f"{several(len(gpus), 'GPU')}, {_links_in_words(counts, len(gpus))}; {several(len(nics), 'interface')}" + (
        f", {len(near)} of them next to a GPU" if nics else ""
    )
    return Reading(KIND, file, (node,), learnt=(learnt,), diagnostics=tuple(diagnostics))


def _count_links(matrix: _Matrix, gpus: list[str], file: str, diagnostics: list[Diagnostic]) -> dict[tuple[int, int], int]:
    """Bonded NVLinks between every two GPUs; a row that was cut is filled in from its column."""
    for label in gpus:
        own = matrix.cell(label, label)
        if own is not None and own != "X":
            message = f"{label} meets itself as {own}, not X: a cell was lost"
            raise refusal("MATRIX_UNEVEN", message, "save the output of `nvidia-smi topo -m` again", file, matrix.rows[label][0])
    counts: dict[tuple[int, int], int] = {}
    for first, one in enumerate(gpus):
        for second in range(first + 1, len(gpus)):
            cells = [cell for cell in matrix.between(one, gpus[second]) if cell is not None]
            if not cells:
                message = f"nothing is said between {one} and {gpus[second]}"
                raise refusal("MATRIX_TRUNCATED", message, "save the whole output of `nvidia-smi topo -m`", file)
            links = [int(cell[2:]) if cell.startswith("NV") else 0 for cell in cells]
            if len(set(cells)) > 1:
                message = f"{one} sees {gpus[second]} as {cells[0]} and is seen as {cells[1]}; the lesser is taken"
                diagnostics.append(
                    warning(
                        "MATRIX_NOT_SYMMETRIC", message, "save the output again", file, matrix.rows[one][0] if one in matrix.rows else None
                    )
                )
            if min(links):
                counts[first, second] = min(links)
    return counts


def _near_nics(matrix: _Matrix, gpus: list[str]) -> tuple[list[str], list[str]]:
    """All interfaces, and those next to a GPU."""
    nics = [label for label in matrix.columns if not _GPU.fullmatch(label)]
    return nics, [nic for nic in nics if any(_NEAR & set(matrix.between(gpu, nic)) for gpu in gpus)]


def _nic_facts(
    nics: list[str], near: list[str], gpus: list[str], matrix: _Matrix, file: str, diagnostics: list[Diagnostic]
) -> NicFacts | None:
    if not nics:
        return None
    if not near:
        message = f"none of {several(len(nics), 'interface')} is next to a GPU (no PIX or PXB); all are taken to carry GPU traffic"
        diagnostics.append(note("NICS_NOT_NEAR", message, "give --nics COUNTxSPEED if fewer do", file))
        return NicFacts(len(nics))
    if len(near) < len(nics):
        message = f"{several(len(near), 'interface')} of {len(nics)} are next to a GPU and taken to carry its traffic"
        diagnostics.append(note("NICS_NEAR", message, "give --nics COUNTxSPEED if more do", file))
    alone = [gpu for gpu in gpus if not any(_NEAR & set(matrix.between(gpu, nic)) for nic in near)]
    if alone:
        message = f"{shown(alone)} {'has' if len(alone) == 1 else 'have'} no interface on the same switch: traffic to other nodes crosses the host"
        diagnostics.append(warning("GPU_WITHOUT_NIC", message, "check the cards' slots", file))
    return NicFacts(len(near))


def _links_in_words(counts: dict[tuple[int, int], int], gpus: int) -> str:
    if not counts:
        return "no NVLink between them" if gpus > 1 else "alone"
    values = sorted(set(counts.values()))
    words = "/".join(f"NV{value}" for value in values)
    whole = len(counts) == gpus * (gpus - 1) // 2
    return f"{words} between all of them" if whole else f"{words} between {len(counts)} of {gpus * (gpus - 1) // 2} pairs"


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like such a matrix."""
    return re.search(r"^[#>| \t]*GPU\d+[ \t]+(?:X|NV\d|PIX|PXB|PHB|NODE|SYS|SOC)\b", head, re.MULTILINE) is not None
