"""Layouts that a model, its engine and a pool allow, and why other degrees left: the menu before memory and times."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from planner.candidates.degrees import Layout, PoolRoom, layouts, pipeline_degrees, stage_degrees, tensor_degrees
from planner.candidates.direct_links import without_nvlink
from planner.candidates.legality.rulebook import Rulebook, rulebook
from planner.candidates.settings import PoolSetting
from planner.diagnostics import errors
from planner.plan.shape import Degrees, Rejection
from planner.problem.documents import Deployment
from planner.problem.load import LoadedProblem


@dataclass(frozen=True)
class Refusal:
    """Degrees that left, the level they were meant for, and why."""

    degrees: Degrees
    locality: str
    code: str
    message: str
    shortfall: float | None = None


@dataclass
class _Grid:
    layouts: list[Layout] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


class LegalGrids:
    """Legal layouts of the deployments of a problem, worked out once for those that ask the same of a pool; `force` keeps only these degrees."""

    def __init__(self, loaded: LoadedProblem, force: Degrees | None) -> None:
        self._deployments, self._force = loaded.problem.deployments, force
        self._known: dict[Hashable, tuple[Rulebook, _Grid]] = {}

    def of(self, setting: PoolSetting, room: PoolRoom) -> tuple[list[Layout], list[Rejection]]:
        """Layouts of the legal degrees of one deployment on one pool, and a rejection for every illegal one."""
        deployment, inner = self._deployments[setting.deployment], setting.setting
        book = rulebook(inner.architecture, inner.precision, setting.engine, inner.gpu)
        key = (id(book), room.pool.index, repr(deployment.parallelism), deployment.require_nvlink)
        if key not in self._known:
            # The book stays with its grid, so that no other can take its identity.
            self._known[key] = book, _grid(deployment, book, room, self._force)
        found, pool = self._known[key][1], room.pool.index
        refused = [
            Rejection(setting.deployment, pool, item.degrees, item.locality, item.code, item.message, item.shortfall)
            for item in found.refused
        ]
        return list(found.layouts), refused


def _grid(deployment: Deployment, book: Rulebook, room: PoolRoom, force: Degrees | None) -> _Grid:
    found, scope = _Grid(), room.pool.scale_up_level
    architecture = book.question.architecture
    for tensor in tensor_degrees(deployment, room, architecture):
        if force is not None and tensor != force.tensor_parallel:
            continue
        reasons = [*tensor_refusals(book, room, tensor)]
        found.refused += reasons
        if reasons:
            continue
        for data, expert in stage_degrees(deployment, room, architecture, tensor):
            for pipeline in pipeline_degrees(deployment, room, architecture, tensor * data):
                degrees = Degrees(tensor, pipeline, expert, data)
                if force is not None and degrees != force:
                    continue
                if broken := errors(book.violations(degrees)):
                    found.refused += [Refusal(degrees, scope, item.code, item.message) for item in broken]
                else:
                    _lay_out(deployment, room, degrees, found)
    return found


def tensor_refusals(book: Rulebook, room: PoolRoom, tensor: int) -> Iterator[Refusal]:
    """Why no replica of this tensor-parallel degree is possible, whatever its other degrees."""
    scope = room.pool.scale_up_level
    for item in errors(book.tensor_parallel_violations(tensor)):
        yield Refusal(Degrees(tensor), scope, item.code, item.message)
    where = "NVLink domain" if scope == "domain" else scope
    if tensor > room.pool.scope_size:
        yield Refusal(Degrees(tensor), scope, "CROSS_NODE_TP", f"TP{tensor} leaves the {where} of {room.pool.scope_size} GPUs")
    elif tensor > room.most_free:
        message = (
            f"TP{tensor} needs {tensor} free GPUs in one {where}; the fullest has {room.most_free} ({room.total_free} are free in all)"
        )
        yield Refusal(Degrees(tensor), scope, "DOMAIN_TOO_FULL", message, tensor / max(room.most_free, 1) - 1.0)


def _lay_out(deployment: Deployment, room: PoolRoom, degrees: Degrees, found: _Grid) -> None:
    """Add the layouts of legal degrees, or why there are none."""
    scope, missed = room.pool.scale_up_level, True
    for layout in layouts(room, degrees, paired=deployment.require_nvlink):
        missed = False
        if (missing := without_nvlink(deployment, room.pool, layout)) is None:
            found.layouts.append(layout)
        else:
            found.refused.append(Refusal(degrees, room.pool.levels[layout.replica_level], *missing))
    if missed:
        message = f"{degrees} needs {degrees.gpus} free GPUs in groups of {degrees.tensor_parallel} that a {scope} holds; "
        held = room.total_free
        if room.outer_levels or room.scopes < 2:
            message += f"{room.total_free} are free, {room.most_free} in the fullest {scope}"
        else:
            message = f"{degrees} needs {degrees.gpus} free GPUs in one {scope}, as no network joins the {scope}s; the fullest has {room.most_free}"
            held = room.most_free
        found.refused.append(Refusal(degrees, scope, "NOT_ENOUGH_GPUS", message, max(degrees.gpus / max(held, 1) - 1.0, 0.0)))
