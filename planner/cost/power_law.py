"""A power law for the time of a layer, fitted to a user's own runs."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO

import numpy as np

from planner.cost.setting import FloatArray
from planner.diagnostics import Diagnostic, PlannerError


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """Time of a layer as T = a (d^2 B S)^b, with the error of its fit.

    `scale` is a [s], `exponent` b; `median_error` and `largest_error` are shares of the measured times, over `rows` rows.
    """

    scale: float
    exponent: float
    rows: int
    median_error: float
    largest_error: float

    def seconds(self, hidden_size: FloatArray, batch: FloatArray, tokens: FloatArray) -> FloatArray:
        """Time of one layer [s] for hidden size d, batch B and sequence length S."""
        volume = np.asarray(hidden_size, dtype=np.float64) ** 2 * batch * tokens
        return self.scale * volume**self.exponent


def fit_power_law(text: str) -> PowerLaw:
    """Fit T = a (d^2 B S)^b to measured layer times by least squares on logarithms.

    Parameters
    ----------
    text
        A CSV with the columns hidden_size, batch, sequence_length and seconds (or milliseconds), one measurement a row.

    Raises
    ------
    PlannerError
        BAD_POWER_LAW_DATA with every faulty line, or when fewer than two different sizes are left.
    """
    found: list[Diagnostic] = []
    volumes: list[float] = []
    seconds: list[float] = []
    reader = csv.DictReader(StringIO(text))
    columns = set(reader.fieldnames or ())
    unit = 1e-3 if "milliseconds" in columns and "seconds" not in columns else 1.0
    time_column = "milliseconds" if unit != 1.0 else "seconds"
    missing = [name for name in ("hidden_size", "batch", "sequence_length", time_column) if name not in columns]
    if missing:
        hint = "write hidden_size, batch, sequence_length and seconds"
        raise PlannerError([Diagnostic("BAD_POWER_LAW_DATA", f"the table has no column {', '.join(missing)}", hint)])
    for number, row in enumerate(reader, start=2):
        try:
            hidden, batch, length = (float(row[name]) for name in ("hidden_size", "batch", "sequence_length"))
            measured = float(row[time_column]) * unit
        except (TypeError, ValueError):
            found.append(Diagnostic("BAD_POWER_LAW_DATA", f"line {number} is not four numbers"))
            continue
        volume = hidden**2 * batch * length
        if not (min(hidden, batch, length, measured) > 0.0 and max(volume, measured) < np.inf):
            found.append(Diagnostic("BAD_POWER_LAW_DATA", f"line {number} holds a number that is not positive"))
            continue
        volumes.append(volume)
        seconds.append(measured)
    if not found and len(set(volumes)) < 2:
        found.append(Diagnostic("BAD_POWER_LAW_DATA", "two unknowns need at least two different sizes", "measure more sizes"))
    if found:
        raise PlannerError(found)
    logs = np.log(volumes)
    exponent, intercept = np.polyfit(logs, np.log(seconds), 1)
    errors = np.abs(np.exp(intercept + exponent * logs) / np.asarray(seconds) - 1.0)
    return PowerLaw(float(np.exp(intercept)), float(exponent), len(seconds), float(np.median(errors)), float(errors.max()))
