"""Fit the calibrated collective constants on published measurements and report the errors.

    python benchmarks/fit_collectives.py DATA_DIR [--write]

For every (fabric, library and version, operation) the time at each measured number of ranks is a few straight pieces over the message size,
start + volume / bandwidth, found by dynamic programming under the sum of relative errors; the start over all ranks gives c0 + alpha x hops, by which ranks
beyond the measured ones are reached. `--write` replaces planner/catalog/data/collectives.json.

Four tables are printed: errors of the fit on its own points, errors on sizes left out (every second size), on a number of ranks left out (4, from 2 and 8), and of one
version's constants on another version's times. Only the first speaks of fitted points.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from collective_data import Key, Series, read_series
from collective_pieces import Piece, hops, pieces_of, volume_share

from planner.catalog.collectives import DATA_FILE, CollectiveSeries, Segment, version_key

# At its largest sizes a kernel library hands over to NCCL: its times are then NCCL's own within this share.
SAME_AS_NCCL = 0.12
ENVELOPE_FABRICS = {"nvlink3-a100-bridge", "nvlink4-bridge", "pcie4-a100", "pcie5-h100"}
# In the eager rows of A100 boxes a rank waits 40 us and more for the other: below this size [B], times above this [s] are that wait.
WAITS = {"nvlink3-a100-bridge": (3e6, 38e-6), "pcie4-a100": (150e3, 50e-6)}
# Where one number of ranks was measured, starts at others follow the hops of this fabric in proportion.
STARTS_LIKE = {"pcie5-x16": "pcie4-x16"}
RANKS_OF_KERNELS = {"vllm": (2, 4, 6, 8), "sglang": (2, 4, 6, 8)}


def without_skew(series: Series) -> Series:
    """Lower envelope over sizes, small messages that waited for the other rank left out: what exceeds a larger message's time is such a wait."""
    below, wait = WAITS.get(series.key.fabric, (0.0, 0.0))
    kept = [pair for pair in zip(series.sizes, series.seconds, strict=True) if pair[0] >= below or pair[1] < wait]
    series = replace(series, sizes=tuple(size for size, _ in kept), seconds=tuple(time for _, time in kept))
    seconds = np.minimum.accumulate(np.array(series.seconds)[::-1])[::-1]
    return replace(series, seconds=tuple(float(time) for time in seconds))


def start_form(operation: str, starts: dict[int, float]) -> tuple[str, float, float]:
    """Form, c0 [s] and alpha [s/hop] of the starts over ranks; the better of ring and tree for all-reduce, hops of the operation otherwise."""
    forms = ("ring", "tree") if operation == "all_reduce" else ("ring",)
    best = ("ring", starts[min(starts)], 0.0, np.inf)
    for form in forms:
        x = np.array([hops(operation, ranks, form) for ranks in starts], dtype=float)
        y = np.array(list(starts.values()))
        if len(x) == 1:
            candidates = [(float(y[0]), 0.0)]
        else:
            weights = 1.0 / y
            slope, intercept = np.polyfit(x, y, 1, w=weights)
            candidates = [(float(intercept), float(slope)), (float(np.median(y)), 0.0), (0.0, float(np.median(y / x)))]
        for c0, alpha in candidates:
            if c0 < 0 or alpha < 0:
                continue
            error = float(np.mean(np.abs(c0 + alpha * x - y) / y))
            if error < best[3]:
                best = (form, c0, alpha, error)
    return best[:3]


def labelled(series: Series, pieces: list[Piece], nccl: Series | None) -> list[str]:
    """Name the algorithm of each piece: NCCL where the times are NCCL's, the library's own kernel otherwise."""
    if series.key.library == "nccl" or nccl is None:
        return [series.key.library if series.key.library == "nccl" else "custom"] * len(pieces)
    reference = dict(zip(nccl.sizes, nccl.seconds, strict=True))
    names = []
    for piece in pieces:
        inside = [
            (time, reference[size])
            for size, time in zip(series.sizes, series.seconds, strict=True)
            if piece.first <= size <= piece.last and size in reference
        ]
        same = bool(inside) and float(np.median([abs(time - other) / other for time, other in inside])) <= SAME_AS_NCCL
        names.append("nccl" if same else "custom")
    return names


def fit(group: list[Series], nccl: dict[int, Series]) -> CollectiveSeries:
    """Fit one key at all its ranks."""
    key = group[0].key
    segments: dict[int, tuple[Segment, ...]] = {}
    starts: dict[int, float] = {}
    for series in group:
        share = volume_share(key.operation, series.ranks)
        pieces = pieces_of(series.sizes, series.seconds)
        names = labelled(series, pieces, nccl.get(series.ranks))
        ends = [*(piece.first for piece in pieces[1:]), None]
        segments[series.ranks] = tuple(
            Segment(
                below=end,
                last=piece.last,
                start=float(f"{piece.start:.4g}"),
                bandwidth=None if piece.slope <= 0 else float(f"{share / piece.slope:.4g}"),
                algorithm=name,
            )
            for piece, end, name in zip(pieces, ends, names, strict=True)
        )
        starts[series.ranks] = float(np.median(series.seconds[:3]))
    form, c0, alpha = start_form(key.operation, starts)
    return CollectiveSeries(
        fabric=key.fabric,
        library=key.library,
        version=key.version,
        operation=key.operation,
        form=form,
        c0=float(f"{c0:.4g}"),
        alpha=float(f"{alpha:.4g}"),
        legal_ranks=RANKS_OF_KERNELS.get(key.library, ()),
        basis="derived" if key.fabric in ENVELOPE_FABRICS else "measured",
        source=group[0].source,
        segments=segments,
    )


def errors(model: CollectiveSeries, series: Series) -> np.ndarray:
    """Relative errors of `model` at the points of `series`."""
    times, _ = model.time(series.ranks, np.array(series.sizes))
    return np.abs(times - np.array(series.seconds)) / np.array(series.seconds)


def summary(title: str, found: list[tuple[str, np.ndarray]]) -> None:
    """Print the distribution of the per-series medians and 90th percentiles, and how many series meet 5 % and 18 %."""
    if not found:
        return
    medians = np.array([np.median(error) for _, error in found])
    tails = np.array([np.percentile(error, 90) for _, error in found])
    met = np.sum((medians <= 0.05) & (tails <= 0.18))
    print(
        f"{title}: {len(found)} series, {sum(len(error) for _, error in found)} points; median of medians {np.median(medians):.1%}, worst median {medians.max():.1%}, "
        f"median p90 {np.median(tails):.1%}, worst p90 {tails.max():.1%}; within 5 % and 18 %: {met} of {len(found)}"
    )
    for (name, _), middle, tail in zip(found, medians, tails, strict=True):
        if middle > 0.05 or tail > 0.18:
            print(f"    beyond: {name}: median {middle:.1%}, p90 {tail:.1%}")


def name_of(series: Series) -> str:
    """Short name of a series for the report."""
    key = series.key
    return f"{key.fabric} {key.library} {key.version} {key.operation} n={series.ranks}"


def main() -> None:
    """Fit, report, and write when asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    every = read_series(arguments.data_dir)
    groups: dict[Key, list[Series]] = defaultdict(list)
    for series in every:
        if not series.key.eager or series.key.fabric in ENVELOPE_FABRICS:
            groups[series.key].append(series)
    nccl = {
        (series.key.fabric, series.ranks): series
        for series in every
        if series.key.library == "nccl" and series.key.operation == "all_reduce" and not series.key.eager
    }

    def fitted(group: list[Series]) -> CollectiveSeries:
        key = group[0].key
        group = [without_skew(series) if key.eager else series for series in group]
        return fit(
            group, {ranks: other for (fabric, ranks), other in nccl.items() if fabric == key.fabric and key.operation == "all_reduce"}
        )

    models = {key: fitted(group) for key, group in groups.items()}
    for key, model in models.items():
        like = next(
            (
                other
                for other in models.values()
                if (other.fabric, other.library, other.operation) == (STARTS_LIKE.get(key.fabric), "nccl", key.operation)
            ),
            None,
        )
        if like is not None and len(model.segments) == 1:
            ratio = model.c0 / (like.c0 + like.alpha * like.hops(max(model.segments)))
            models[key] = replace(model, form=like.form, c0=float(f"{like.c0 * ratio:.4g}"), alpha=float(f"{like.alpha * ratio:.4g}"))
    whole = [(name_of(series), errors(models[key], series)) for key, group in groups.items() for series in group if not key.eager]
    summary("fitted, graph or nccl-tests", whole)
    summary(
        "fitted, eager rows without their skew",
        [(name_of(s), errors(models[k], without_skew(s))) for k, g in groups.items() for s in g if k.eager],
    )

    halves = []
    for group in groups.values():
        full = [series for series in group if len(series.sizes) >= 20 and not series.key.eager]
        if full:
            model = fitted([replace(series, sizes=series.sizes[::2], seconds=series.seconds[::2]) for series in full])
            halves += [(name_of(s), errors(model, replace(s, sizes=s.sizes[1::2], seconds=s.seconds[1::2]))) for s in full]
    summary("held out, every second size", halves)

    ranks_out = []
    for group in groups.values():
        by_ranks = {series.ranks: series for series in group if len(series.sizes) >= 20 and not series.key.eager}
        if {2, 4, 8} <= set(by_ranks):
            model = fitted([by_ranks[2], by_ranks[8]])
            ranks_out.append((name_of(by_ranks[4]), errors(model, by_ranks[4])))
    summary("held out, four ranks from two and eight", ranks_out)

    versions = []
    for key, group in groups.items():
        for other, model in models.items():
            same = (other.fabric, other.library, other.operation) == (key.fabric, key.library, key.operation)
            if same and version_key(other.version) < version_key(key.version) and not key.eager:
                versions += [
                    (f"{name_of(series)} from {other.version}", errors(model, series)) for series in group if series.ranks in model.segments
                ]
    summary("held out, a later version from an earlier one", versions)

    if arguments.write:
        rows = [model.as_row() for _, model in sorted(models.items(), key=lambda item: str(item[0]))]
        text = "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n"
        DATA_FILE.write_text(text, encoding="utf-8")
        print(f"wrote {len(rows)} rows, {len(text)} bytes")


if __name__ == "__main__":
    main()
