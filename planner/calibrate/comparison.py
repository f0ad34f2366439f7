"""Predicted against measured step times: the model's error on a user's own runs, and the factor that calibrates it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.calculators.hardware import DEFAULT_NIC, hardware
from planner.calibrate.step_rows import StepRow
from planner.candidates.batches import as_columns
from planner.candidates.settings import batched_tokens, model_length, utilization
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.catalog.links import link
from planner.cost.evaluation import evaluate
from planner.cost.setting import Setting, ShapeArrays
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.documents import Deployment, EngineChoice, PrecisionChoice
from planner.problem.precision import resolve_precisions
from planner.problem.profiles import Profile
from planner.problem.references import names_a_file, read_model_file
from planner.problem.workload import Workload

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """Errors of predictions on some rows, as shares of the measured times.

    `factor` is the median of measured over predicted, `calibrated_*` the errors once predictions are multiplied by it; each row's factor is taken from the
    other half of the rows, so that these are errors on rows the factor was not read off. None with fewer than four rows.
    """

    rows: int
    median: float
    p90: float
    factor: float
    calibrated_median: float | None
    calibrated_p90: float | None


@dataclass(frozen=True)
class Comparison:
    """Rows with their predictions [s], and the agreement over all of them and by model and GPU."""

    profile: str
    rows: tuple[StepRow, ...]
    predicted: tuple[float, ...]
    whole: Agreement
    groups: tuple[tuple[str, str, Agreement], ...]

    def document(self) -> dict[str, Any]:
        """The comparison as a JSON object."""
        return {
            "profile": self.profile,
            **_written(self.whole),
            "groups": [{"model": model, "gpu": board, **_written(found)} for model, board, found in self.groups],
            "rows": [
                {
                    "line": row.line,
                    "model": row.model,
                    "gpu": row.gpu,
                    "shape": str(row.degrees),
                    "batch": row.batch,
                    "measured_s": row.tpot,
                    "predicted_s": predicted,
                    "error": predicted / row.tpot - 1.0,
                }
                for row, predicted in zip(self.rows, self.predicted, strict=True)
            ],
        }


def _written(found: Agreement) -> dict[str, Any]:
    return {
        "count": found.rows,
        "median_error": found.median,
        "p90_error": found.p90,
        "factor": found.factor,
        "median_error_with_factor": found.calibrated_median,
        "p90_error_with_factor": found.calibrated_p90,
    }


def agreement(measured: Sequence[float], predicted: Sequence[float]) -> Agreement:
    """Errors of predictions and the factor that calibrates them."""
    truth, guess = np.asarray(measured, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    ratios = truth / guess
    errors = np.abs(guess / truth - 1.0)
    middle = tail = None
    if len(truth) >= 4:
        even = np.arange(len(truth)) % 2 == 0
        factors = np.where(even, np.median(ratios[~even]), np.median(ratios[even]))
        left = np.abs(factors * guess / truth - 1.0)
        middle, tail = float(np.median(left)), float(np.percentile(left, 90))
    return Agreement(len(truth), float(np.median(errors)), float(np.percentile(errors, 90)), float(np.median(ratios)), middle, tail)


def compare(rows: Sequence[StepRow], profile: Profile, file: str) -> Comparison:
    """Predict every row by a profile and compare.

    Raises
    ------
    PlannerError
        Every model, GPU, engine or precision of the rows that is not known, at its line.
    """
    folder = FilePath(file).parent

    @cache
    def architecture_of(name: str) -> ModelArchitecture:
        if names_a_file(name, folder):
            return read_model_file(name, folder).architecture
        from planner.catalog.models import model

        return model(name)

    alike: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(rows):
        key = (row.model, row.gpu, row.engine, row.weights, row.kv_cache, row.prompt_tokens, row.output_tokens)
        alike.setdefault(key, []).append(index)
    predicted = np.zeros(len(rows))
    faults: list[Diagnostic] = []
    for indices in alike.values():
        first = rows[indices[0]]
        try:
            predicted[indices] = _predict([rows[index] for index in indices], architecture_of(first.model), profile)
        except PlannerError as error:
            faults += [replace(fault, place=Place(file, first.line)) for fault in error.diagnostics]
    if faults:
        raise PlannerError(dict.fromkeys(faults))
    by_kind: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        by_kind.setdefault((row.model, row.gpu), []).append(index)
    times = np.array([row.tpot for row in rows])
    return Comparison(
        profile.name,
        tuple(rows),
        tuple(float(value) for value in predicted),
        agreement(list(times), list(predicted)),
        tuple((model, board, agreement(list(times[at]), list(predicted[at]))) for (model, board), at in by_kind.items()),
    )


def _predict(rows: Sequence[StepRow], architecture: ModelArchitecture, profile: Profile) -> FloatArray:
    """TPOT [s] of rows alike in everything but shape and batch."""
    first = rows[0]
    catalog = gpu(first.gpu)
    board, measured = profile.measured.gpu(catalog), profile.measured
    own = catalog.scale_up if catalog.scale_up is not None and catalog.scale_up_domain > 2 else catalog.pcie
    machine = hardware(board, measured.link(link(own)), measured.link(link(DEFAULT_NIC)))
    rules = engine(first.engine)
    deployment = _deployment(first)
    precision = resolve_precisions(deployment, architecture, rules, board)[0]
    setting = Setting(
        architecture=architecture,
        precision=precision,
        engine=rules.name,
        gpu=board,
        paths=machine.pool.paths,
        prompt_tokens=float(first.prompt_tokens),
        output_tokens=float(first.output_tokens),
        max_batched_tokens=batched_tokens(deployment, rules, board),
        max_model_len=model_length(deployment),
        gpu_memory_utilization=utilization(deployment, rules),
        profile=profile.base,
    )
    table: list[tuple[int, ...]] = []
    for row in rows:
        layout, degrees = machine.layout(row.degrees), row.degrees
        levels = (layout.tp_level, layout.stage_level, layout.stage_scopes, layout.replica_level)
        table.append(
            (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel, row.batch, *levels)
        )
    return evaluate(setting, ShapeArrays(*as_columns(table))).tpot


def _deployment(row: StepRow) -> Deployment:
    """The row as a deployment, from which precision and defaults follow as they do in a problem."""
    from pydantic import ValidationError

    try:
        precision = (
            PrecisionChoice.model_validate({"weights": row.weights, "kv_cache": row.kv_cache}) if row.weights or row.kv_cache else None
        )
    except ValidationError:
        message = f"precision {row.weights or 'default'} with a KV cache in {row.kv_cache or 'default'} is not known"
        raise PlannerError([Diagnostic("BAD_STEP_TIMES", message, "write bf16, fp16, fp8, int8, int4, nvfp4 or mxfp4")]) from None
    return Deployment(
        name="row",
        model=row.model[:1000],
        precision=precision,
        engine=EngineChoice(name=row.engine[:100]),
        workload=Workload(prompt_tokens=row.prompt_tokens, output_tokens=row.output_tokens, concurrency=row.batch),
    )
