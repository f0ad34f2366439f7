"""Answers as flat rows: for a table on the terminal, for CSV, Parquet and data frames."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from planner.diagnostics import Diagnostic, PlannerError
from planner.whatif.results import ScenarioResult, Solved, WhatIfDocument

BASE: Final = "as it is"


def rows_of(document: WhatIfDocument) -> list[dict[str, Any]]:
    """One row for the problem as it is, and one for each scenario; all rows have the same columns."""
    first = ScenarioResult(name=BASE, changes=(), answer=document.base, difference=None)
    return [row_of(item) for item in (first, *document.scenarios)]


def row_of(result: ScenarioResult) -> dict[str, Any]:
    """Columns of one scenario; figures without a plan, and changes without two plans, are None."""
    answer, change = result.answer, result.difference
    objective = answer.objective
    return {
        "scenario": result.name,
        "changes": "; ".join(result.changes),
        "status": answer.status,
        "cost_per_hour": answer.plan.cost_per_hour,
        "cost_change": None if change is None else change.cost_change,
        "objective": None if objective is None else objective.value,
        "bound": None if objective is None else objective.bound,
        "gap": None if objective is None else objective.gap,
        "gpus": answer.plan.gpus if answer.found else None,
        "gpus_change": None if change is None else change.gpus_after - change.gpus_before,
        "ranks_moved": None if change is None else change.moves,
        "started": None if change is None else sum(row.started for row in change.deployments),
        "stopped": None if change is None else sum(row.stopped for row in change.deployments),
        "moved": None if change is None else sum(row.moved for row in change.deployments),
        "plan": "; ".join(f"{item.name}: {item.shapes}" for item in answer.deployments),
        "why": why(answer),
        "problem_sha256": answer.problem_sha256,
    }


def why(answer: Solved) -> str:
    """What keeps a scenario from having a plan: what would mend it, and the nearest misses; empty where it has one."""
    if answer.found:
        return ""
    told = [
        f"{item.message}{f'; {item.hint}' if item.hint else ''} [{item.code}]" for item in answer.diagnostics if item.code not in _PRICES
    ]
    told += [
        f"{item.deployment}: TP{item.shape.tp} x PP{item.shape.pp} on {item.shape.gpu}: {item.message} [{item.code}]"
        for item in answer.misses
    ]
    return " | ".join(told)


_PRICES: Final = frozenset({"PRICE_FROM_CATALOG"})


def frame(rows: Iterable[dict[str, Any]]) -> Any:
    """Rows as a pandas data frame.

    Raises
    ------
    PlannerError
        EXTRA_MISSING when pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        hint = "install it: pip install 'llm-deployment-planner[parquet]'"
        raise PlannerError([Diagnostic("EXTRA_MISSING", "data frames and Parquet need pandas, which is not installed", hint)]) from None
    return pd.DataFrame(list(rows))


def write_parquet(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """Write rows as a Parquet file.

    Raises
    ------
    PlannerError
        EXTRA_MISSING when pandas or pyarrow is not installed, OUTPUT_NOT_WRITABLE.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        hint = "install it: pip install 'llm-deployment-planner[parquet]'"
        raise PlannerError([Diagnostic("EXTRA_MISSING", "Parquet needs pyarrow, which is not installed", hint)]) from None
    kinds = {str: pa.string(), float: pa.float64(), int: pa.int64()}
    columns = {name: kinds[kind] for name, kind in COLUMNS.items()}
    try:
        pa.parquet.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(list(columns.items()))), path)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}"
        raise PlannerError([Diagnostic("OUTPUT_NOT_WRITABLE", message, "name a file in a folder that may be written")]) from None


COLUMNS: Final[dict[str, type]] = {
    "scenario": str,
    "changes": str,
    "status": str,
    "cost_per_hour": float,
    "cost_change": float,
    "objective": float,
    "bound": float,
    "gap": float,
    "gpus": int,
    "gpus_change": int,
    "ranks_moved": int,
    "started": int,
    "stopped": int,
    "moved": int,
    "plan": str,
    "why": str,
    "problem_sha256": str,
}
"""Columns of the rows with their types."""
