"""What nccl-tests prints -> runs: every version's columns, every launcher's prefixes, runs cut short, broken off or printed into one another."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from planner.calibrate.log_lines import Line, read_lines
from planner.calibrate.nccl_rows import Columns, OpenRow, open_row, read_columns, times_processor
from planner.calibrate.runs import PROGRAMS, Device, Row, Run
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity

MOST_LINES: Final = 150_000
MOST_ROWS: Final = 20_000
MOST_DEVICES: Final = 100_000

# Words of the lines that say something about a run; most lines of a log do not.
_TELLING: Final = ("nThread", "Rank", "Avg bus", "failure", "ut of memory", "unhandled", "_perf", "nccl-library", "NCCL version")
_OPTIONS: Final = re.compile(r"nThread \d+ nGpus \d+ minBytes", re.ASCII)
_DEVICE: Final = re.compile(
    r"Rank\s+(\d{1,7})\s+(?:Group\s+\d{1,7}\s+)?(?:Pid\s+\d{1,10}\s+)?on\s+(\S{1,255})\s+device\s+(\d{1,4})\s+\[[^\]]{1,40}\]\s*(.{0,200})",
    re.ASCII,
)
_PROGRAM: Final = re.compile(r"(?<![A-Za-z0-9])([a-z_]{3,30})_perf\b", re.ASCII)
_LIBRARY: Final = re.compile(r"(?:nccl-library=(\d{4,6})|NCCL version (\d{1,2}(?:\.\d{1,3}){1,2}))", re.ASCII)
_AVERAGE: Final = re.compile(r"Avg bus bandwidth\s*:\s*(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
# A row cut before its type, as the last one of a truncated log is.
_BEGUN: Final = re.compile(r"\s*\d{1,18}(?:\s+\d{1,18})?\s*", re.ASCII)
_FAILURE: Final = re.compile(r"(NCCL failure|Test failure|CUDA failure|out of memory|unhandled (?:cuda|system) error)", re.IGNORECASE)


@dataclass
class _Open:
    """A run as far as it has been read."""

    line: int
    program: str | None
    version: str = ""
    rows: list[Row] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    columns: Columns | None = None
    starts: int = 0
    cut: int = 0
    failure: str = ""
    average: float | None = None
    ended: bool = False
    processor: bool = False
    open_row: OpenRow | None = None

    def close_row(self) -> None:
        """Take in the open row, as far as it goes."""
        if self.open_row is None:
            return
        row = self.open_row.row()
        self.cut += not self.open_row.whole
        if row is not None:
            self.rows.append(row)
        self.open_row = None


class _Stream:
    """Lines of one rank (or of all, where the launcher does not mark them)."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.runs: list[_Open] = []
        self.program: str | None = None

    def run(self, line: int, *, new: bool = False) -> _Open:
        """The run that a line belongs to; a new one where the last has rows already and `new` is asked, or has ended."""
        last = self.runs[-1] if self.runs else None
        if last is None or last.ended or (new and (last.rows or last.open_row)):
            if last is not None:
                last.close_row()
            last = _Open(line, self.program, last.version if last is not None else "")
            self.program = None
            self.runs.append(last)
        return last

    def take(self, line: Line) -> bool:
        """Read one line; tells whether a row begins in it."""
        text, number = line.text, line.number
        if "busbw" in text and (columns := read_columns(text)) is not None:
            run = self.run(number, new=True)
            run.close_row()
            run.columns, run.processor = columns, times_processor(text)
        elif (row := open_row(text, number, self._columns())) is not None:
            run = self.run(number)
            run.close_row()
            run.open_row = row
            if row.whole:
                run.close_row()
            return True
        elif self.runs and (pending := self.runs[-1].open_row) is not None and pending.takes(text):
            if pending.whole:
                self.runs[-1].close_row()
        elif any(word in text for word in _TELLING):
            self._heading(text, number)
        elif self.runs and self.runs[-1].rows and _BEGUN.fullmatch(text):
            self.runs[-1].cut += 1
        return False

    def _columns(self) -> Columns | None:
        """Columns of the table that is being read."""
        return self.runs[-1].columns if self.runs and not self.runs[-1].ended else None

    def _heading(self, text: str, number: int) -> None:
        if _OPTIONS.search(text):
            self.run(number, new=True).starts += 1
        elif (device := _DEVICE.search(text)) is not None:
            run = self.run(number, new=True)
            if len(run.devices) < MOST_DEVICES:
                rank, host, index, name = device.groups()
                run.devices.append(Device(int(rank), host, int(index), name.strip()))
        elif (average := _AVERAGE.search(text)) is not None and self.runs:
            self.runs[-1].close_row()
            self.runs[-1].average = float(average.group(1)) * 1e9
            self.runs[-1].ended = True
        elif _FAILURE.search(text):
            run = self.run(number)
            run.failure = run.failure or text.strip()[:120]
        else:
            self._names(text)

    def _names(self, text: str) -> None:
        last = self.runs[-1] if self.runs and not self.runs[-1].ended else None
        if (library := _LIBRARY.search(text)) is not None:
            code, version = library.groups()
            (last or self.run(0)).version = version or version_of(int(code))
        if "concluded" in text:
            return
        for program in _PROGRAM.findall(text):
            if program in PROGRAMS:
                if last is not None and not last.rows and last.program is None:
                    last.program = f"{program}_perf"
                else:
                    self.program = f"{program}_perf"


def version_of(code: int) -> str:
    """Version that a NCCL version code stands for: 23102 is 2.31.2, 2804 was 2.8.4."""
    if code < 10_000:
        return f"{code // 1000}.{code % 1000 // 100}.{code % 100}"
    return f"{code // 10_000}.{code % 10_000 // 100}.{code % 100}"


def read_nccl_text(text: str, file: str) -> tuple[Run, ...]:
    """Runs in the output of nccl-tests.

    Raises
    ------
    PlannerError
        NO_BENCHMARK_ROWS, saying what the file holds instead; FILE_TOO_LARGE with more lines than any run prints.
    """
    if text.count("\n") > MOST_LINES:
        hint = "give the output of rank 0, without NCCL_DEBUG=INFO"
        raise PlannerError([Diagnostic("FILE_TOO_LARGE", f"has more than {MOST_LINES:,} lines", hint, place=Place(file))])
    streams: dict[str, _Stream] = {}
    rows = 0
    for line in read_lines(text):
        rows += streams.setdefault(line.stream, _Stream(file)).take(line)
        if rows > MOST_ROWS:
            break
    opened = [run for stream in streams.values() for run in stream.runs]
    for run in opened:
        run.close_row()
    runs = tuple(_closed(run, file) for run in sorted(opened, key=lambda run: run.line) if run.rows)
    if not runs:
        raise PlannerError([_nothing(opened, file)])
    return runs


def _nothing(opened: list[_Open], file: str) -> Diagnostic:
    failure = next((run.failure for run in opened if run.failure), "")
    if opened and (failure or any(run.starts or run.devices or run.columns for run in opened)):
        twice = any(_twice(run) for run in opened)
        message = "the run printed its header and no times" + (f": {failure}" if failure else "")
        hint = "two runs were printed into one another; build the tests with MPI=1" if twice else "run it again and keep its whole output"
        return Diagnostic("NO_BENCHMARK_ROWS", message, hint, place=Place(file))
    if any(run.cut for run in opened):
        message = "rows begin in it, and the times of none are whole"
        return Diagnostic("NO_BENCHMARK_ROWS", message, "run it again and keep its whole output", place=Place(file))
    hint = "give the output of all_reduce_perf or another program of nccl-tests, or its JSON (-J)"
    return Diagnostic("NO_BENCHMARK_ROWS", "no line of it is a row of nccl-tests", hint, place=Place(file))


def _twice(run: _Open) -> bool:
    ranks = [device.rank for device in run.devices]
    return run.starts > 1 or len(set(ranks)) < len(ranks)


def _closed(run: _Open, file: str) -> Run:
    place = Place(file, run.line or None)
    notes: list[Diagnostic] = []

    def note(code: str, message: str, hint: str, severity: Severity = Severity.WARNING) -> None:
        notes.append(Diagnostic(code, message, hint, severity, place))

    if run.failure:
        note(
            "RUN_BROKE_OFF",
            f"the run broke off after {len(run.rows)} sizes: {run.failure}",
            "the sizes before are used; raise the limit and run again",
        )
    elif run.cut:
        note(
            "ROW_CUT_SHORT", f"{run.cut} row{'s' if run.cut > 1 else ''} cut short: what is whole of them is used", "keep the whole output"
        )
    if _twice(run):
        note(
            "RUNS_INTERLEAVED",
            "two runs were printed into one another: rank 0 comes twice",
            "build the tests with MPI=1 to time ranks of several nodes",
        )
    if run.processor:
        note("PROCESSOR_TIMES", "the times are the processor's, not the operation's", "run it again without -C", Severity.ERROR)
    devices = run.devices if not _twice(run) else run.devices[: len({device.rank for device in run.devices})]
    return Run(
        file, run.line or run.rows[0].line, tuple(run.rows), tuple(devices), run.program, "nccl", run.version, run.average, tuple(notes)
    )
