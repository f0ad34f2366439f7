"""Naming the version that is taken anyway changes nothing, and no version falls back to the figures of an engine nobody measured."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from planner.candidates.settings import pool_settings
from planner.catalog.engines import engine, engine_names, engines
from planner.catalog.gpus import gpus
from planner.catalog.read import DATA
from planner.catalog.step_times import step_constants
from planner.catalog.versions import version_key
from planner.cost.evaluation import evaluate
from planner.cost.memory import memory
from planner.cost.setting import ShapeArrays
from planner.problem.load import load_problem

PROBLEM = str(Path(__file__).parents[2] / "problems" / "mixed_fleet.yaml")
ARCHITECTURES = sorted({gpu.architecture for gpu in gpus()})


def versions_of(name):
    """Every version that the tables of the catalog name: defaults, the newest, and the bounds of rules and constants."""
    row = tomllib.loads((DATA / "engines.toml").read_text())[name]
    entries = [entry for part in row.values() if isinstance(part, list) for entry in part if isinstance(entry, dict)]
    bounds = {bound for entry in entries for bound in re.findall(r"[<>=]+([0-9.]+)", entry.get("versions", ""))}
    return sorted({row["default_version"], row["newest_version"], *bounds}, key=version_key)


def shapes():
    """Single GPUs and TP pairs at several batches."""
    batch = np.array([1, 8, 64, 256] * 2, dtype=np.int64)
    tensor = np.repeat([1, 2], 4).astype(np.int64)
    one, near = np.ones_like(batch), (tensor > 1).astype(np.int64)
    return ShapeArrays(tensor, one, one, one, batch, near, near, one, near)


def figures(context):
    """Bytes of every column of times and memory."""
    tables = (evaluate(context.setting, shapes()), memory(context.setting, shapes()))
    columns = (np.asarray(getattr(table, field.name)) for table in tables for field in dataclasses.fields(table))
    return [column.tobytes() if column.dtype != object else column.tolist() for column in columns]


def contexts(version, name, profile):
    """Every setting of the shipped mixed fleet (A100, H100, L40S) with one engine for all deployments."""
    chosen = f"{{name: {name}}}" if version is None else f'{{name: {name}, version: "{version}"}}'
    overrides = (f"profile={profile}", *(f"deployments.{deployment}.engine={chosen}" for deployment in ("chat", "code", "tags")))
    loaded = load_problem(PROBLEM, overrides)
    for index in range(len(loaded.problem.deployments)):
        for pool in loaded.fabric.pools:
            yield from pool_settings(loaded, index, pool)


@pytest.mark.parametrize("profile", ["calibrated", "hockney"])
@pytest.mark.parametrize("name", engine_names())
def test_the_default_version_by_name_is_the_default(name, profile):
    count = 0
    for plain, named in zip(contexts(None, name, profile), contexts(engine(name).version, name, profile), strict=True):
        assert named.setting.engine != plain.setting.engine
        assert figures(named) == figures(plain)
        assert (named.targets, named.sequences_per_rank) == (plain.targets, plain.sequences_per_rank)
        count += 1
    assert count >= 9


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_default_version_by_name_has_the_constants_of_the_default(architecture):
    for rules in engines():
        known = step_constants(rules.name, architecture)
        for said in (f"{rules.name} {rules.version}", f"{rules.name}=={rules.version}", f"{rules.name} {rules.version}.0"):
            assert step_constants(said, architecture) == known


@pytest.mark.parametrize("name", engine_names())
def test_every_version_has_constants_of_its_engine_and_says_whose(name):
    default = engine(name).version
    for version in versions_of(name):
        for architecture in ARCHITECTURES:
            found = step_constants(f"{name} {version}", architecture)
            assert found.engine == step_constants(name, architecture).engine != "generic"
            if found.basis == "assumed":
                assert found.source.startswith("constants of ")
            elif version_key(version) != version_key(default):
                # Only tables that name their versions are measured on another than the default.
                assert name == "tensorrt-llm"


def test_another_version_stands_in_by_name():
    default, other = step_constants("sglang 0.5.5", "hopper"), step_constants("sglang 0.4", "hopper")
    assert default.basis == "measured"
    assert other.basis == "assumed"
    assert other.source == f"constants of hopper and version 0.5.5 stand in: {default.source}"
    assert dataclasses.replace(other, basis=default.basis, source=default.source) == default
