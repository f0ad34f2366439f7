"""From a plan document to one HTML file."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from planner.plan.document import DeploymentDocument, PlanDocument
from planner.report.page.answer import answer_lines, groups_of, shape_of
from planner.report.page.bars import Bar, first_token_bar, memory_bar, token_bar
from planner.report.page.fabric_map import COLOURS, boxes_of
from planner.report.page.front import figures_svg, front_table
from planner.report.page.tables import alternatives_table, links_table, rejected_table, sources_table
from planner.report.terminal import headline
from planner.report.words import carried_words, percent, quantity_of

if TYPE_CHECKING:
    from jinja2 import Environment


MOST_OPEN: Final = 6
"""Kinds of replicas whose figures are shown open; in larger plans they are folded, and only checks that failed are listed."""


@cache
def environment() -> Environment:
    """Templates of the pages; everything written into them is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("planner.report.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["colours"] = COLOURS
    return found


def plan_page(plan: PlanDocument, *, audited: bool = False, warnings: tuple[str, ...] = ()) -> str:
    """HTML of a plan.

    `audited` says that the plan was just audited against its problem, `warnings` are shown at the top.
    """
    return environment().get_template("plan.html").render(**plan_facts(plan, audited=audited), warnings=warnings)


def plan_body(plan: PlanDocument, *, audited: bool = False, warnings: tuple[str, ...] = ()) -> str:
    """The same without the page around it."""
    return environment().get_template("plan_body.html").render(**plan_facts(plan, audited=audited), warnings=warnings)


def plan_facts(plan: PlanDocument, *, audited: bool) -> dict[str, Any]:
    """What the template of a plan shows."""
    return {
        "plan": plan,
        "title": plan.problem,
        "headline": headline(plan),
        "lines": answer_lines(plan, audited=audited),
        "boxes": boxes_of(plan),
        "legend": [(number, deployment.name) for number, deployment in enumerate(plan.deployments)],
        "most_open": MOST_OPEN,
        # In a large plan what is right is not listed line by line.
        "shown_verdicts": ("warn", "fail") if len(plan.deployments) > MOST_OPEN else ("ok", "warn", "fail"),
        "spares": any(deployment.spares for deployment in plan.deployments),
        "groups": [group for deployment in plan.deployments for group in _groups(deployment)],
        "alternatives": alternatives_table(plan),
        "rejected": rejected_table(plan),
        "rejected_words": f"{quantity_of(len(plan.rejected), 'shape')} rejected",
        "sources": sources_table(plan),
        "links": links_table(plan),
        "front": front_table(plan),
        "front_figures": () if plan.pareto is None else figures_svg({"pareto": plan.pareto.model_dump(mode="json")}, "pareto"),
    }


def _groups(deployment: DeploymentDocument) -> list[tuple[str, str, tuple[Bar, ...]]]:
    """Bars of every kind of replica of a deployment: its name, its load in words, and the bars."""
    found: list[tuple[str, str, tuple[Bar, ...]]] = []
    groups = groups_of(deployment)
    mixed = len({replica.shape for replica, _ in groups}) > 1
    for replica, count in groups:
        title = f"{deployment.name} · {quantity_of(count, 'replica')} of {shape_of(replica)} on {replica.shape.gpu}"
        words = (
            f"{replica.throughput_tokens_s:,.0f} output tokens/s a replica at batch {replica.shape.batch}; "
            f"{carried_words(deployment.capacity, deployment.load, deployment.load_unit, mixed=mixed)}"
        )
        words += "".join(
            f"; {bucket.name}: {bucket.load:,.6g} {deployment.load_unit} in {percent(bucket.fraction, 1)} of it"
            for bucket in replica.buckets
        )
        bars = (token_bar(replica, deployment.asked), first_token_bar(replica, deployment.asked), memory_bar(replica))
        found.append((title, words, bars))
    return found
