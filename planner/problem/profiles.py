"""Profiles: the two that come with the planner, and files of measured figures over either of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final

from planner.catalog.collectives import CollectiveSeries, Segment
from planner.catalog.facts import Fact
from planner.catalog.gpus import gpu
from planner.catalog.links import NIC_KINDS, link
from planner.catalog.measured import NOTHING, MeasuredGpu, MeasuredLink, Measurements
from planner.catalog.nearest import nearest
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity, raise_errors
from planner.problem.dotted_paths import Path
from planner.problem.form_faults import read_document
from planner.problem.profile_document import Collective, GpuProfile, LinkProfile, ProfileDocument
from planner.problem.source import Source
from planner.problem.source_text import display_name, read_source, without_detours
from planner.problem.yaml_source import read_yaml
from planner.topology.fabric import Fabric, Pool

NAMES: Final = ("calibrated", "hockney")
# Links that no GPU has: what two processes measure between themselves on processors.
PROCESSOR_LINKS: Final = ("gloo-loopback", "gloo-network")


@dataclass(frozen=True)
class Profile:
    """A profile ready for use: its name as plans show it, the physics it stands on, and what it measured. `document` is None for the built-in ones."""

    name: str = "calibrated"
    base: str = "calibrated"
    measured: Measurements = NOTHING
    document: ProfileDocument | None = None

    @property
    def contents(self) -> Any:
        """What identifies the profile in a digest: its name, or the whole file."""
        return self.name if self.document is None else self.document.model_dump(mode="json")

    @property
    def summary(self) -> str:
        """One line that says what was read."""
        links, gpus = sorted(self.measured.links), sorted(self.measured.gpus)
        return f"{self.name}: a valid profile over {self.base}, measured: {', '.join([*links, *gpus]) or 'nothing'}"


def names_a_file(text: str) -> bool:
    """Tell whether a profile is named by the path of its file rather than by name."""
    return text.endswith((".yaml", ".yml", ".json")) or "/" in text or text.startswith("~")


def find_profile(text: str, folder: FilePath) -> Profile:
    """Profile by name, or from the file that `text` names relative to `folder`.

    Raises
    ------
    PlannerError
        UNKNOWN_PROFILE, PROFILE_NOT_FOUND, or every fault of the file.
    """
    if text in NAMES:
        return Profile(text, text)
    if not names_a_file(text):
        close = nearest(text, NAMES)
        hint = f"write {close[0] if close else ' or '.join(NAMES)}, or the path of a profile file such as ./cluster.yaml"
        raise PlannerError([Diagnostic("UNKNOWN_PROFILE", f"no profile is called {text[:60]!r}", hint)])
    try:
        path = without_detours(folder / FilePath(text).expanduser())
    except (OSError, ValueError, RuntimeError):
        message = f"the path {text[:100]!r} cannot be used"
        raise PlannerError([Diagnostic("FILE_NOT_READABLE", message, "name a profile file")]) from None
    try:
        return read_profile(read_yaml(read_source(path), display_name(path)))
    except PlannerError as error:
        raise PlannerError([_about_file(fault, path) for fault in error.diagnostics]) from None


def _about_file(fault: Diagnostic, path: str) -> Diagnostic:
    """A file that cannot be read at all is reported where it is named; a fault inside keeps its own place."""
    if fault.place is not None and (fault.place.line is not None or fault.place.path):
        return fault
    code = "PROFILE_NOT_FOUND" if fault.code == "FILE_NOT_FOUND" else fault.code
    return replace(fault, code=code, message=f"profile file {path}: {fault.message}", place=None)


def is_profile(keys: Iterable[str]) -> bool:
    """Tell a profile from problems and topologies by the keys at its top."""
    found = set(keys)
    return bool(found & {"links", "gpus"}) and not found & {"deployments", "topology", "nodes", "build", "graph"}


def read_profile(source: Source) -> Profile:
    """Profile that a file holds.

    Raises
    ------
    PlannerError
        With every fault of the file.
    """
    if not isinstance(source.data, dict):
        fault = Diagnostic(
            "ROOT_NOT_MAPPING", "the file is not made of keys", "begin with `name: ...` and `links:`", place=source.place(())
        )
        raise PlannerError([*source.faults, fault])
    document, faults = read_document(ProfileDocument, source)
    if document is None:
        raise PlannerError([*source.faults, *faults])
    measured, found = measurements(document)
    faults += [replace(fault, place=source.place(path)) for path, fault in found]
    raise_errors([*source.faults, *faults])
    return Profile(document.name, document.base, measured, document)


def measurements(document: ProfileDocument) -> tuple[Measurements, list[tuple[Path, Diagnostic]]]:
    """What a document measured, by catalog name, with each fault and where it stands."""
    faults: list[tuple[Path, Diagnostic]] = []
    links: dict[str, MeasuredLink] = {}
    gpus: dict[str, MeasuredGpu] = {}
    for name, entry in document.links.items():
        try:
            known = link_name(name)
        except PlannerError as error:
            faults += [(("links", name), fault) for fault in error.diagnostics]
            continue
        if known in links:
            message = f"`{name}` is {known}, which is there already"
            faults.append((("links", name), Diagnostic("DUPLICATE_NAME", message, "keep one of them")))
        links[known] = _link(known, entry, document.name)
        faults += _disorder(name, entry)
    for name, reached in document.gpus.items():
        try:
            gpus[gpu(name).name] = _gpu(reached, document.name)
        except PlannerError as error:
            faults += [(("gpus", name), fault) for fault in error.diagnostics]
    return Measurements(document.base, links, gpus), faults


def link_name(name: str) -> str:
    """Catalog name of a link; NICs that the catalog does not list go by kind and speed in Gb/s (`ethernet-25`).

    Raises
    ------
    PlannerError
        UNKNOWN_LINK.
    """
    kind, _, speed = name.rpartition("-")
    try:
        return link(name).name
    except PlannerError:
        if name in PROCESSOR_LINKS or (kind in NIC_KINDS and speed.replace(".", "", 1).isdecimal()):
            return name
        raise


def unused(profile: Profile, fabric: Fabric) -> list[Diagnostic]:
    """Warn when a profile measured links and GPUs of which the topology has none."""
    there = set[str]().union(*map(_parts_of, fabric.pools))
    return _unused(profile, there, "the topology")


def unused_here(profile: Profile, pool: Pool) -> list[Diagnostic]:
    """Warn when a profile measured nothing of one kind of hardware."""
    return _unused(profile, _parts_of(pool), "the hardware")


def _parts_of(pool: Pool) -> set[str]:
    return {pool.gpu.name, pool.wiring.pcie.name, *(path.link.name for path in pool.paths)}


def _unused(profile: Profile, there: set[str], what: str) -> list[Diagnostic]:
    measured = [*profile.measured.links, *profile.measured.gpus]
    if not measured or there.intersection(measured):
        return []
    message = f"profile {profile.name} measured {', '.join(measured[:5])}, and {what} has none of them"
    return [Diagnostic("PROFILE_UNUSED", message, f"{what} has {', '.join(sorted(there))}", Severity.WARNING, Place(path="profile"))]


def _link(name: str, entry: LinkProfile, profile: str) -> MeasuredLink:
    source = entry.source or f"profile {profile}"

    def fact(value: float | None) -> Fact | None:
        return None if value is None else Fact(value, "measured", source)

    paper, calibrated = entry.hockney, entry.calibrated
    return MeasuredLink(
        hockney_alpha=fact(paper.alpha) if paper else None,
        hockney_bandwidth=fact(paper.bandwidth) if paper else None,
        calibrated_alpha=fact(calibrated.alpha) if calibrated else None,
        calibrated_bandwidth=fact(calibrated.bandwidth) if calibrated else None,
        collectives=tuple(series_of(name, collective, source) for collective in entry.collectives),
    )


def series_of(link_name: str, collective: Collective, source: str) -> CollectiveSeries:
    """Series of a collective as the collectives' own tables hold it."""
    segments = {
        group.ranks: tuple(Segment(piece.below, piece.last, piece.start, piece.bandwidth, collective.library) for piece in group.pieces)
        for group in collective.groups
    }
    return CollectiveSeries(
        fabric=link_name,
        library=collective.library,
        version=collective.version,
        operation=collective.operation,
        form=collective.form,
        c0=collective.c0,
        alpha=collective.alpha,
        legal_ranks=(),
        basis="measured",
        source=source,
        segments=segments,
        ranks_inside=collective.ranks_inside,
    )


def _disorder(name: str, entry: LinkProfile) -> list[tuple[Path, Diagnostic]]:
    """Pieces that leave sizes out or overlap, ranks that come twice."""
    faults: list[tuple[Path, Diagnostic]] = []
    for index, collective in enumerate(entry.collectives):
        here: Path = ("links", name, "collectives", index, "groups")
        ranks = [group.ranks for group in collective.groups]
        faults += [
            ((*here, at, "ranks"), Diagnostic("DUPLICATE_NAME", f"{count} ranks come twice", "keep one of them"))
            for at, count in enumerate(ranks)
            if count in ranks[:at]
        ]
        for at, group in enumerate(collective.groups):
            ends = [piece.below for piece in group.pieces]
            inner = [end for end in ends[:-1] if end is not None]
            if ends[-1] is not None or len(inner) < len(ends) - 1 or sorted(set(inner)) != inner:
                message = f"the pieces of {group.ranks} ranks do not follow one another"
                hint = "give every piece but the last a `below`, each larger than the one before"
                faults.append(((*here, at, "pieces"), Diagnostic("PIECES_OUT_OF_ORDER", message, hint)))
    return faults


def _gpu(reached: GpuProfile, profile: str) -> MeasuredGpu:
    source = reached.source or f"profile {profile}"
    bandwidth = None if reached.memory_bandwidth is None else Fact(reached.memory_bandwidth, "measured", source)
    return MeasuredGpu(bandwidth, {dtype: Fact(value, "measured", source) for dtype, value in reached.flops.items()})
