"""Which version of an engine runs a model, where nobody names one."""

from __future__ import annotations

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import Engine, engine, parted


def engine_for(name: str, architecture: ModelArchitecture) -> Engine:
    """Look up an engine to run a model with: in the version that its name carries, else in one that runs the model (`version_for`).

    Raises
    ------
    PlannerError
        UNKNOWN_ENGINE with the nearest names.
    """
    bare, version = parted(name, None)
    return engine(bare, version_for(bare, version, architecture))


def version_for(name: str, version: str | None, architecture: ModelArchitecture) -> str | None:
    """Version of an engine that runs a model: the one named; None = the default one, but for models whose attention came later.

    Raises
    ------
    PlannerError
        UNKNOWN_ENGINE with the nearest names.
    """
    found = engine(name, version)
    rule = found.rule("compressed_attention")
    if version is not None or not architecture.compressed or rule is None or rule.effect != "error":
        return version
    return found.compressed_attention_from
