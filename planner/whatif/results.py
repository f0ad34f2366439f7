"""What is answered: each scenario with its plan, cost, proof and difference, each question with its figure; and the document of both."""

from __future__ import annotations

from typing import Any, Literal

from planner.plan.diff import PlanDifference, Snapshot
from planner.plan.document import DiagnosticDocument, Frozen, ObjectiveDocument, RejectedDocument


class DeploymentResult(Frozen):
    """What serves one deployment: `shapes` in words (`2 x TP8 x PP1 on h100-sxm-80gb`), and the worst times of its replicas [s]."""

    name: str
    shapes: str
    replicas: int
    gpus: int
    price_per_hour: float | None
    load: float
    load_unit: str
    capacity: float
    tpot_s: float
    ttft_s: float


class Solved(Frozen):
    """Answer to one problem, independent of what it is compared with: status, cost, proof, what runs where, and why not.

    `failed` means that the answer could not be computed: the process died, or the audit refused the plan; `diagnostics` say which.
    """

    problem_sha256: str
    status: Literal["optimal", "feasible", "infeasible", "unknown", "failed"]
    stopped_by: str | None
    objective: ObjectiveDocument | None
    gpus_total: int
    deployments: tuple[DeploymentResult, ...]
    misses: tuple[RejectedDocument, ...]
    diagnostics: tuple[DiagnosticDocument, ...]
    plan: Snapshot

    @property
    def found(self) -> bool:
        """Whether there is a plan."""
        return self.status in {"optimal", "feasible"}


class ScenarioResult(Frozen):
    """One scenario: its name, what it changes, its answer, and the difference from the plan as it is (None where one has no plan)."""

    name: str
    changes: tuple[str, ...]
    answer: Solved
    difference: PlanDifference | None


class QuestionResult(Frozen):
    """Answer to a question by name: a figure with its unit (None where there is none), a sentence, and the rows behind it.

    `proved` tells whether the figure is exact; else it is the best that was found within the limits.
    """

    question: str
    subject: str
    value: float | str | None
    unit: str
    proved: bool
    sentence: str
    rows: tuple[dict[str, Any], ...] = ()


class WhatIfDocument(Frozen):
    """The whole answer of a what-if. `complete` is false when it was stopped before every scenario was solved."""

    format_version: Literal[1] = 1
    problem: str
    base: Solved
    scenarios: tuple[ScenarioResult, ...]
    questions: tuple[QuestionResult, ...]
    complete: bool
