"""The page of a what-if: the plan as it is, every scenario beside it, the questions with their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planner.report.page.front import figures_svg
from planner.report.page.html import environment
from planner.report.page.tables import Table
from planner.report.words import gap_words, milliseconds, money, per_hour

MOST_ROWS: Final = 500
"""Scenarios that the page lists; the table of the command has all of them."""


def what_if_page(document: Mapping[str, Any]) -> str:
    """HTML of a what-if document, as `planner whatif --json` prints it."""
    scenarios = document["scenarios"]
    solved = [item for item in scenarios if item["answer"]["status"] in {"optimal", "feasible"}]
    return (
        environment()
        .get_template("what_if.html")
        .render(
            title=f"what if: {document['problem']}",
            headline=_headline(document, len(solved)),
            complete=document["complete"],
            scenarios=_scenario_table(document),
            left_out=max(0, len(scenarios) - MOST_ROWS),
            without=[
                (item["name"], _reasons(item["answer"])) for item in scenarios if item["answer"]["status"] not in {"optimal", "feasible"}
            ][:MOST_ROWS],
            questions=[(item["sentence"], item["proved"], _rows_table(item["rows"])) for item in document["questions"]],
            drawn=figures_svg(document, "growth", *(("scenarios",) if 1 < len(scenarios) <= 40 else ())),
        )
    )


def _headline(document: Mapping[str, Any], solved: int) -> str:
    base = document["base"]
    cost = per_hour(base["plan"]["cost_per_hour"], base["plan"]["currency"])
    return (
        f"as it is: {base['status']}, {cost}, {base['plan']['gpus']} GPUs · {solved} of {len(document['scenarios'])} scenarios have a plan"
    )


def _scenario_table(document: Mapping[str, Any]) -> Table:
    rows = [_row("as it is", document["base"], None)]
    rows += [_row(item["name"], item["answer"], item["difference"]) for item in document["scenarios"][:MOST_ROWS]]
    heads = ("scenario", "answer", "cost", "change", "gap", "GPUs", "per token", "moves", "what runs")
    return Table(heads, tuple(rows), frozenset({2, 3, 4, 5, 6, 7}))


def _row(name: str, answer: Mapping[str, Any], difference: Mapping[str, Any] | None) -> tuple[str, ...]:
    plan = answer["plan"]
    if not answer["deployments"]:
        return (name, str(answer["status"]), "", "", "", "", "", "", "")
    change = None if difference is None else difference["cost_change"]
    objective = answer["objective"]
    return (
        name,
        str(answer["status"]),
        per_hour(plan["cost_per_hour"], plan["currency"]),
        "" if change is None else ("+" if change >= 0 else "-") + money(abs(change), plan["currency"]),
        "" if objective is None else gap_words(objective["gap"]),
        str(plan["gpus"]),
        milliseconds(max(item["tpot_s"] for item in answer["deployments"])),
        "" if difference is None else str(difference["moves"]),
        "; ".join(f"{item['name']}: {item['shapes']}" for item in answer["deployments"]),
    )


def _reasons(answer: Mapping[str, Any]) -> list[str]:
    told = [f"{item['message']}; {item['hint']}" if item["hint"] else item["message"] for item in answer["diagnostics"]]
    told += [f"{item['deployment']}: {item['message']} [{item['code']}]" for item in answer["misses"]]
    return told or [str(answer["status"])]


def _rows_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    if not rows:
        return Table((), ())
    heads = tuple(rows[0])
    figures = frozenset(place for place, head in enumerate(heads) if all(isinstance(row.get(head), int | float | None) for row in rows))
    return Table(
        tuple(head.replace("_", " ") for head in heads), tuple(tuple(_cell(row.get(head)) for head in heads) for row in rows), figures
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
