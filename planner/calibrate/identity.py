"""Which operation a run timed, among how many ranks on how many nodes: from what it prints, not from what is said about it.

busbw / algbw is 2 (n - 1) / n for an all-reduce and (n - 1) / n for all-gather, reduce-scatter and all-to-all, so the bandwidths tell how many ranks took part;
size / (count x element) tells it exactly for the latter three. Both beat a header or a file name that says something else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from planner.calibrate.runs import ELEMENT_BYTES, MODELLED, PROGRAMS, Row, Run
from planner.catalog.gpus import Gpu, gpu
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity

MOST_RANKS: Final = 1_000_000
# Ranks that one node is taken to hold where nothing says how many nodes there were.
USUAL_NODE: Final = 8
# Bandwidths that allow numbers of ranks this far apart tell nothing.
MOST_SPREAD: Final = 2
_SAID_RANKS: Final = re.compile(r"(?<!\d)(\d{1,6})[ _-]?(?:x[ _-]?)?gpus?(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Identity:
    """What a run is: `operation`, `ranks`, `nodes` (None = not known), the GPU where the header names one, and how each was learnt.

    `learnt` and `assumed` are sentences; `warnings` contradictions.
    """

    operation: str
    ranks: int
    nodes: int | None
    gpu: Gpu | None
    learnt: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


@dataclass
class _Findings:
    learnt: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)


def identify(run: Run, *, operation: str | None = None, ranks: int | None = None, nodes: int | None = None) -> Identity:
    """Operation, ranks and nodes of a run; what is given counts before what is found, and contradictions are told.

    Raises
    ------
    PlannerError
        OPERATION_NOT_MODELLED, OPERATION_UNKNOWN, RANKS_UNKNOWN or ONE_RANK.
    """
    found = _Findings()
    rows = [row for row in run.rows if row.size > 0 and row.seconds]
    place = Place(run.file, run.line)
    if not rows:
        message = "every row of the run is empty or failed its check"
        raise PlannerError([Diagnostic("NO_BENCHMARK_ROWS", message, "run it with sizes above 0 and mend what fails", place=place)])
    name = operation or _operation(run, rows, found, place)
    if name not in MODELLED:
        message = f"the planner has no form for {name}"
        raise PlannerError([Diagnostic("OPERATION_NOT_MODELLED", message, f"time one of {', '.join(MODELLED)}", place=place)])
    count = ranks or _ranks(run, rows, name, found, place)
    if count < 2:
        message = "a single rank took part: nothing crossed a link"
        hint = "start it with -g 8, or under MPI with tests built with MPI=1"
        raise PlannerError([Diagnostic("ONE_RANK", message, hint, place=place)])
    part = _gpu(run, found)
    return Identity(
        name,
        count,
        nodes or _nodes(run, count, part, found),
        part,
        tuple(found.learnt),
        tuple(found.assumed),
        tuple(found.warnings),
    )


def _operation(run: Run, rows: Sequence[Row], found: _Findings, place: Place) -> str:
    if run.program is not None:
        found.learnt.append(f"{run.program} ran")
        return PROGRAMS[run.program.removesuffix("_perf")]
    row = rows[-1]
    ratio = _ratio(rows)
    whole = row.size == row.count * ELEMENT_BYTES[row.element]
    in_place_unchecked = all(
        len(each.timings) == 2 and each.timings[0].wrong is not None and each.timings[1].wrong is None
        for each in rows
        if len(each.timings) == 2
    ) and any(len(each.timings) == 2 for each in rows)
    reduced = row.reduction not in {None, "none"}
    if reduced and whole and in_place_unchecked:
        # Send and receive prints a reduction it does not do; only it leaves the in-place half unchecked.
        found.learnt.append("send_receive: the in-place half is not checked")
        return "send_receive"
    if reduced and whole and (row.root is None or row.root < 0):
        if ratio is not None and ratio > 1.02:
            found.learnt.append(f"all_reduce: it reduces, and busbw/algbw is {ratio:.3f}")
        else:
            found.assumed.append("all_reduce: it reduces to every rank")
        return "all_reduce"
    if reduced and not whole and (row.root is None or row.root < 0):
        found.learnt.append("reduce_scatter: it reduces, and count is a share of size")
        return "reduce_scatter"
    if not reduced and not whole and (row.root is None or row.root < 0):
        if in_place_unchecked:
            found.learnt.append("all_to_all: count is a share of size, and the in-place half is not checked")
            return "all_to_all"
        checked = any(timing.wrong is not None for each in rows for timing in each.timings)
        known = found.learnt if checked else found.assumed
        known.append("all_gather: count is a share of size" + ("" if checked else "; all_to_all prints the same where nothing is checked"))
        return "all_gather"
    if row.root is not None and row.root >= 0:
        return "reduce" if reduced else "broadcast"
    message = "nothing tells which operation was timed"
    raise PlannerError([Diagnostic("OPERATION_UNKNOWN", message, f"add --operation with one of {', '.join(MODELLED)}", place=place)])


def _ratio(rows: Sequence[Row]) -> float | None:
    """Bus over algorithm bandwidth where it is printed most exactly, None where the bandwidths are too small."""
    timings = [timing for row in rows for timing in row.timings if timing.algorithm.value > 0.0]
    best = min(timings, key=lambda timing: timing.algorithm.within / timing.algorithm.value, default=None)
    return None if best is None else best.bus.value / best.algorithm.value


def _bounds(rows: Sequence[Row]) -> tuple[float, float]:
    """Smallest and largest busbw / algbw that all printed bandwidths allow, by the last digit of each."""
    low, high = 0.0, math.inf
    for row in rows:
        for timing in row.timings:
            below = timing.algorithm.value - timing.algorithm.within
            if below <= 0.0:
                continue
            high = min(high, (timing.bus.value + timing.bus.within) / below)
            low = max(low, (timing.bus.value - timing.bus.within) / (timing.algorithm.value + timing.algorithm.within))
    return low, high


def _ranks(run: Run, rows: Sequence[Row], operation: str, found: _Findings, place: Place) -> int:
    header = max((device.rank for device in run.devices), default=-1) + 1
    exact = _exact_ranks(rows, operation)
    if exact is not None:
        found.learnt.append(f"{exact} ranks: size is {exact} counts")
        _contradict(exact, exact, header, run, found, place)
        return exact
    if operation == "send_receive":
        if header < 2:
            found.assumed.append("2 ranks: one sends to the next, whatever their number")
        return max(header, 2)
    full = 2.0 if operation == "all_reduce" else 1.0
    low, high = _bounds(rows)
    if not 0.0 < high < math.inf or high < low:
        # Rows of two runs, or bandwidths of less than a digit: the most exact row alone.
        low = high = _ratio(rows) or 0.0
    first, last = _between(low, high, full)
    if first <= header <= last and header >= 2:
        agrees = ", and busbw/algbw agrees" if last < MOST_RANKS else ""
        found.learnt.append(f"{header} ranks: the device list{agrees}")
        return header
    if not 1 <= first <= last or last > MOST_SPREAD * first:
        message = "the bandwidths are too small to tell how many ranks took part"
        raise PlannerError([Diagnostic("RANKS_UNKNOWN", message, "add --ranks, or time sizes from 1 MiB on", place=place)])
    count = _likeliest(first, last)
    if first == last:
        found.learnt.append(f"{count} ranks: busbw/algbw is {0.5 * (low + high):.4f}")
    else:
        found.assumed.append(f"{count} ranks: busbw/algbw allows {first} to {last}")
    _contradict(first, last, header, run, found, place)
    return count


def _likeliest(first: int, last: int) -> int:
    """Number of ranks in the middle of what is allowed, in whole nodes of eight, four or two where there are such."""
    middle = 2.0 / (1.0 / first + 1.0 / last)
    whole = (node * round(middle / node) for node in (USUAL_NODE, 4, 2))
    return next((ranks for ranks in whole if first <= ranks <= last), round(middle))


def _between(low: float, high: float, full: float) -> tuple[int, int]:
    """Fewest and most ranks n with full (n - 1) / n between `low` and `high`; the nearest n where rounding leaves none."""
    least, most = (full / max(full - ratio, full / (2.0 * MOST_RANKS)) for ratio in (low, high))
    first, last = max(1, math.ceil(least - 1e-9)), min(MOST_RANKS, math.floor(most + 1e-9))
    if last < first:
        first = last = max(1, round(0.5 * (least + most)))
    return first, last


def _exact_ranks(rows: Sequence[Row], operation: str) -> int | None:
    """Ranks as size over count, where count is a rank's share."""
    if operation not in {"all_gather", "reduce_scatter", "all_to_all"}:
        return None
    shares = {row.size / (row.count * ELEMENT_BYTES[row.element]) for row in rows if row.count > 0}
    share = max(shares, default=0.0)
    exact = len(shares) == 1 and share == round(share) and 2 <= share <= MOST_RANKS
    return int(share) if exact else None


def _contradict(first: int, last: int, header: int, run: Run, found: _Findings, place: Place) -> None:
    """Tell what says another number of ranks than the bandwidths do."""
    counted = f"{first}" if first == last else f"{first} to {last}"
    if header > 0 and not first <= header <= last:
        message = f"the device list ends at rank {header - 1}, the bandwidths are those of {counted} ranks"
        hint = "the bandwidths are believed: they are computed with the ranks that took part"
        found.warnings.append(Diagnostic("RANKS_CONTRADICT", message, hint, Severity.WARNING, place))
    name = run.file.rpartition("/")[2]
    said = _SAID_RANKS.search(name)
    if header <= 0 and said is not None and not first <= int(said.group(1)) <= last:
        message = f"the file's name says {said.group(1)} GPUs, the bandwidths are those of {counted} ranks"
        hint = "the bandwidths are believed: they are computed with the ranks that took part"
        found.warnings.append(Diagnostic("RANKS_CONTRADICT", message, hint, Severity.WARNING, place))


def _gpu(run: Run, found: _Findings) -> Gpu | None:
    names = {device.name for device in run.devices}
    for name in sorted(names):
        try:
            part = gpu(name)
        except PlannerError:
            continue
        found.learnt.append(f"{part.name}: the device list says {name}")
        return part
    return None


def _nodes(run: Run, ranks: int, part: Gpu | None, found: _Findings) -> int | None:
    hosts = {device.host for device in run.devices}
    if len(run.devices) == ranks:
        found.learnt.append(f"{len(hosts)} node{'s' if len(hosts) > 1 else ''}: the device list")
        return len(hosts)
    if part is not None and part.scale_up_domain > USUAL_NODE and ranks <= part.scale_up_domain:
        found.assumed.append(f"one scale-up domain: {ranks} ranks fit into {part.scale_up_domain}")
        return 1
    if not run.devices and ranks <= USUAL_NODE:
        found.assumed.append(f"one node: no device list, and {ranks} ranks fit into one")
        return 1
    node = max((device.index for device in run.devices), default=USUAL_NODE - 1) + 1
    if ranks % node:
        return None
    found.assumed.append(f"{ranks // node} node{'s' if ranks > node else ''} of {node}: the device list is not whole")
    return ranks // node
