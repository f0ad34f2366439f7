"""Step times that somebody measured, one row a run, from a CSV.

Columns: model, gpu, tp, batch, prompt_tokens, output_tokens and tpot_ms (or tpot_s); besides pp, ep, dp, engine, weights, kv_cache where they are not 1 or the default. Names of
other tools' columns are understood (isl, osl, concurrency, tensor_parallel_size, itl_ms); further columns are left alone.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.plan.shape import Degrees
from planner.problem.source_text import decode, display_name, read_bounded
from planner.problem.workload import LARGEST_DEGREE, MOST_SEQUENCES, MOST_TOKENS

MOST_ROWS: Final = 100_000
MOST_FAULTS: Final = 50

_ALIASES: Final[dict[str, str]] = {
    "model_name": "model", "gpu_type": "gpu", "gpu_name": "gpu", "hardware": "gpu",
    "tensor_parallel": "tp", "tensor_parallel_size": "tp", "tp_size": "tp", "pipeline_parallel": "pp", "pipeline_parallel_size": "pp", "pp_size": "pp",
    "expert_parallel": "ep", "ep_size": "ep", "data_parallel": "dp", "dp_size": "dp",
    "concurrency": "batch", "batch_size": "batch", "max_concurrency": "batch",
    "isl": "prompt_tokens", "input_tokens": "prompt_tokens", "input_length": "prompt_tokens",
    "osl": "output_tokens", "output_length": "output_tokens",
    "itl_ms": "tpot_ms", "mean_tpot_ms": "tpot_ms", "mean_itl_ms": "tpot_ms", "median_tpot_ms": "tpot_ms", "tpot": "tpot_s",
    "framework": "engine", "weights_dtype": "weights", "kv_dtype": "kv_cache", "kv_cache_dtype": "kv_cache",
}  # fmt: skip
_NEEDED: Final = ("model", "gpu", "tp", "batch", "prompt_tokens", "output_tokens")
_COUNTS: Final[dict[str, int]] = {
    "tp": LARGEST_DEGREE,
    "pp": LARGEST_DEGREE,
    "ep": LARGEST_DEGREE,
    "dp": LARGEST_DEGREE,
    "batch": MOST_SEQUENCES,
    "prompt_tokens": MOST_TOKENS,
    "output_tokens": MOST_TOKENS,
}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One measured run: what ran on what, sequences at once, tokens in and out, and the mean time per output token [s]."""

    line: int
    model: str
    gpu: str
    degrees: Degrees
    batch: int
    prompt_tokens: int
    output_tokens: int
    tpot: float
    engine: str = "vllm"
    weights: str | None = None
    kv_cache: str | None = None


def read_steps(path: str) -> tuple[StepRow, ...]:
    """Rows of the CSV at `path` (`-` = standard input).

    Raises
    ------
    PlannerError
        Every faulty line at once: BAD_STEP_TIMES, or what keeps the file from being read.
    """
    name = display_name(path)
    return steps_of(decode(read_bounded(path, "give fewer rows"), name), name)


def steps_of(text: str, file: str) -> tuple[StepRow, ...]:
    """Rows of a CSV's text.

    Raises
    ------
    PlannerError
        BAD_STEP_TIMES for a missing column and for every faulty line.
    """
    first = text.split("\n", 1)[0]
    delimiter = max((",", ";", "\t"), key=first.count)
    try:
        lines = list(csv.reader(StringIO(text), delimiter=delimiter))[: MOST_ROWS + 1]
    except csv.Error as error:
        raise PlannerError([_fault(file, None, f"this is no CSV: {error}", "write one row a run, values between commas")]) from None
    names = [_canonical(word) for word in lines[0]] if lines else []
    missing = [name for name in _NEEDED if name not in names]
    if not {"tpot_ms", "tpot_s"} & set(names):
        missing.append("tpot_ms")
    if missing:
        hint = f"the first line names {', '.join((*_NEEDED, 'tpot_ms'))}"
        raise PlannerError([_fault(file, 1, f"there is no column {', '.join(missing)}", hint)])
    rows: list[StepRow] = []
    faults: list[Diagnostic] = []
    for number, values in enumerate(lines[1:], start=2):
        if not any(value.strip() for value in values) or values[0].lstrip().startswith("#"):
            continue
        row = _row(dict(zip(names, (value.strip() for value in values), strict=False)), file, number, faults)
        if row is not None:
            rows.append(row)
        if len(faults) > MOST_FAULTS:
            break
    if faults:
        raise PlannerError(faults)
    if not rows:
        raise PlannerError([_fault(file, None, "there are no rows below the header", "write one row a run")])
    return tuple(rows)


def _canonical(word: str) -> str:
    plain = word.strip().lower().replace(" ", "_").replace("-", "_")
    return _ALIASES.get(plain, plain)


def _fault(file: str, line: int | None, message: str, hint: str) -> Diagnostic:
    return Diagnostic("BAD_STEP_TIMES", message, hint, place=Place(file, line))


def _row(values: Mapping[str, str], file: str, line: int, faults: list[Diagnostic]) -> StepRow | None:
    before = len(faults)
    counts: dict[str, int] = {}
    for name, most in _COUNTS.items():
        text = values.get(name, "")
        if not text and name not in _NEEDED:
            counts[name] = 1
            continue
        number = _number(text)
        if number is None or number != int(number) or not 1 <= number <= most:
            faults.append(_fault(file, line, f"{name} is {text[:40]!r}", f"write a whole number from 1 to {most:,}"))
        else:
            counts[name] = int(number)
    tpot = _number(values.get("tpot_ms") or "")
    seconds = tpot * 1e-3 if tpot is not None else _number(values.get("tpot_s") or "")
    if seconds is None or not 0.0 < seconds < 3600.0:
        faults.append(_fault(file, line, "the time per token is no positive number", "write tpot_ms in milliseconds, 12.5 for example"))
    faults.extend(
        _fault(file, line, f"{name} is empty", "name it as `planner catalog` does") for name in ("model", "gpu") if not values.get(name)
    )
    if len(faults) > before or seconds is None:
        return None
    return StepRow(
        line,
        values["model"],
        values["gpu"],
        Degrees(counts["tp"], counts["pp"], counts["ep"], counts["dp"]),
        counts["batch"],
        counts["prompt_tokens"],
        counts["output_tokens"],
        seconds,
        values.get("engine") or "vllm",
        values.get("weights") or None,
        values.get("kv_cache") or None,
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
