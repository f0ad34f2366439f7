"""Names that go into shells, files and Kubernetes: what is safe there, and what is refused with the way to another name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from planner.diagnostics import Diagnostic, PlannerError
from planner.launch.directory import LaunchOptions, refusal
from planner.plan.document import PlanDocument

# What a problem file allows as a name; a plan edited by hand may hold anything.
_SAFE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_KEY: Final = re.compile(r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,499}")
# What a checkpoint is called: a Hugging Face id or a path. Blanks and quotes are quoted where they are written; a name that begins with `-` is an option.
_MODEL: Final = re.compile(r"[^-\x00-\x1f\x7f-\x9f\u2028\u2029][^\x00-\x1f\x7f-\x9f\u2028\u2029]{0,4095}")


def name_faults(plan: PlanDocument, options: LaunchOptions) -> Iterator[Diagnostic]:
    """Names of deployments and models that cannot be written into a shell or a path, and names of the options that belong to none."""
    hint = "names are letters, digits, `.`, `-` and `_`; rename it in the problem and solve again"
    for name, count in Counter(deployment.name for deployment in plan.deployments).items():
        if not _SAFE.fullmatch(name) or ".." in name:
            yield refusal("LAUNCH_NAME_UNSAFE", f"{name[:60]!r} cannot be the name of a file", hint, "deployments")
        elif count > 1:
            yield refusal("LAUNCH_NAME_CLASH", f"{name} is listed {count} times", "list all replicas of a deployment once", "deployments")
    known = {deployment.name for deployment in plan.deployments}
    given: Mapping[str, Mapping[str, str]] = {
        "--model-path": options.model_paths,
        "--draft-path": options.draft_paths,
        "--name": options.names,
    }
    for option, values in given.items():
        for name in values:
            if name not in known:
                listed = ", ".join(sorted(known)[:8])
                yield refusal("DEPLOYMENT_UNKNOWN", f"the plan has no deployment {name[:60]!r}", f"name one of {listed}", option)
    for option, paths in (("--model-path", options.model_paths), ("--draft-path", options.draft_paths)):
        for name, path in paths.items():
            if not _MODEL.fullmatch(path):
                message = f"{path[:60]!r} is neither a Hugging Face id nor a path"
                yield refusal("LAUNCH_VALUE_UNSAFE", message, f"write {option} {name}=/models/{name}", option)
    if options.image is not None and not _IMAGE.fullmatch(options.image):
        yield refusal("LAUNCH_VALUE_UNSAFE", f"{options.image[:60]!r} is no container image", "write repository/name:tag", "--image")
    for option, value in (("--namespace", options.namespace), ("--queue", options.queue)):
        if value is not None and not _LABEL.fullmatch(value):
            message = f"{value[:60]!r} is no name of Kubernetes"
            yield refusal("LAUNCH_VALUE_UNSAFE", message, "write small letters, digits and `-`, at most 63", option)
    if options.topology_level is not None and not _LABEL_KEY.fullmatch(options.topology_level):
        message = f"{options.topology_level[:60]!r} is no key of a node label"
        yield refusal("LAUNCH_VALUE_UNSAFE", message, "write for example topology.kubernetes.io/zone", "--topology-level")


def node_faults(plan: PlanDocument) -> Iterator[Diagnostic]:
    """Nodes whose names are no host names."""
    names = dict.fromkeys(rank.node for deployment in plan.deployments for replica in deployment.replicas for rank in replica.ranks)
    for name in names:
        if not _HOST.fullmatch(name) or ".." in name:
            hint = "host names are letters, digits, `.` and `-`; name the node in the topology as the network does"
            yield refusal("NODE_NAME_UNSAFE", f"{name[:60]!r} is no host name", hint, "nodes")


def kubernetes_names(deployments: Mapping[str, int], options: LaunchOptions) -> dict[str, str]:
    """Name of every deployment in Kubernetes, room left for what is appended (`-0`, `-0-node-1`).

    Parameters
    ----------
    deployments
        Deployments with the length of the longest suffix that is appended to each.
    options
        Names given by the user.

    Raises
    ------
    PlannerError
        LAUNCH_NAME_NOT_DNS with the way to another name; LAUNCH_NAME_CLASH where two come out alike.
    """
    faults = []
    found = {}
    for name, longest in deployments.items():
        label = options.names.get(name, name)
        if not _LABEL.fullmatch(label) or len(label) + longest > 63:
            proposed = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[: 63 - longest].strip("-") or "model"
            message = f"{label[:60]!r} with what is appended is no DNS label of Kubernetes (small letters, digits, `-`, at most 63)"
            faults.append(refusal("LAUNCH_NAME_NOT_DNS", message, f"give it another name: --name {name}={proposed}", f"deployments.{name}"))
        found[name] = label
    for label, count in Counter(found.values()).items():
        if count > 1:
            hint = "give one of them another name with --name DEPLOYMENT=NAME"
            faults.append(refusal("LAUNCH_NAME_CLASH", f"{count} deployments would be called {label}", hint, "deployments"))
    if faults:
        raise PlannerError(faults)
    return found


def label_value(text: str) -> str | None:
    """Text as the value of a Kubernetes label; None where it cannot be one."""
    return text if _LABEL_VALUE.fullmatch(text) else None
