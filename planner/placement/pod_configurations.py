"""Manifests whose parts belong together: pods of one replica in several workloads, and the configuration an engine is given in a ConfigMap."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.diagnostics import PlannerError
from planner.placement.command_lines import continues
from planner.placement.engine_config import take_configuration
from planner.placement.manifest_text import mapping
from planner.placement.pod_groups import PodGroup
from planner.problem.source import Source
from planner.problem.yaml_source import read_yaml


def together(groups: Sequence[PodGroup]) -> list[PodGroup]:
    """Groups of one pod whose commands are the nodes of one launch (`--node-rank`, `--data-parallel-start-rank`) as one group."""
    found: list[PodGroup] = []
    for group in groups:
        before = found[-1] if found else None
        pods = [] if before is None else [pod for pod, _ in before.pods]
        commands = [pod.command for pod in pods if pod.command is not None]
        command = group.command
        if (
            before is not None
            and command is not None
            and len(commands) == len(pods)
            and before.replicas == group.replicas == 1
            and continues(commands, command)
        ):
            found[-1] = replace(before, pods=[*before.pods, *group.pods])
        else:
            found.append(group)
    return found


def take_configurations(groups: Sequence[PodGroup], sources: Sequence[Source]) -> None:
    """Give every command what its configuration says: the ConfigMap entry of the file's name, or the overrides on its own line."""
    maps = {
        str(name): text
        for source in sources
        if source.data.get("kind") == "ConfigMap"
        for name, text in mapping(source.data.get("data")).items()
        if isinstance(text, str)
    }
    for group in groups:
        for pod, _ in group.pods:
            command = pod.command
            if command is None or command.engine != "tensorrt-llm":
                continue
            named = command.options.text("config_file")
            text = maps.get((named or "").rsplit("/", 1)[-1])
            data = _yaml(text) if text is not None else None
            if isinstance(data, dict):
                take_configuration(command, data)
            overrides = _json(command.options.text("overrides"))
            if isinstance(overrides, dict):
                take_configuration(command, overrides)


def _yaml(text: str) -> Any:
    try:
        return read_yaml(text, "").data
    except PlannerError:
        return None


def _json(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None
