"""Typed results of the Python interface: what `planner.solve`, `planner.audit` and `planner.what_if` return, readable in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.answer.answering import Answer
    from planner.diagnostics import Diagnostic
    from planner.plan.diff import PlanDifference
    from planner.plan.document import ParetoDocument, PlanDocument
    from planner.problem.load import LoadedProblem
    from planner.whatif.results import QuestionResult, ScenarioResult, Solved, WhatIfDocument
    from planner.whatif.what_if import Response


def html_table(rows: Iterable[Mapping[str, Any]], caption: str = "") -> str:
    """Rows as an HTML table; everything is escaped."""
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in names) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, repr=False)
class Solution:
    """An audited plan. `plan` is the document that `planner solve --json` prints; `answer` has what it was made from."""

    answer: Answer

    @property
    def plan(self) -> PlanDocument:
        """The whole plan."""
        return self.answer.plan

    @property
    def problem(self) -> LoadedProblem:
        """The problem it answers."""
        return self.answer.loaded

    @property
    def status(self) -> str:
        """optimal, feasible, infeasible or unknown."""
        return self.plan.status

    @property
    def cost_per_hour(self) -> float | None:
        """Cost in the topology's currency [per hour], None without a price or a plan."""
        return self.plan.cost_per_hour

    @property
    def gpus_used(self) -> int:
        """GPUs that run something."""
        return self.plan.gpus_used

    @property
    def pareto(self) -> ParetoDocument | None:
        """Money against latency, the cheapest plan first; None where it was not asked for."""
        return self.plan.pareto

    @property
    def pareto_plans(self) -> tuple[PlanDocument, ...]:
        """The whole plan of each point of `pareto`, audited."""
        return () if self.answer.front is None else self.answer.front.plans

    def explain(self, shape: str) -> list[str]:
        """Say why a shape (`tp16`, `tp4-pp2`) is or is not in the plan.

        Raises
        ------
        PlannerError
            When the shape cannot be read.
        """
        return self.answer.explain(shape)

    def difference(self, other: Solution | PlanDocument) -> PlanDifference:
        """What changes from this plan to another one."""
        from planner.plan.diff import plan_difference

        return plan_difference(self.plan, other.plan if isinstance(other, Solution) else other)

    def __repr__(self) -> str:
        from planner.report.terminal import headline

        return f"<Solution {headline(self.plan)}>"

    def __str__(self) -> str:
        from planner.report.terminal import plan_lines

        return "\n".join(plan_lines(self.plan, self.problem.fabric, self.answer.targets()))

    def _repr_html_(self) -> str:
        from planner.report.terminal import headline
        from planner.whatif.solving import solved_of

        rows = [item.model_dump() for item in solved_of(self.answer).deployments]
        if rows:
            return html_table(rows, headline(self.plan))
        misses = [{"deployment": item.deployment, "code": item.code, "message": item.message} for item in self.plan.rejected[:10]]
        return html_table(misses, headline(self.plan))


@dataclass(frozen=True, repr=False)
class AuditReport:
    """What an audit found; `ok` when it found nothing. Iterates over its diagnostics."""

    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """Whether the plan keeps every rule and every figure in it is right."""
        return not self.diagnostics

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)

    def __repr__(self) -> str:
        codes = ", ".join(dict.fromkeys(item.code for item in self.diagnostics))
        return "<AuditReport ok>" if self.ok else f"<AuditReport {len(self)} findings: {codes}>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics)) or "nothing is wrong with the plan"

    def _repr_html_(self) -> str:
        rows = [
            {
                "code": item.code,
                "severity": item.severity.value,
                "place": "" if item.place is None else str(item.place),
                "message": item.message,
                "hint": item.hint,
            }
            for item in self.diagnostics
        ]
        return html_table(rows, repr(self)[1:-1])


@dataclass(frozen=True, repr=False)
class WhatIf:
    """Scenarios and questions with their answers. `document` is what `planner whatif --json` prints. Iterates over the scenarios."""

    response: Response

    @property
    def document(self) -> WhatIfDocument:
        """The whole answer."""
        return self.response.document

    @property
    def base(self) -> Solved:
        """Answer of the problem as it is."""
        return self.document.base

    @property
    def scenarios(self) -> tuple[ScenarioResult, ...]:
        """Every scenario with its answer and its difference from the plan as it is."""
        return self.document.scenarios

    @property
    def questions(self) -> tuple[QuestionResult, ...]:
        """Every question with its answer."""
        return self.document.questions

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Flat rows, the problem as it is first: the columns of `--csv`."""
        from planner.whatif.tables import rows_of

        return rows_of(self.document)

    def frame(self) -> Any:
        """Rows as a pandas data frame.

        Raises
        ------
        PlannerError
            EXTRA_MISSING when pandas is not installed.
        """
        from planner.whatif.tables import frame

        return frame(self.rows)

    def __getitem__(self, name: str) -> ScenarioResult:
        return next(item for item in self.scenarios if item.name == name)

    def __iter__(self) -> Iterator[ScenarioResult]:
        return iter(self.scenarios)

    def __len__(self) -> int:
        return len(self.scenarios)

    def __repr__(self) -> str:
        unsolved = "" if self.document.complete else ", not complete"
        return f"<WhatIf {self.document.problem}: {len(self.scenarios)} scenarios, {len(self.questions)} questions{unsolved}>"

    def __str__(self) -> str:
        lines = [f"{row['scenario']}: {row['status']}{_figures(row)}" for row in self.rows] if self.scenarios or not self.questions else []
        return "\n".join([*lines, *(question.sentence for question in self.questions)])

    def _repr_html_(self) -> str:
        shown = ("scenario", "status", "cost_per_hour", "cost_change", "gap", "gpus", "started", "stopped", "moved", "plan", "why")
        tables = [html_table([{name: row[name] for name in shown} for row in self.rows], self.document.problem)]
        tables += [html_table(question.rows, question.sentence) for question in self.questions]
        return "".join(tables)


def _figures(row: Mapping[str, Any]) -> str:
    cost = "" if row["cost_per_hour"] is None else f", {row['cost_per_hour']:,.2f}/h"
    change = "" if row["cost_change"] is None else f" ({row['cost_change']:+,.2f})"
    return f"{cost}{change}" + ("" if row["gpus"] is None else f", {row['gpus']} GPUs")
