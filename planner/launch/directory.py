"""A launch directory in memory: its files, what is to be known about them, and what the user asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.diagnostics import Diagnostic, Place, Severity


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """One file: its path inside the directory (with `/`), its text, and whether it may be executed."""

    path: str
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class LaunchDirectory:
    """What a target makes of a plan; `diagnostics` are warnings and notes, never errors."""

    target: str
    files: tuple[LaunchFile, ...]
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class LaunchOptions:
    """What the plan cannot know.

    `model_paths`, `draft_paths` and `names` map a deployment to where its checkpoint and its draft's lie (a Hugging Face id or a path on the nodes) and to
    the name it gets in Kubernetes. `image` is the container image, `namespace` the Kubernetes namespace, `queue` the Kueue LocalQueue, `topology_level` the node label that
    joins the pods of one replica (None: as the plan's locality says). None = the engine's own or none at all.
    """

    model_paths: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    namespace: str | None = None
    queue: str | None = None
    topology_level: str | None = None
    draft_paths: Mapping[str, str] = field(default_factory=dict)


def refusal(code: str, message: str, hint: str, path: str = "") -> Diagnostic:
    """What a launch cannot do, which stops it."""
    return Diagnostic(code, message, hint, place=Place(path=path))


def caution(code: str, message: str, hint: str, path: str = "") -> Diagnostic:
    """What the reader of the files has to know: told on stderr and in the README of the directory."""
    return Diagnostic(code, message, hint, Severity.WARNING, Place(path=path))
