"""Fit the step-time constants on published serving samples: `python benchmarks/fit_step_times.py DATA_DIR [--write] [--leave-one-out]`.

DATA_DIR holds tp_scaling.csv (columns as in docs/accuracy.md). `--write` replaces planner/catalog/data/step_times.toml; `--leave-one-out` refits every generation
once without each of its fitted series and reports how that series is then predicted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from offline_rows import OfflineGroup, group_offline, read_offline
from serving_groups import Group, group_rows, marked_rows
from step_time_fit import (
    EXPERT_BANDWIDTH,
    GENERATIONS,
    MICROSECONDS,
    OLD_EXPERT_BANDWIDTH,
    OLD_GENERATIONS,
    PARAMETERS,
    REFERENCE,
    constants_of,
    fit,
    held_out,
    identified,
    is_moe,
    offline_fitted,
    ratios,
    starts,
)

ENGINES = ("vllm", "trtllm", "sglang")
SOURCE = "ai-dynamo/aiconfigurator silicon_sample.csv @095f58a5 (Apache-2.0)"
OFFLINE_SOURCE = "NVIDIA/TensorRT-LLM performance overview (Apache-2.0)"
DATA_FILE = Path(__file__).resolve().parent.parent / "planner" / "catalog" / "data" / "step_times.toml"
ASSUMED = {"attend": 0.6, "jitter_compute": 0.03, "jitter_exchange": 0.10}
ALSO = {"hopper": ("hopper",), "blackwell": ("blackwell", "blackwell-ultra"), "ampere": ("ampere",), "ada": ("ada",)}
OLD, OLD_VERSIONS = "0.14.0", "<1.0"
NEW, NEW_VERSIONS = "1.0", ">=1.0"

HEADER = """# Constants of the step-time form of planner/cost/calibrated.py, per engine and generation of GPUs, written by benchmarks/fit_step_times.py.
# Seconds and shares of the data sheet's peaks. The first generation of an engine stands in for those that nobody has measured.
# `attend` and the jitters are assumed; what no fitted series identifies keeps the start value of the fit.
"""


def summary(errors: np.ndarray) -> str:
    """Rows, median and 90th percentile of absolute relative errors."""
    if not errors.size:
        return "no rows"
    return f"n {errors.size:4d}  median {np.median(errors) * 100:5.1f} %  p90 {np.quantile(errors, 0.9) * 100:5.1f} %"


def errors_of(
    groups: list[Group] | list[OfflineGroup], engine: str, generation: str, values: dict[str, float], label: str, *, old: bool = False
) -> np.ndarray:
    """Print and gather errors per series."""
    constants = constants_of(engine, generation, values, old=old)
    gathered = [np.zeros(0)]
    for group in groups:
        ratio = ratios(group, constants)
        gathered.append(np.abs(ratio - 1.0))
        _, card, name, dtype = group.rows[0].series
        sort = "moe" if is_moe(group) else "dense"
        print(f"  {label:9s} {sort:5s} {engine:7s} {card:15s} {name:22s} {dtype:5s} {summary(gathered[-1])}  bias {np.median(ratio):.2f}")
    return np.concatenate(gathered)


def table(engine: str, generation: str, values: dict[str, float], errors: np.ndarray, *, old: bool = False) -> str:
    """One generation as TOML, `old` = the one before TensorRT-LLM 1.0."""
    lines = [f"[[engines.{engine}.generations]]", f"architectures = {list(ALSO[generation])}".replace("'", '"')]
    if engine == "trtllm":
        lines.append(f'versions = "{OLD_VERSIONS if old else NEW_VERSIONS}"')
    lines.append(f"memory_reference = {REFERENCE[generation]!r}")
    tables: dict[str, list[str]] = {}
    for name, value in values.items():
        field, _, dtype = name.partition(".")
        unit = 1e-6 if field in MICROSECONDS else 1e-3 if field == "first_token" else 1.0
        number = f"{float(f'{value * unit:.3g}')!r}"
        if dtype:
            tables.setdefault(field, []).append(f"{dtype} = {number}")
        else:
            lines.append(f"{field} = {number}")
    lines += [f"{field} = {{ {', '.join(entries)} }}" for field, entries in tables.items()]
    lines += [f"{name} = {value}" for name, value in ASSUMED.items()]
    lines.append(f"expert_bandwidth = {OLD_EXPERT_BANDWIDTH if old else EXPERT_BANDWIDTH[generation]!r}")
    lines += [f'basis = "{"measured" if errors.size else "assumed"}"']
    if errors.size:
        median, worst = np.median(errors), np.quantile(errors, 0.9)
        source = OFFLINE_SOURCE if old else f"{SOURCE} and {OFFLINE_SOURCE}" if (engine, generation) == ("trtllm", "hopper") else SOURCE
        lines += [f'source = "fitted on {source}"', f"rows = {errors.size}", f"median_error = {median:.3f}", f"p90_error = {worst:.3f}"]
    else:
        lines += ['source = "medians over the engines that were measured"']
    return "\n".join(lines) + "\n"


def leave_one_out(
    fitted: list[Group], engine: str, generation: str, offline: list[OfflineGroup]
) -> dict[tuple[str, bool], list[np.ndarray]]:
    """Predict every fitted series from the others; errors by label and dense (False) or MoE (True).

    A series that alone has a number format leaves nothing that its kernels could be known from: `unseen` formats are told apart from `seen` ones.
    """
    found: dict[tuple[str, bool], list[np.ndarray]] = {}
    for group in fitted:
        others = [other for other in fitted if other is not group]
        if others:
            values = fit(others, engine, generation, offline)
            alone = formats(identified([group])) - formats(identified(others, offline))
            label = "left out, format unseen" if alone else "left out, format seen"
            errors = errors_of([group], engine, generation, values, label)
            for name in ("left out", label):
                found.setdefault((name, is_moe(group)), []).append(errors)
    return found


def formats(names: Iterable[str]) -> set[str]:
    """Those of the parameters that are one of a number format."""
    return {name for name in names if "." in name and not name.startswith("mixer_layer")}


def old_tables(offline: list[OfflineGroup]) -> str:
    """Fit TensorRT-LLM before 1.0 on its offline tables, report, and give its generations as TOML."""
    text = ""
    for generation, cards in OLD_GENERATIONS.items():
        mine = [group for group in offline if group.rows[0].version == OLD and group.rows[0].gpu in cards]
        fitted = [group for group in mine if offline_fitted(group)]
        values = fit([], "trtllm", generation, fitted)
        print(f"trtllm {OLD_VERSIONS} on {generation}: " + ", ".join(f"{name} {values[name]:.3g}" for name in identified([], fitted)))
        errors = errors_of(fitted, "trtllm", generation, values, "fitted", old=True)
        errors_of([group for group in mine if not offline_fitted(group)], "trtllm", generation, values, "predicted", old=True)
        text += "\n" + table("trtllm", generation, values, errors, old=True)
    return text


def main() -> None:
    """Fit, report, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--leave-one-out", action="store_true")
    arguments = parser.parse_args()
    groups = group_rows(row for row in marked_rows(arguments.data_dir / "tp_scaling.csv") if not row.left_out)
    offline = group_offline(read_offline(arguments.data_dir / "tp_scaling.csv"))
    found: dict[str, list[dict[str, float]]] = {}
    text = HEADER
    totals: dict[tuple[str, bool], list[np.ndarray]] = {}
    for engine in ENGINES:
        for generation, cards in GENERATIONS.items():
            mine = [group for group in groups if group.rows[0].engine == engine and group.rows[0].gpu in cards]
            fitted = [group for group in mine if not held_out(group)]
            also = [
                one
                for one in offline
                if one.rows[0].version == NEW and one.rows[0].gpu in cards and engine == "trtllm" and offline_fitted(one)
            ]
            values = fit(fitted, engine, generation, also)
            free = identified(fitted, also)
            print(f"{engine} on {generation}: " + ", ".join(f"{name} {values[name]:.3g}" for name in free))
            errors = np.concatenate([errors_of(part, engine, generation, values, "fitted") for part in (fitted, also)])
            for group in mine:
                label = "predicted" if held_out(group) else "fitted"
                kept = (
                    errors_of([group], engine, generation, values, label)
                    if held_out(group)
                    else np.abs(ratios(group, constants_of(engine, generation, values)) - 1.0)
                )
                totals.setdefault((label, is_moe(group)), []).append(kept)
            if arguments.leave_one_out:
                for (label, moe), parts in leave_one_out(fitted, engine, generation, also).items():
                    totals.setdefault((label, moe), []).extend(parts)
            found.setdefault(engine, []).append({name: values[name] for name in free})
            text += "\n" + table(engine, generation, values, errors)
        if engine == "trtllm":
            text += old_tables(offline)
    for (label, moe), parts in sorted(totals.items()):
        print(f"{label:23s} {'moe' if moe else 'dense':5s} {summary(np.concatenate(parts))}")
    generic = starts("hopper")
    for name in PARAMETERS:
        known = [values[name] for tables in found.values() for values in tables[:1] if name in values]
        generic[name] = float(np.median(known)) if known else generic[name]
    text += "\n" + table("generic", "hopper", generic, np.zeros(0))
    if arguments.write:
        DATA_FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
