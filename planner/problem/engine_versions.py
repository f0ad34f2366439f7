"""Versions of engines that a problem leaves open, where the default one is too old for the model."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engine_choice import version_for
from planner.catalog.engines import engine
from planner.diagnostics import Diagnostic, Place, Severity
from planner.problem.documents import Problem


def with_engine_versions(problem: Problem, architectures: Sequence[ModelArchitecture]) -> tuple[Problem, list[Diagnostic]]:
    """The problem with the version that each deployment's model needs, and a note for each that was chosen here."""
    deployments, notes = [], []
    for index, (deployment, architecture) in enumerate(zip(problem.deployments, architectures, strict=True)):
        asked = deployment.engine
        version = version_for(asked.name, asked.version, architecture)
        if version == asked.version:
            deployments.append(deployment)
            continue
        deployments.append(deployment.model_copy(update={"engine": asked.model_copy(update={"version": version})}))
        default = engine(asked.name)
        message = f"{architecture.name} runs from {default.title} {version} on, which is taken instead of {default.version}"
        place = Place(path=f"deployments.{index}.engine")
        notes.append(Diagnostic("ENGINE_NEWER", message, "name the version that will run", Severity.NOTE, place))
    return problem.model_copy(update={"deployments": tuple(deployments)}) if notes else problem, notes
