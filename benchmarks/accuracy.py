"""How right the planner is on published measurements: `python benchmarks/accuracy.py DATA_DIR`.

DATA_DIR holds tp_scaling.csv, ranking_targets.csv and collectives.csv (columns in docs/accuracy.md); start-up logs are in tests/cost/start_up_logs.toml. Every figure is printed per series and labelled
`fitted` (its rows shaped the constants) or `predicted` (they did not). Nothing is fitted here: the constants are the catalog's.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import memory_outcomes
import rankings
from collective_data import read_series
from fit_step_times import summary
from serving_groups import group_rows, marked_rows
from step_time_fit import held_out, is_moe, predict

from planner.catalog.collectives import find_series
from planner.catalog.step_times import step_constants


def serving(data_dir: Path) -> None:
    """Print TPOT and TTFT per series, totals per sort and label, and what was left out."""
    rows = marked_rows(data_dir / "tp_scaling.csv")
    totals: dict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    for group in sorted(
        group_rows(row for row in rows if not row.left_out), key=lambda group: (held_out(group), is_moe(group), group.rows[0].series)
    ):
        engine, card, name, dtype = group.rows[0].series
        step = predict(group, step_constants(engine, group.setting.gpu.architecture))
        label, sort = "predicted" if held_out(group) else "fitted", "MoE" if is_moe(group) else "dense"
        ratio = step.tpot / group.tpot
        error = np.abs(ratio - 1.0)
        waited = (group.ttft > 0.0) & (group.shapes.batch >= np.array([row.load for row in group.rows]))
        first = np.abs(step.first_token[waited] / group.ttft[waited] - 1.0)
        totals[f"TPOT {sort}", label].append(error)
        totals[f"TTFT {sort}", label].append(first)
        line = f"  {label:9s} {sort:5s} {engine:7s} {card:15s} {name:22s} {dtype:5s}"
        print(
            f"{line} TPOT {summary(error)} bias {np.median(ratio):.2f}; TTFT median {np.median(first) * 100 if first.size else 0.0:.0f} %"
        )
    for (what, label), parts in sorted(totals.items()):
        print(f"  {what:10s} {label:9s} {summary(np.concatenate(parts))}")
    print("  left out:")
    for reason, count in Counter(row.left_out for row in rows if row.left_out).most_common():
        print(f"    {count:4d}  {reason}")


def collectives(data_dir: Path) -> None:
    """Print errors of the catalog's collectives over all series that were fitted, and over versions that were not."""
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    for series in read_series(data_dir):
        if series.key.eager:
            continue
        own = find_series(series.key.fabric, series.key.library, series.key.operation, series.key.version)
        if own is None:
            continue
        times, _ = own.time(series.ranks, np.array(series.sizes))
        fitted = own.version == series.key.version and series.ranks in own.segments
        found["fitted" if fitted else "predicted"].append(np.abs(times / np.array(series.seconds) - 1.0))
    for label, parts in sorted(found.items()):
        medians = [float(np.median(part)) for part in parts]
        print(
            f"  {label:9s} {len(parts):3d} series, all points {summary(np.concatenate(parts))}; median of the series' medians {np.median(medians):.1%}"
        )


def main() -> None:
    """Print every part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data_dir", type=Path)
    data_dir = parser.parse_args().data_dir
    for title, part in (
        ("Decode steps and first tokens", serving),
        (
            "Best degree per GPU, all requests queued at once",
            rankings.report,
        ),
        ("Memory", lambda _: memory_outcomes.report()),
        ("Collectives", collectives),
    ):
        print(title)
        part(data_dir)
        print()


if __name__ == "__main__":
    main()
