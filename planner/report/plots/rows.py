"""From the JSON document of a command to the rows a figure is drawn of; no plotting library is needed for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from planner.cost.paper import bubble

Row = dict[str, Any]
Document = Mapping[str, Any]


def series_of(answer: Document, answers: Sequence[Document], *keys: str) -> str:
    """Name of an answer by what tells it from the others: only keys that differ are named."""
    varying = [key for key in keys if len({str(each.get(key)) for each in answers}) > 1]
    return " · ".join(str(answer.get(key)) for key in varying or keys[:1])


def scaling_rows(document: Document) -> Iterator[Row]:
    """One row a degree: efficiency and time per token against GPUs."""
    answers = document["answers"]
    for answer in answers:
        name = series_of(answer, answers, "model", "gpu", "link", "weights", "batch")
        for point in answer["points"]:
            yield {
                "series": name,
                "gpus": point["gpus"],
                "efficiency": point["efficiency"],
                "ms": point["tpot_s"] * 1e3,
                "speedup": point["speedup"],
                "fits": "fits" if point["fits"] else "does not fit",
            }


def regime_rows(document: Document) -> Iterator[Row]:
    """One row a cell and phase: compute over communication by model, link and degree."""
    answers = document["answers"]
    for answer in answers:
        for phase in ("decode", "prefill"):
            ratio = answer[f"{phase}_compute_over_communication"]
            yield {
                "phase": phase,
                "where": f"{answer['model']} · {answer['link']}",
                "tp": f"TP{answer['tp']}",
                "order": answer["tp"],
                "ratio": ratio,
                "regime": f"{answer[f'{phase}_regime']}-bound",
                "efficiency": answer[f"{phase}_efficiency"],
            }


PARTS = (("compute", "compute_s"), ("all-reduce", "tp_comm_s"), ("pipeline", "pp_comm_s"), ("experts", "ep_comm_s"), ("fixed", "fixed_s"))


def layout_rows(document: Document) -> Iterator[Row]:
    """One row a layout and part of its time per token."""
    answers = document["answers"]
    for answer in answers:
        for place, (part, key) in enumerate(PARTS):
            yield {**_layout(answer, answers), "part": part, "place": place, "ms": answer["times"][key] * 1e3}


def cost_rows(document: Document) -> Iterator[Row]:
    """One row a layout with a price: money per million output tokens."""
    answers = document["answers"]
    for answer in answers:
        money = answer["money"]["usd_per_million_output_tokens"]
        if money is not None:
            yield {**_layout(answer, answers), "money": money, "ms": answer["times"]["tpot_s"] * 1e3}


MICROBATCHES = (1, 2, 4, 8, 16, 32, 64)


def bubble_rows(document: Document) -> Iterator[Row]:
    """Idle share of the stages asked about against microbatches in flight, (P - 1) / (M + P - 1)."""
    stages = sorted({int(answer["shape"]["pp"]) for answer in document["answers"]} - {1})
    for count in stages:
        for microbatches, share in zip(MICROBATCHES, bubble(count, np.array(MICROBATCHES)).tolist(), strict=True):
            yield {"stages": f"{count} stages", "microbatches": microbatches, "bubble": share}


def _layout(answer: Document, answers: Sequence[Document]) -> Row:
    shape = answer["shape"]
    words = f"TP{shape['tp']}" + "".join(f" x {key.upper()}{shape[key]}" for key in ("pp", "dp", "ep") if shape[key] > 1)
    name = series_of(answer, answers, "model", "gpu", "link", "weights")
    return {
        "series": name,
        "layout": words,
        "batch": shape["batch"],
        "gpus": shape["gpus"],
        "fits": "fits" if answer["memory"]["fits"] else "does not fit",
    }


def memory_rows(document: Document) -> Iterator[Row]:
    """One row a number of GPUs: what a GPU needs and what it has."""
    answers = document["answers"]
    for answer in answers:
        name = series_of(answer, answers, "model", "weights", "batch", "prompt_tokens")
        for point in answer["frontier"]:
            yield {"series": name, "gpus": point["gpus"], "needed": point["needed_gib"], "budget": point["budget_gib"]}


def smallest_rows(document: Document) -> Iterator[Row]:
    """One row a model and GPU memory: the fewest GPUs; one memory alone is no frontier."""
    answers = document["answers"]
    if len({answer["memory_gib"] for answer in answers}) < 2:
        return
    for answer in answers:
        if answer["smallest_gpus"] is not None:
            name = series_of(answer, answers, "model", "weights", "batch", "prompt_tokens")
            yield {"series": name, "memory": answer["memory_gib"], "smallest": answer["smallest_gpus"]}


def link_rows(document: Document) -> Iterator[Row]:
    """One row a size of a run: what was measured, and the line alpha + beta that was fitted."""
    fits = document["fits"]
    for fit in fits:
        name = f"{fit['operation']} of {fit['ranks']}" + (f" · {fit['file']}" if len({each["file"] for each in fits}) > 1 else "")
        for point in fit["points"]:
            base = {"series": name, "bytes": point["size_b"]}
            yield {**base, "us": point["measured_s"] * 1e6, "kind": "measured"}
            if point["line_s"] is not None:
                yield {**base, "us": point["line_s"] * 1e6, "kind": "alpha + beta"}


def comparison_rows(document: Document) -> Iterator[Row]:
    """One row a measured step: predicted against measured."""
    for row in document["comparison"]["rows"]:
        yield {
            "series": f"{row['model']} · {row['gpu']}",
            "measured": row["measured_s"] * 1e3,
            "predicted": row["predicted_s"] * 1e3,
            "words": f"{row['shape']} batch {row['batch']}",
        }


def front_rows(document: Document) -> Iterator[Row]:
    """One row a plan of the front: money against the worst time."""
    front = document["pareto"]
    for point in front["points"]:
        shapes = ", ".join(
            f"{item['deployment']} {item['replicas']} x TP{item['shape']['tp']} x PP{item['shape']['pp']} on {item['shape']['gpu']}"
            for item in point["shapes"]
        )
        money = point["cost_per_hour"] if front["money"] == "cost" else point["gpus_used"]
        yield {"money": money, "ms": point[f"{front['by']}_s"] * 1e3, "proof": point["proof"], "words": shapes}


def scenario_rows(document: Document) -> Iterator[Row]:
    """One row a scenario: its cost beside that of the plan as it is."""
    yield _scenario("as it is", document["base"], 0)
    for place, scenario in enumerate(document["scenarios"], start=1):
        yield _scenario(scenario["name"], scenario["answer"], place)


def _scenario(name: str, answer: Document, place: int) -> Row:
    return {
        "name": name,
        "place": place,
        "cost": answer["plan"]["cost_per_hour"],
        "gpus": answer["plan"]["gpus"],
        "status": answer["status"],
    }


def growth_rows(document: Document) -> Iterator[Row]:
    """One row a period of a growth question: load and cost."""
    for question in document["questions"]:
        if question["question"] == "growth":
            for row in question["rows"]:
                period = next(key for key in row if key not in {"load", "status", "cost_per_hour", "gpus"})
                yield {"period": row[period], "unit": period, "load": row["load"], "cost": row["cost_per_hour"], "status": row["status"]}
