"""What every reader is given: the text, the problem it belongs to, and what was said beside the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from planner.catalog.architecture import ModelArchitecture
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.gpu_words import host_names
from planner.placement.proposal import LARGEST_DEGREE, MOST_RANKS, warning
from planner.placement.seats import Host
from planner.plan.shape import Degrees
from planner.problem.load import LoadedProblem
from planner.topology.fabric import Fabric

# What a file may say about itself in a comment: `# hosts: h100-[01-02]`, `# degrees: tp8-pp2`, `# deployment: chat`.
_REMARK: Final = re.compile(
    r"[ \t]*#[ \t]*(hosts?|nodes?|nodelist|deployment|degrees|batch|gpus)[ \t]*[:=][ \t]*(\S[^\n]*?)[ \t]*", re.IGNORECASE
)
_REMARK_NAMES: Final = {"host": "hosts", "node": "hosts", "nodes": "hosts", "nodelist": "hosts"}
_DEGREE: Final = re.compile(r"(tp|pp|ep|dp)[ =:]*([0-9]{1,6})", re.IGNORECASE)
NAMES: Final = ("tp", "pp", "ep", "dp")


@dataclass(frozen=True)
class Inquiry:
    """A placement file with the problem it is for; `hosts` and `degrees` are what the user said beside the file, None where nothing."""

    text: str
    file: str
    loaded: LoadedProblem
    hosts: str | None = None
    degrees: str | None = None
    remarks: Mapping[str, tuple[str, Place]] = field(default_factory=dict)
    every_remark: tuple[tuple[str, str, Place], ...] = ()

    @property
    def fabric(self) -> Fabric:
        """The cluster the placement is on."""
        return self.loaded.fabric

    @property
    def start(self) -> Place:
        """Place of the file as a whole."""
        return Place(self.file)

    def named_hosts(self) -> tuple[Host, ...]:
        """Hosts said beside the file or in a comment of it, in order; empty where none are.

        Raises
        ------
        PlannerError
            HOST_LIST_INVALID, HOST_LIST_TOO_LARGE.
        """
        text, place = (self.hosts, Place(path="--hosts")) if self.hosts is not None else self.remarks.get("hosts", ("", self.start))
        return tuple(Host(name, place) for name in host_names(text, place)) if text.strip() else ()

    def remark_above(self, name: str, line: int | None) -> tuple[str, Place] | None:
        """Last remark of a name above a line of the file; None where there is none, or where the file makes only one, which holds for all of it."""
        own = [(text, place) for known, text, place in self.every_remark if known == name]
        above = [remark for remark in own if line is not None and remark[1].line is not None and remark[1].line < line]
        return above[-1] if above and len(own) > 1 else None

    def hosts_above(self, line: int | None) -> tuple[Host, ...]:
        """Hosts of the last `# hosts:` above a line, where the file has several and none are said beside it; empty else.

        Raises
        ------
        PlannerError
            HOST_LIST_INVALID, HOST_LIST_TOO_LARGE.
        """
        found = self.remark_above("hosts", line) if self.hosts is None else None
        return () if found is None else tuple(Host(name, found[1]) for name in host_names(*found))

    def named_degrees(self) -> tuple[dict[str, int], Place] | None:
        """Degrees said beside the file or in a comment of it; None where none are.

        Raises
        ------
        PlannerError
            SHAPE_NOT_UNDERSTOOD, OUT_OF_RANGE.
        """
        given = (self.degrees, Place(path="--degrees")) if self.degrees is not None else self.remarks.get("degrees")
        if given is None:
            return None
        text, place = given
        parts = {name.lower(): int(number) for name, number in _DEGREE.findall(text)}
        rest = _DEGREE.sub("", text).strip(" -x,{}")
        if not parts or rest:
            message = f"`{text[:60]}` is not a shape"
            raise PlannerError([Diagnostic("SHAPE_NOT_UNDERSTOOD", message, "write it as tp8, tp4-pp2 or tp1-ep8-dp8", place=place)])
        check_degrees(parts, place)
        return parts, place

    def fixed_degrees(self, index: int) -> dict[str, int]:
        """Degrees that the problem fixes for its deployment `index`: those it allows one value of."""
        allowed = self.loaded.problem.deployments[index].parallelism
        if allowed is None:
            return {}
        values = {name: getattr(allowed, name) for name in NAMES}
        return {name: degrees[0] for name, degrees in values.items() if degrees is not None and len(degrees) == 1}

    def deployment_index(self, name: str) -> int | None:
        """Position of a deployment in the problem; None where it has none of that name."""
        return next((index for index, asked in enumerate(self.loaded.problem.deployments) if asked.name == name), None)

    def only_deployment(self) -> str | None:
        """Name that the file's remark gives, else the problem's only deployment; None where it has several."""
        if "deployment" in self.remarks:
            return self.remarks["deployment"][0]
        deployments = self.loaded.problem.deployments
        return deployments[0].name if len(deployments) == 1 else None

    def architecture(self, name: str) -> ModelArchitecture | None:
        """Model of a deployment; None where the problem has none of that name."""
        index = self.deployment_index(name)
        return None if index is None else self.loaded.architectures[index]


def inquiry(text: str, file: str, loaded: LoadedProblem, hosts: str | None = None, degrees: str | None = None) -> Inquiry:
    """A file's text with the remarks that its comments make."""
    remarks: dict[str, tuple[str, Place]] = {}
    every: list[tuple[str, str, Place]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        found = _REMARK.fullmatch(line) if "#" in line else None
        if found is not None:
            name = _REMARK_NAMES.get(found[1].lower(), found[1].lower())
            place = Place(file, number, found.start(2) + 1)
            remarks.setdefault(name, (found[2], place))
            every.append((name, found[2], place))
    return Inquiry(text, file, loaded, hosts, degrees, remarks, tuple(every))


def check_degrees(parts: Mapping[str, int], place: Place) -> None:
    """Refuse degrees that no machine has.

    Raises
    ------
    PlannerError
        OUT_OF_RANGE, each degree that is.
    """
    faults = [
        Diagnostic(
            "OUT_OF_RANGE",
            f"{name} {value:,} is not from 1 to {LARGEST_DEGREE:,}",
            f"write {name} from 1 to {LARGEST_DEGREE:,}",
            place=place,
        )
        for name, value in parts.items()
        if not 1 <= value <= LARGEST_DEGREE
    ]
    size = parts.get("tp", 1) * parts.get("pp", 1) * parts.get("dp", 1)
    if not faults and size > MOST_RANKS:
        faults.append(Diagnostic("OUT_OF_RANGE", f"one replica of {size:,} ranks", f"at most {MOST_RANKS:,} are read", place=place))
    if faults:
        raise PlannerError(faults)


def degrees_of(parts: Mapping[str, int]) -> Degrees:
    """Degrees from their short names; those not named are 1."""
    return Degrees(parts.get("tp", 1), parts.get("pp", 1), parts.get("ep", 1), parts.get("dp", 1))


def no_deployment(request: Inquiry, place: Place) -> Diagnostic:
    """DEPLOYMENT_NOT_NAMED: the problem has several deployments and the placement does not say which."""
    names = ", ".join(asked.name for asked in request.loaded.problem.deployments[:8])
    return Diagnostic("DEPLOYMENT_NOT_NAMED", "the placement does not say which deployment it is for", f"name one of {names}", place=place)


def no_degrees(place: Place) -> Diagnostic:
    """DEGREES_MISSING: nothing says how the model is cut."""
    hint = "add `# degrees: tp8-pp2` to the file, give `--degrees tp8-pp2`, or fix them in the problem's `parallelism`"
    return Diagnostic("DEGREES_MISSING", "nothing says how the model is cut over the ranks", hint, place=place)


def hosts_assumed(place: Place) -> Diagnostic:
    """HOSTS_ASSUMED: the placement names no hosts, so the first free GPUs of the topology are taken."""
    hint = "name the hosts, `--hosts h100-[01-02]` or `# hosts: ...` in the file, to have the real placement judged"
    return warning("HOSTS_ASSUMED", "no hosts are named; the first free GPUs of the topology are taken", hint, place)
