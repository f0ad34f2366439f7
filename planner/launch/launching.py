"""A plan -> the files of a target: what cannot be told to it is refused, what it decides by itself is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from planner.catalog.nearest import nearest
from planner.diagnostics import Diagnostic, PlannerError
from planner.launch.directory import LaunchDirectory, LaunchFile, LaunchOptions, caution, refusal
from planner.launch.engine_flags import checked_version
from planner.launch.guide import Step, guide
from planner.launch.ranks_file import RANKS_FILE, ranks_file
from planner.launch.replicas import Replica, replicas_of
from planner.plan.document import PlanDocument

GUIDE: Final = "README.md"


@dataclass(frozen=True)
class Target:
    """One target: its module in `planner.launch.targets`, and the file that `planner validate` reads back (None = only `placement.yaml`)."""

    module: str
    readable: str | None

    def load(self) -> Any:
        """Module of the target: ENGINES, faults, files and steps."""
        return import_module(f"planner.launch.targets.{self.module}")


TARGETS: Final[Mapping[str, Target]] = {
    "vllm": Target("vllm", "serve.sh"),
    "sglang": Target("sglang", "serve.sh"),
    "tensorrt-llm": Target("tensorrt_llm", "serve.sh"),
    "dynamo": Target("dynamo", "dynamo.yaml"),
    "leader-worker-set": Target("leader_worker_set", "leader-worker-set.yaml"),
    "kubernetes": Target("kubernetes", "kubernetes.yaml"),
    "slurm": Target("slurm", "launch.sbatch"),
    "ray": Target("ray", None),
}
"""Targets by the names that `--for` takes."""

_OTHER_NAMES: Final = {
    "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm",
    "lws": "leader-worker-set",
    "k8s": "kubernetes",
    "sbatch": "slurm",
}


def launch(plan: PlanDocument, target: str, options: LaunchOptions | None = None) -> LaunchDirectory:
    """Write a plan down for a target.

    Parameters
    ----------
    plan
        Plan as `planner solve -o` writes it.
    target
        One of `TARGETS`.
    options
        What the plan cannot know: where checkpoints are, names, images.

    Returns
    -------
    LaunchDirectory
        Files, README first, and what is to be known about them.

    Raises
    ------
    PlannerError
        WRONG_CHOICE, ENGINE_NOT_OF_TARGET, and everything that the plan's names, checkpoints or the target refuse.
    """
    asked = options or LaunchOptions()
    name = known_target(target)
    known = TARGETS[name]
    replicas, notes = replicas_of(plan, asked)
    module = known.load()
    replicas, others = _of_engines(replicas, module.ENGINES, name)
    notes = [note for note in notes if not others or _about(note, replicas)] + others
    faults = module.faults(replicas, asked)
    if faults:
        raise PlannerError(dict.fromkeys(faults))
    notes += [*_versions(replicas), *_lengths(plan, replicas), *getattr(module, "cautions", _nothing)(replicas, asked)]
    written: list[LaunchFile] = module.files(replicas, asked)
    steps: list[Step] = module.steps(replicas, asked)
    told = tuple(dict.fromkeys(notes))
    readme = LaunchFile(GUIDE, guide(plan, name, replicas, steps, told, known.readable))
    return LaunchDirectory(name, (readme, *written, LaunchFile(RANKS_FILE, ranks_file(plan, replicas))), told)


def _nothing(_replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    return []


def known_target(name: str) -> str:
    """Target that a name stands for.

    Raises
    ------
    PlannerError
        WRONG_CHOICE.
    """
    found = _OTHER_NAMES.get(name.lower(), name.lower())
    if found in TARGETS:
        return found
    close = nearest(found, tuple(TARGETS), limit=1)
    hint = f"write one of {', '.join(TARGETS)}" + (f"; did you mean {close[0]}?" if close else "")
    raise PlannerError([refusal("WRONG_CHOICE", f"`{name[:40]}` is no target", hint, "--for")])


def _of_engines(replicas: Sequence[Replica], engines: Sequence[str], target: str) -> tuple[list[Replica], list[Diagnostic]]:
    """Replicas of the engines that a target starts, and which deployments it leaves to another.

    Raises
    ------
    PlannerError
        ENGINE_NOT_OF_TARGET where it starts none of them.
    """
    own = [replica for replica in replicas if replica.engine.name in engines]
    others: dict[str, Replica] = {replica.deployment: replica for replica in replicas if replica.engine.name not in engines}
    told: list[Diagnostic] = []
    for name, replica in others.items():
        title = replica.engine.title
        hint = f"launch it with --for {replica.engine.name}, or write `engine: {engines[0]}` into the problem and solve again"
        build: Callable[..., Diagnostic] = caution if own else refusal
        message = f"{name} is planned for {title}, which --for {target} does not start"
        told.append(build("ENGINE_NOT_OF_TARGET", message, hint, f"deployments.{name}"))
    if not own:
        raise PlannerError(told)
    return own, told


def _about(note: Diagnostic, replicas: Sequence[Replica]) -> bool:
    """Whether a note is about one of the deployments that are launched."""
    path = "" if note.place is None else note.place.path
    return path in {f"deployments.{replica.deployment}" for replica in replicas}


def _versions(replicas: Sequence[Replica]) -> list[Diagnostic]:
    """Engines of another version than the one whose options were checked."""
    found = []
    for replica in replicas:
        checked = checked_version(replica.engine.name)
        if replica.engine.version != checked:
            message = f"the options are those of {replica.engine.title} {checked}, the plan is for {replica.engine.version}"
            hint = f"compare them with the help of version {replica.engine.version} before you start"
            found.append(caution("OPTIONS_OF_ANOTHER_VERSION", message, hint, f"deployments.{replica.deployment}"))
    return found


def _lengths(plan: PlanDocument, replicas: Sequence[Replica]) -> list[Diagnostic]:
    """Deployments whose longest context is just the mean request of the workload."""
    found = []
    requests = {deployment.name: deployment.request_tokens for deployment in plan.deployments}
    for replica in replicas:
        if replica.limits.max_model_len == requests[replica.deployment]:
            message = f"requests of more than {replica.limits.max_model_len:,} tokens are refused: the plan counts with that length and no longer one"
            hint = "write `memory: {max_model_len: ...}` into the problem and solve again if prompts vary"
            found.append(caution("CONTEXT_AS_PLANNED", message, hint, f"deployments.{replica.deployment}"))
    return found
