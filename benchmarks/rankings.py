"""Which parallel degree serves most per GPU: predicted and measured, with every request queued at once."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from offline_rows import OfflineGroup, OfflineRow, group_offline
from step_time_fit import offline_fitted

from planner.catalog.step_times import step_constants
from planner.cost.closed_loop import step_times

TIE = 0.97  # a gap under 3 % is a tie
# The tables of version 0.17 (NVIDIA/TensorRT-LLM docs/source/performance/perf-overview.md, Apache-2.0): models and machines of 0.14 measured again. Never fitted.
LATER = Path(__file__).parent / "overview_0_17.csv"


@dataclass(frozen=True)
class Ranking:
    """One published line of degrees: tokens/s per GPU as measured and as predicted, and whether the total falls somewhere as GPUs are added."""

    name: str
    family: str
    degrees: tuple[int, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    falls: bool
    fitted: bool

    @property
    def right(self) -> bool:
        """The predicted best degree is the measured one, or within 3 % of it."""
        return self.measured[int(np.argmax(self.predicted))] >= TIE * max(self.measured)

    @property
    def predicted_to_fall(self) -> bool:
        """The predicted total falls somewhere as GPUs are added."""
        totals = np.array(self.predicted) * np.array(self.degrees)
        return bool((np.diff(totals) < 0.0).any())


def read_rankings(table: Path) -> list[Ranking]:
    """Read a table of rankings and predict every line of it."""
    with table.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    rows = [_rows(line) for line in lines]
    predicted: dict[OfflineRow, float] = {}
    fitted: dict[tuple[str, ...], bool] = {}
    for group in group_offline({row: None for members in rows for row in members}):
        predicted.update(zip(group.rows, _throughput(group), strict=True))
        fitted[group.rows[0].series] = offline_fitted(group)
    return [_ranking(line, members, predicted, fitted) for line, members in zip(lines, rows, strict=True)]


def _rows(line: dict[str, str]) -> list[OfflineRow]:
    prompt, output = (int(part) for part in line["shape"].split("/"))
    pairs = sorted((int(pair.split(":")[0]), float(pair.split(":")[1])) for pair in line["pergpu"].split())
    version = line["ver"].removeprefix("v").split()[0].rstrip(".")
    version = {"0.14": "0.14.0"}.get(version, version)
    return [
        OfflineRow(
            line["model"],
            line["dtype"],
            line["gpu"],
            version,
            1 if line["kind"] == "pp" else degree,
            degree if line["kind"] == "pp" else 1,
            prompt,
            output,
            each * degree,
        )
        for degree, each in pairs
    ]


def _throughput(group: OfflineGroup) -> np.ndarray:
    """Output tokens/s of every row, 0 where not one sequence fits."""
    step = step_times(group.setting, group.shapes, step_constants(group.setting.engine, group.setting.gpu.architecture))
    return np.asarray(np.where(group.held >= 1, step.decoding / step.tpot, 0.0))


def _ranking(
    line: dict[str, str], rows: list[OfflineRow], predicted: dict[OfflineRow, float], fitted: dict[tuple[str, ...], bool]
) -> Ranking:
    degrees = tuple(row.tensor_parallel * row.pipeline_parallel for row in rows)
    return Ranking(
        name=f"{line['model']} {line['dtype']} {line['gpu']} {line['shape']}",
        family=f"{line['model']} {line['dtype']} {line['gpu']} by {line['kind'].upper()}",
        degrees=degrees,
        measured=tuple(row.throughput / degree for row, degree in zip(rows, degrees, strict=True)),
        predicted=tuple(predicted[row] / degree for row, degree in zip(rows, degrees, strict=True)),
        falls=line["nonmono"] == "True",
        fitted=fitted[rows[0].series],
    )


def report(data_dir: Path) -> None:
    """Print hits per family, every miss, and how far the totals themselves are off."""
    rankings = read_rankings(data_dir / "ranking_targets.csv")
    for family in sorted({ranking.family for ranking in rankings}):
        members = [ranking for ranking in rankings if ranking.family == family]
        ratios = np.concatenate([np.array(one.predicted) / np.array(one.measured) for one in members])
        hits = sum(one.right for one in members)
        errors = f"median error {np.median(np.abs(ratios - 1.0)):.0%}, bias {np.median(ratios):.2f}"
        print(f"  {'fitted' if members[0].fitted else 'predicted':9s} {family:58s} {hits:3d} of {len(members):3d}  throughput {errors}")
    print("  misses:")
    for one in rankings:
        if not one.right:
            pairs = ", ".join(f"{d}: {p:.0f}/{m:.0f}" for d, p, m in zip(one.degrees, one.predicted, one.measured, strict=True))
            print(f"    {one.name}: predicted/measured per GPU {pairs}")
    dense = [one for one in rankings if "70B" in one.name and "by TP" in one.family]
    groups = {"all": rankings, "Llama 70B by TP": dense}
    groups |= {
        label: [one for one in rankings if one.fitted == kept] for label, kept in (("fitted series", True), ("predicted series", False))
    }
    for label, group in groups.items():
        hits = sum(one.right for one in group)
        print(f"  best degree right or within 3 %, {label}: {hits} of {len(group)} ({hits / len(group):.0%})")
    falling = [one for one in rankings if one.falls]
    print(f"  totals that fall with more GPUs: {sum(one.predicted_to_fall for one in falling)} of {len(falling)} predicted to fall")
    _report_later(rankings)


def _report_later(rankings: list[Ranking]) -> None:
    """Print the same on the tables of a version that was never fitted, and how often the best degree there is the best of the earlier tables."""
    later = read_rankings(LATER)
    ratios = np.concatenate([np.abs(np.array(one.predicted) / np.array(one.measured) - 1.0) for one in later])
    hits = sum(one.right for one in later)
    errors = f"throughput median error {np.median(ratios):.0%}, p90 {np.quantile(ratios, 0.9):.0%}"
    print(f"  version 0.17, never fitted: best degree right or within 3 % in {hits} of {len(later)} ({hits / len(later):.0%}), {errors}")
    earlier = {one.name: dict(zip(one.degrees, one.measured, strict=True)) for one in rankings}
    same = [one for one in later if one.name in earlier]
    agreed = 0
    for one in same:
        before = earlier[one.name]
        shared = {degree: value for degree, value in zip(one.degrees, one.measured, strict=True) if degree in before}
        agreed += before[max(shared, key=lambda degree: shared[degree])] >= TIE * max(before[degree] for degree in shared)
    print(
        f"  best degree as measured with 0.17 is right or within 3 % by the measurements with 0.14: {agreed} of {len(same)} ({agreed / len(same):.0%})"
    )
