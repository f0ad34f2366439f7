"""Weights, KV cache and start-up outcomes of published logs against the planner's memory."""

from __future__ import annotations

import numpy as np

from tests.cost import start_up_logs


def report() -> None:
    """Print weights, KV and outcome of every log; `fitted` figures shaped a constant, `unstated` ones lack what a prediction needs."""
    weights: dict[str, list[float]] = {"fitted": [], "predicted": []}
    kept: dict[str, list[float]] = {"fitted": [], "predicted": [], "unstated": []}
    for log in start_up_logs.logs():
        found = start_up_logs.predict(log)
        notes = []
        if log.weights is not None:
            label = "fitted" if "weights" in log.fitted else "predicted"
            weights[label].append(abs(found.weights / log.weights - 1.0))
            notes.append(f"weights {found.weights:.2f} of {log.weights:.2f} GiB ({found.weights / log.weights - 1.0:+.2%}, {label})")
        if log.kv is not None:
            label = "fitted" if "kv" in log.fitted else "predicted" if log.stated else "unstated"
            kept[label].append(abs(found.kv / log.kv - 1.0))
            notes.append(f"KV room {found.kv:.2f} of {log.kv:.2f} GiB ({found.kv / log.kv - 1.0:+.1%}, {label})")
        print(f"  {log!s:55s} {', '.join(notes)}")
    for what, parts in (("weights", weights), ("KV room", kept)):
        for label, errors in parts.items():
            middle, tail, worst = np.median(errors), np.quantile(errors, 0.9), np.max(errors)
            print(f"  {what}, {label}: n {len(errors)}, median {middle:.2%}, p90 {tail:.2%}, largest {worst:.2%}")
    counts = {"right": 0, "WRONG": 0, "borderline": 0}
    expected_right = 0
    for attempt in start_up_logs.attempts():
        low, expected, high = start_up_logs.verdicts(attempt)
        verdict = "borderline" if low is not high else "right" if low is attempt.fits else "WRONG"
        counts[verdict] += 1
        expected_right += expected is attempt.fits
        print(f"  {attempt!s:60s} {'fits' if attempt.fits else 'fails':6s} {verdict}")
    words = f"{counts['right']} right, {counts['WRONG']} wrong, {counts['borderline']} inside the band (borderline)"
    print(f"  outcomes: {words}; by the expected terms alone {expected_right} of {sum(counts.values())} are right")
