"""A plan of the planner's own (`plan.json`) as a placement: judged as it stands, every figure it claims included."""

from __future__ import annotations

from typing import Final

from planner.diagnostics import Place
from planner.placement.inquiry import Inquiry
from planner.placement.proposal import (
    KV_CACHES,
    LARGEST_DEGREE,
    WEIGHTS,
    EngineSettings,
    Proposal,
    ProposedDeployment,
    ProposedGpu,
    ProposedReplica,
)
from planner.plan.ageing import age_of
from planner.plan.document import ReplicaDocument
from planner.plan.reading import plan_of
from planner.plan.shape import Degrees
from planner.problem.dotted_paths import Path
from planner.problem.json_source import json_marks

KIND: Final = "plan"


def read_plan_file(request: Inquiry) -> Proposal:
    """Read a plan document, with the place of every deployment, replica and rank in the file.

    Raises
    ------
    PlannerError
        PLAN_NOT_READABLE.
    """
    text = request.text.lstrip("\ufeff")
    plan = plan_of(text, request.file)
    try:
        _, marks = json_marks(text.replace("\t", " "))
    except (ValueError, IndexError, RecursionError):  # a document that only Python takes for JSON has no places
        marks = {}
    places: dict[str, Place] = {}

    def put(path: Path, shown: str) -> Place:
        mark = marks.get(path, (None, None))
        places[shown] = Place(request.file, mark[0], mark[1], shown)
        return places[shown]

    deployments: list[ProposedDeployment] = []
    for number, deployment in enumerate(plan.deployments):
        here = f"deployments.{deployment.name}"
        place = put(("deployments", number), here)
        for index, replica in enumerate(deployment.replicas):
            path: Path = ("deployments", number, "replicas", index)
            shown = f"{here}.replicas.{index}"
            own = put(path, shown)
            gpus = tuple(
                ProposedGpu(rank.node, rank.gpu, put((*path, "ranks", row), f"{shown}.ranks.{row}"))
                for row, rank in enumerate(replica.ranks)
            )
            degrees = _degrees(replica)
            if degrees is not None:
                given = ProposedReplica(degrees, gpus, own, replica.shape.batch, replica.shape.partition, index)
                deployments.append(ProposedDeployment(deployment.name, place, (given,), _formats(replica)))
    return Proposal(KIND, request.file, tuple(deployments), age_of(plan, request.loaded.sha256, request.file), plan, places)


def _degrees(replica: ReplicaDocument) -> Degrees | None:
    """Degrees of a replica; None for those that no machine has, which the auditor reports."""
    shape = replica.shape
    values = (shape.tp, shape.pp, shape.ep, shape.dp)
    return Degrees(*values) if min(values) >= 1 and max(values) <= LARGEST_DEGREE else None


def _formats(replica: ReplicaDocument) -> EngineSettings:
    """Number formats of a replica; those that are none are left to the auditor."""
    weights, kv_cache = replica.shape.weights_dtype, replica.shape.kv_dtype
    return EngineSettings(weights=weights if weights in WEIGHTS else None, kv_cache=kv_cache if kv_cache in KV_CACHES else None)


def is_plan(data: object) -> bool:
    """Tell whether data looks like a plan document."""
    return isinstance(data, dict) and {"provenance", "deployments", "format_version"} <= set(data)
