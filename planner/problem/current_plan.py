"""The plan that a problem says runs already: what runs where, read from its file as far as that tells it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.dotted_paths import find
from planner.problem.source import Source
from planner.problem.source_text import read_source, without_detours

MOST_FAULTS = 20
LARGEST_DEGREE = 1_000_000


@dataclass(frozen=True)
class RunningReplica:
    """One replica that runs: replica `number` of its deployment, and the (node, GPU) of every rank."""

    deployment: str
    number: int
    model: str
    engine: str
    engine_version: str | None
    gpu: str
    tp: int
    pp: int
    ep: int
    dp: int
    partition: tuple[int, ...]
    weights_dtype: str
    kv_dtype: str
    ranks: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class CurrentPlan:
    """What runs now; `name` is shown as its file, `sha256` is the digest of what was read of it."""

    name: str
    sha256: str
    replicas: tuple[RunningReplica, ...]


class _Part(BaseModel):
    """Part of a plan's file; what a later version adds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class _Rank(_Part):
    node: str
    gpu: int = Field(ge=0, le=LARGEST_DEGREE)


class _Shape(_Part):
    gpu: str
    tp: int = Field(ge=1, le=LARGEST_DEGREE)
    pp: int = Field(ge=1, le=LARGEST_DEGREE)
    ep: int = Field(ge=1, le=LARGEST_DEGREE)
    dp: int = Field(ge=1, le=LARGEST_DEGREE)
    partition: tuple[int, ...] = ()
    weights_dtype: str
    kv_dtype: str


class _Replica(_Part):
    shape: _Shape
    ranks: tuple[_Rank, ...] = Field(min_length=1)


class _Engine(_Part):
    name: str
    version: str | None = None


class _Deployment(_Part):
    name: str
    model: str
    engine: _Engine
    replicas: tuple[_Replica, ...]


class _Plan(_Part):
    deployments: tuple[_Deployment, ...]


def find_current(source: Source, folder: FilePath) -> tuple[CurrentPlan | None, list[Diagnostic]]:
    """Plan that a problem says runs already, with what is wrong about its file; its path is relative to `folder` unless the command names it."""
    named = find(source.data, ("current", "plan"))
    if not isinstance(named, str) or not named:
        return None, []
    path = without_detours(FilePath(named) if ("current", "plan") in source.set_paths else folder / named)
    try:
        return read_current_plan(path, path), []
    except PlannerError as error:
        place = source.place(("current", "plan"))
        return None, [fault if fault.place is not None else replace(fault, place=place) for fault in error.diagnostics]


def read_current_plan(path: str, name: str) -> CurrentPlan:
    """Read what runs from the plan file at `path`, shown as `name`.

    Raises
    ------
    PlannerError
        PLAN_NOT_FOUND, PLAN_NOT_READABLE with every key that keeps the file from being a plan, or GPU_USED_TWICE.
    """
    hint = "write a plan with `planner solve PROBLEM -o plan.json`"
    try:
        text = read_source(path)
    except PlannerError as error:
        raise PlannerError(
            Diagnostic("PLAN_NOT_FOUND" if fault.code == "FILE_NOT_FOUND" else fault.code, f"{name}: {fault.message}", hint)
            for fault in error.diagnostics
        ) from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(name, error.lineno, error.colno)
        raise PlannerError([Diagnostic("PLAN_NOT_READABLE", f"this is not JSON: {error.msg.lower()}", hint, place=place)]) from None
    except (RecursionError, ValueError):
        raise PlannerError([Diagnostic("PLAN_NOT_READABLE", f"{name} is nested too deeply or holds too long a number", hint)]) from None
    try:
        plan = _Plan.model_validate(data)
    except ValidationError as error:
        raise PlannerError(
            Diagnostic("PLAN_NOT_READABLE", f"{name}: {'.'.join(map(str, fault['loc']))}: {fault['msg'].lower()}", hint)
            for fault in error.errors(include_url=False)[:MOST_FAULTS]
        ) from None
    replicas = tuple(_replicas(plan))
    _used_once(replicas, name)
    digest = hashlib.sha256(repr(replicas).encode()).hexdigest()
    return CurrentPlan(name, digest, replicas)


def _replicas(plan: _Plan) -> Iterator[RunningReplica]:
    for deployment in plan.deployments:
        for number, replica in enumerate(deployment.replicas):
            shape = replica.shape
            yield RunningReplica(
                deployment=deployment.name,
                number=number,
                model=deployment.model,
                engine=deployment.engine.name,
                engine_version=deployment.engine.version,
                gpu=shape.gpu,
                tp=shape.tp,
                pp=shape.pp,
                ep=shape.ep,
                dp=shape.dp,
                partition=shape.partition,
                weights_dtype=shape.weights_dtype,
                kv_dtype=shape.kv_dtype,
                ranks=tuple((rank.node, rank.gpu) for rank in replica.ranks),
            )


def _used_once(replicas: tuple[RunningReplica, ...], name: str) -> None:
    """Refuse a plan in which two ranks share a GPU: nothing runs so."""
    seen: set[tuple[str, int]] = set()
    twice: dict[tuple[str, int], None] = {}
    for replica in replicas:
        for gpu in replica.ranks:
            if gpu in seen:
                twice[gpu] = None
            seen.add(gpu)
    if twice:
        shown = ", ".join(f"{node}:{gpu}" for node, gpu in list(twice)[:4])
        message = (
            f"{name}: {len(twice)} GPUs are used by two ranks ({shown})" if len(twice) > 1 else f"{name}: {shown} is used by two ranks"
        )
        raise PlannerError([Diagnostic("GPU_USED_TWICE", message, "give a plan that can run")])
