"""The JSON that nccl-tests writes with -J -> runs; a file that a run left unfinished is read as far as it goes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from planner.calibrate.nccl_text import MOST_ROWS, version_of
from planner.calibrate.runs import ELEMENT_BYTES, FASTEST, LONGEST, PROGRAMS, SHORTEST, Device, Rate, Row, Run, Timing
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity

# Bandwidths are written with six digits after the point [GB/s].
WITHIN: Final = 0.5e3
_PROGRAM: Final = re.compile(r"(?:^|/)([a-z_]{3,30})_perf$", re.ASCII)


def read_nccl_json(text: str, file: str) -> tuple[Run, ...]:
    """The run in a JSON report.

    Raises
    ------
    PlannerError
        NOT_JSON where it is none, NO_BENCHMARK_ROWS where it is no report of nccl-tests or holds no row.
    """
    finished = True
    try:
        report = json.loads(text)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        finished = False
        report = _unfinished(text)
        if report is None:
            message = f"this is not JSON: {error.msg.lower()}" if isinstance(error, json.JSONDecodeError) else "this is not usable JSON"
            line = error.lineno if isinstance(error, json.JSONDecodeError) else None
            raise PlannerError([Diagnostic("NOT_JSON", message, "give the file that -J wrote", place=Place(file, line))]) from None
    results = report.get("results") if isinstance(report, dict) else None
    rows = [row for row in map(_row, results[:MOST_ROWS]) if row is not None] if isinstance(results, list) else []
    if not rows or not isinstance(results, list):
        message = "the report holds no results" if isinstance(results, list) else "this JSON is no report of nccl-tests"
        hint = "give the file that -J wrote, after a whole run"
        raise PlannerError([Diagnostic("NO_BENCHMARK_ROWS", message, hint, place=Place(file))])
    notes: list[Diagnostic] = []
    if not finished:
        message = f"the report ends in the middle, after {len(rows)} sizes"
        notes.append(Diagnostic("RUN_BROKE_OFF", message, "the sizes before are used; run it again", Severity.WARNING, Place(file)))
    lost = len(results) - len(rows)
    if lost:
        notes.append(Diagnostic("ROW_CUT_SHORT", f"{lost} results hold no times", "keep the whole report", Severity.WARNING, Place(file)))
    if any(isinstance(result, dict) and "cpu_time" in json.dumps(result) for result in results[:1]):
        message = "the times are the processor's, not the operation's"
        notes.append(Diagnostic("PROCESSOR_TIMES", message, "run it again without -C", Severity.ERROR, Place(file)))
    code = report.get("nccl_version")
    average = report.get("average_bus_bandwidth")
    return (
        Run(
            file,
            1,
            tuple(rows),
            tuple(_devices(report)),
            _program(report),
            "nccl",
            version_of(code) if isinstance(code, int) and 1000 <= code < 1_000_000 else "",
            _number(average.get("bandwidth"), 1e9) if isinstance(average, dict) else None,
            tuple(notes),
        ),
    )


def _unfinished(text: str) -> dict[str, Any] | None:
    """Report of a run that died: what stands before `results`, and every result that is whole."""
    at = text.find('"results"')
    if at < 0:
        return None
    try:
        report = json.loads(text[:at].rstrip().rstrip(",") + "}")
    except (json.JSONDecodeError, RecursionError, ValueError):
        return None
    decoder = json.JSONDecoder()
    results: list[Any] = []
    start = text.find("{", at)
    while start >= 0 and len(results) < MOST_ROWS:
        try:
            result, end = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError, ValueError):
            break
        results.append(result)
        start = text.find("{", end)
    return {**report, "results": results} if isinstance(report, dict) else None


def _row(result: Any) -> Row | None:
    if not isinstance(result, dict):
        return None
    size, count, element = _whole(result.get("size")), _whole(result.get("count")), result.get("type")
    if size is None or count is None or not isinstance(element, str) or element not in ELEMENT_BYTES:
        return None
    halves = (_timing(result.get(half)) for half in ("out_of_place", "in_place"))
    timings = tuple(timing for timing in halves if timing is not None)
    root = str(result.get("root", "")).strip()
    reduction = result.get("redop")
    number = int(root) if re.fullmatch(r"-?[0-9]{1,6}", root) else None
    return Row(size, count, element, reduction if isinstance(reduction, str) else None, number, timings, 1) if timings else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**60 else None


def _timing(half: Any) -> Timing | None:
    if not isinstance(half, dict):
        return None
    seconds = _number(half.get("time", half.get("cpu_time")), 1e-6)
    algorithm, bus = _number(half.get("alg_bw"), 1e9), _number(half.get("bus_bw"), 1e9)
    if seconds is None or not SHORTEST <= seconds <= LONGEST or algorithm is None or bus is None or max(algorithm, bus) > FASTEST:
        return None
    wrong = _number(half.get("nwrong"), 1.0)
    return Timing(seconds, Rate(algorithm, WITHIN), Rate(bus, WITHIN), None if wrong is None else int(min(wrong, 1e18)))


def _number(value: Any, unit: float) -> float | None:
    """A finite number that is not negative, in SI units; None for anything else ("nan" among it)."""
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1e18:
        return None
    number = float(value) * unit
    return number if math.isfinite(number) and number >= 0.0 else None


def _program(report: Mapping[str, Any]) -> str | None:
    arguments = report.get("args")
    for argument in arguments[:1] if isinstance(arguments, list) else ():
        found = _PROGRAM.search(argument) if isinstance(argument, str) else None
        if found is not None and found.group(1) in PROGRAMS:
            return f"{found.group(1)}_perf"
    return None


def _devices(report: Mapping[str, Any]) -> Iterator[Device]:
    config = report.get("config")
    listed = config.get("devices") if isinstance(config, dict) else None
    for entry in listed[:MOST_ROWS] if isinstance(listed, list) else ():
        if not isinstance(entry, dict):
            continue
        rank, index = entry.get("rank"), entry.get("device")
        host, name = entry.get("hostname"), entry.get("device_info")
        if isinstance(rank, int) and isinstance(index, int) and 0 <= rank < 10**7 and isinstance(host, str) and isinstance(name, str):
            yield Device(rank, host[:255], index, name.strip()[:200])
