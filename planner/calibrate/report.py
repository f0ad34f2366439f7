"""From benchmark files to fits, links and a profile: everything that `planner fit` answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.calibrate.fit import CollectiveFit, Errors, Straightness, fit_times
from planner.calibrate.identity import Identity, identify
from planner.calibrate.link_constants import LinkFit, fit_link, known_link
from planner.calibrate.measurement import Measured
from planner.calibrate.reading import read_benchmark
from planner.calibrate.runs import Run
from planner.catalog.links import NIC_KINDS
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity, errors
from planner.problem.profile_document import ProfileDocument
from planner.problem.profiles import link_name


@dataclass(frozen=True)
class Given:
    """What a user says about runs that do not say it: links they went over, operation, ranks and nodes."""

    links: tuple[str, ...] = ()
    operation: str | None = None
    ranks: int | None = None
    nodes: int | None = None


@dataclass(frozen=True)
class FitReport:
    """Fits of all runs, the links they were put to, and what could not be used.

    `unassigned` are fits whose link nobody named. `diagnostics` are warnings about runs, and errors about files that were left out.
    """

    links: tuple[LinkFit, ...]
    unassigned: tuple[CollectiveFit, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def fits(self) -> tuple[tuple[str | None, CollectiveFit], ...]:
        """All fits with the link of each."""
        placed: list[tuple[str | None, CollectiveFit]] = [(link.name, fit) for link in self.links for fit in link.fits]
        return (*placed, *((None, fit) for fit in self.unassigned))

    def profile(self, name: str, base: str = "calibrated", description: str = "") -> ProfileDocument:
        """Profile of the links.

        Raises
        ------
        PlannerError
            LINK_NOT_NAMED when no run could be put to a link, NOTHING_LEARNT when no constant could be read off.
        """
        if not self.links:
            message = "no run says which link it went over"
            raise PlannerError([Diagnostic("LINK_NOT_NAMED", message, "add --link with a name of `planner catalog links`")])
        usable = {
            link.name: link.profile for link in self.links if link.profile.hockney or link.profile.calibrated or link.profile.collectives
        }
        if not usable:
            message = "the runs tell neither alpha nor beta"
            raise PlannerError([Diagnostic("NOTHING_LEARNT", message, "time sizes from 8 B to 8 GiB: -b 8 -e 8G -f 2")])
        return ProfileDocument.model_validate({"name": name, "description": description, "base": base, "links": usable})


def fit_files(paths: Sequence[str], given: Given) -> FitReport:
    """Fit every run in the files at `paths`.

    Raises
    ------
    PlannerError
        UNKNOWN_LINK, or every fault when no run at all can be used.
    """
    given = replace(given, links=tuple(link_name(name) for name in given.links))
    found: list[Diagnostic] = []
    measured: dict[tuple[str | None, str, int, int | None, str], list[tuple[Run, Identity]]] = {}
    for path in paths:
        try:
            runs = read_benchmark(path)
        except PlannerError as error:
            found += error.diagnostics
            continue
        for run in runs:
            found += run.notes
            if errors(run.notes):
                continue
            try:
                identity = identify(run, operation=given.operation, ranks=given.ranks, nodes=given.nodes)
                link = link_of(identity, given.links, Place(run.file, run.line))
            except PlannerError as error:
                found += error.diagnostics
                continue
            found += identity.warnings
            key = (link, identity.operation, identity.ranks, identity.nodes, run.library)
            measured.setdefault(key, []).append((run, identity))
    if not measured:
        raise PlannerError(found)
    by_link: dict[str, list[CollectiveFit]] = {}
    unassigned: list[CollectiveFit] = []
    for (link, *_), runs_of_one in measured.items():
        fit = _fit(runs_of_one)
        if link is None:
            unassigned.append(fit)
        else:
            by_link.setdefault(link, []).append(fit)
    found += [
        Diagnostic(
            "LINK_NOT_NAMED",
            f"{fit.identity.operation} over {fit.identity.ranks} ranks does not say which link it went over",
            "add --link with a name of `planner catalog links` to put it into a profile",
            Severity.WARNING,
            Place(fit.file),
        )
        for fit in unassigned
    ]
    return FitReport(tuple(fit_link(name, fits) for name, fits in by_link.items()), tuple(unassigned), tuple(dict.fromkeys(found)))


def measured_report(found: Measured, named: str | None) -> FitReport:
    """Fits of a run of one's own, put to the named link; else to the GPU's own, or to the link between processors.

    Raises
    ------
    PlannerError
        LINK_DOES_NOT_FIT when the named link cannot have carried the run.
    """
    identity = found.fits[0].identity if found.fits else None
    if identity is None:
        reasons = "; ".join(f"{operation}: {reason}" for operation, reason in found.unsupported.items())
        hint = "time all_reduce, which every backend has"
        raise PlannerError([Diagnostic("MEASUREMENT_FAILED", f"no operation could be timed: {reasons}", hint)])
    if found.backend == "gloo":
        link: str | None = named or ("gloo-loopback" if found.nodes == 1 else "gloo-network")
    else:
        link = link_of(identity, (named,) if named is not None else (), Place("this run"))
    if link is None:
        return FitReport((), found.fits, ())
    return FitReport((fit_link(link, found.fits),), (), ())


def _fit(runs: Sequence[tuple[Run, Identity]]) -> CollectiveFit:
    """Fit of all runs of one operation among the same ranks together."""
    times = [(float(row.size), seconds) for run, _ in runs for row in run.rows if row.size > 0 for seconds in row.seconds]
    files = ", ".join(dict.fromkeys(run.file for run, _ in runs))
    versions = [run.version for run, _ in runs if run.version]
    return fit_times(files, runs[0][1], times, runs[0][0].library, versions[-1] if versions else "")


def link_of(identity: Identity, named: Sequence[str], place: Place) -> str | None:
    """Link that a run went over: the first named one that fits its nodes, else the GPU's own inside a node; None where neither is known.

    Raises
    ------
    PlannerError
        LINK_DOES_NOT_FIT when links are named, and none can have carried the run.
    """
    part, nodes = identity.gpu, identity.nodes
    one_scope = nodes == 1 or (part is not None and part.scale_up_domain > 8 and identity.ranks <= part.scale_up_domain)
    for name in named:
        entry = known_link(name)
        across = entry is None or entry.kind in NIC_KINDS
        inside = entry is None or not across
        if nodes is None or (across and not one_scope) or (inside and one_scope):
            return name
    if one_scope and part is not None:
        return part.scale_up if part.scale_up is not None and part.scale_up_domain > 2 else part.pcie
    if named:
        where = "one node" if one_scope else f"{nodes} nodes"
        message = f"{identity.operation} ran in {where}, and none of {', '.join(named)} joins {'its GPUs' if one_scope else 'nodes'}"
        hint = "name a link inside the node, or say --nodes" if one_scope else "name a network link such as infiniband-ndr-400"
        raise PlannerError([Diagnostic("LINK_DOES_NOT_FIT", message, hint, place=place)])
    return None


def fit_row(link: str | None, fit: CollectiveFit) -> dict[str, Any]:
    """One fit as a JSON object, SI units."""
    identity = fit.identity
    return {
        "file": fit.file,
        "link": link,
        "operation": identity.operation,
        "ranks": identity.ranks,
        "nodes": identity.nodes,
        "gpu": None if identity.gpu is None else identity.gpu.name,
        "library": fit.library,
        "version": fit.version,
        "sizes": len(fit.sizes),
        "start_s": fit.start,
        "hops": fit.hops,
        "alpha_s": fit.alpha,
        "bandwidth_b_per_s": fit.bandwidth,
        "line_error": _errors(fit.between),
        "held_out_error": _errors(fit.held_out),
        "straightness": _straight(fit.all_sizes),
        "straightness_large": _straight(fit.large_sizes),
        "pieces": [
            {"below_b": one.below, "last_b": one.last, "start_s": one.start, "bandwidth_b_per_s": one.bandwidth} for one in fit.segments()
        ],
        "points": [
            {"size_b": size, "measured_s": seconds, "line_s": _line(fit, size)}
            for size, seconds in zip(fit.sizes, fit.seconds, strict=True)
        ],
        "learnt": list(fit.learnt),
        "assumed": list(fit.assumed),
        "refused": list(fit.refused),
    }


def _line(fit: CollectiveFit, size: float) -> float | None:
    """Time of a message by the line alpha + beta [s]; None where a run does not tell both."""
    return None if fit.start is None or fit.bandwidth is None else fit.start + size * fit.volume / fit.bandwidth


def _errors(found: Errors | None) -> dict[str, Any] | None:
    return None if found is None else {"median": found.median, "largest": found.largest, "sizes": found.sizes}


def _straight(found: Straightness | None) -> dict[str, Any] | None:
    return None if found is None else {"r_squared": found.r_squared, "exponent": found.exponent, "sizes": found.sizes}


def link_row(link: LinkFit) -> dict[str, Any]:
    """One link as a JSON object, SI units."""
    profile = link.profile
    return {
        "link": link.name,
        "source": profile.source,
        "hockney": None if profile.hockney is None else profile.hockney.model_dump(mode="json"),
        "calibrated": None if profile.calibrated is None else profile.calibrated.model_dump(mode="json"),
        "collectives": [
            f"{one.operation} {'/'.join(str(group.ranks) for group in one.groups)} ranks, {one.library}" for one in profile.collectives
        ],
        "assumed": link.assumed,
        "refused": link.refused,
    }
