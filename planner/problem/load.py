"""A problem file with everything it names -> `LoadedProblem`; every fault of all files at once.

The problem, its topology and its models are each read as far as they go, so that one run shows what is wrong in all of them. Nothing is
kept of the files' formatting: `sha256` is taken over the contents, with defaults filled in and the topology and models written out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from planner.catalog.measured import NOTHING, Measurements
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity, errors, raise_errors
from planner.problem.agreement import agreement
from planner.problem.catalog_names import with_catalog_names
from planner.problem.companions import companion_findings, with_companions, without_silent_companions
from planner.problem.current_plan import CurrentPlan, find_current
from planner.problem.documents import Problem
from planner.problem.dotted_paths import Path, find, follow
from planner.problem.engine_versions import with_engine_versions
from planner.problem.faults import document_faults
from planner.problem.form_faults import read_document
from planner.problem.loaded import LoadedProblem, LoadedProfile, LoadedTopology
from planner.problem.overrides import Override, apply_overrides, read_overrides
from planner.problem.profiles import Profile, find_profile, is_profile, read_profile, unused
from planner.problem.references import Model, look_up, unknown_gpus
from planner.problem.source import Source
from planner.problem.source_text import STDIN, display_name, read_source, without_detours
from planner.problem.yaml_source import read_yaml
from planner.quantities import currency_of
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric

__all__ = ["LoadedProblem", "LoadedProfile", "LoadedTopology", "load_any", "load_problem", "load_topology"]

# A file that is wrong throughout is not read to its end by anybody.
MOST_FAULTS = 100


def load_problem(path: str, overrides: Sequence[str] = ()) -> LoadedProblem:
    """Load the problem file at `path` (`-` = standard input) with its topology and models.

    Parameters
    ----------
    path
        YAML or JSON file. Paths inside it are relative to it, or to the working folder on standard input.
    overrides
        Changes of single values, `PATH=VALUE`, of the problem or its topology.

    Raises
    ------
    PlannerError
        With every fault of all files, each with file, line, column and path where it has one.
    """
    return load_source(_read(path), path, overrides)


def read_problem(path: str) -> Source:
    """Read the problem file at `path` as data, with the topology it names written into it, so that the result stands by itself.

    A topology that cannot be read is left as it is named; `load_source` reports it.

    Raises
    ------
    PlannerError
        When the file cannot be read or holds no keys.
    """
    source = _read(path)
    named = source.data.get("topology")
    if isinstance(named, str) and named:
        folder = FilePath() if path in STDIN else FilePath(path).parent
        try:
            inner = _read(without_detours(folder / named))
        except PlannerError:
            return source
        if not inner.faults:
            return replace(source, data={**source.data, "topology": inner.data})
    return source


def load_source(source: Source, path: str, overrides: Sequence[str] = ()) -> LoadedProblem:
    """Load a problem that has been read already; `path` tells what the paths inside it are relative to.

    Raises
    ------
    PlannerError
        As `load_problem` does.
    """
    return _problem(source, path, overrides)


def load_topology(path: str, overrides: Sequence[str] = ()) -> LoadedTopology:
    """Load the topology file at `path` (`-` = standard input) by itself.

    Raises
    ------
    PlannerError
        With every fault of the file.
    """
    return _topology_alone(_read(path), overrides)


def load_any(path: str, overrides: Sequence[str] = ()) -> LoadedProblem | LoadedTopology | LoadedProfile:
    """Load a problem, a topology or a profile, told apart by the keys at their top: nodes, builders or a graph; links or gpus.

    Raises
    ------
    PlannerError
        With every fault found.
    """
    source = _read(path)
    keys = set(source.data)
    if keys & {"nodes", "build", "graph", "fabric"} and not keys & {"deployments", "topology", "objective"}:
        return _topology_alone(source, overrides)
    if is_profile(source.data):
        return LoadedProfile(read_profile(source))
    return _problem(source, path, overrides)


def _read(path: str) -> Source:
    source = read_yaml(read_source(path), display_name(path))
    if not isinstance(source.data, dict):
        fault = Diagnostic(
            "ROOT_NOT_MAPPING", "the file is not made of keys", "begin with `name: ...` and the other keys", place=source.place(())
        )
        raise PlannerError([*source.faults, fault])
    return source


def _problem(source: Source, path: str, overrides: Sequence[str]) -> LoadedProblem:
    folder = FilePath() if path in STDIN else FilePath(path).parent
    mine, of_topology, faults = read_overrides(overrides)
    inline = isinstance(source.data.get("topology"), dict)
    faults += apply_overrides(source, Problem, mine)
    if inline:
        faults += apply_overrides(source, TopologyDocument, of_topology, ("topology",))
        of_topology = []
    problem, form = read_document(Problem, source)
    faults += [*source.faults, *form]
    faults += _disagreements(source, form)
    profile, of_profile = _profile_of(source, folder)
    topology, fabric, of_fabric = _topology_of(source, folder, of_topology, profile.measured)
    # An inline topology is read by itself; what the whole problem reports about it would say everything twice.
    faults = [fault for fault in faults if not _is_inside(fault, "topology")] if inline else faults
    references = look_up(source, folder)
    current, of_current = find_current(source, folder)
    faults += [*of_fabric, *of_profile, *references.faults, *of_current]
    currencies = {path: currency_of(find(source.data, tuple(path.split(".")))) for path in ("budget.per_hour", "current.price_per_move")}
    served = with_companions(problem, references)
    if problem is not None:
        faults += _placed(source, companion_findings(problem, served), ())
    if problem is not None and fabric is not None and topology is not None:
        faults += _placed(source, agreement(problem, fabric, references.models, currencies), ())
        faults += _placed(source, unused(profile, fabric), ())
    _raise(faults)
    assert problem is not None
    assert fabric is not None
    assert topology is not None
    models = [model for model in served if model is not None]
    problem, chosen = with_engine_versions(with_catalog_names(problem), [model.architecture for model in models])
    faults += _placed(source, chosen, ())
    sha256 = _digest(problem, topology, models, profile, current)
    problem = problem.model_copy(update={"profile": profile.base})
    return LoadedProblem(problem, fabric, tuple(model.architecture for model in models), sha256, tuple(faults), topology, profile, current)


def _disagreements(source: Source, form: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Faults between keys; a part whose key is misspelt is not also told that it lacks the key."""
    misspelt = {fault.place.path.rpartition(".")[0] for fault in form if fault.code == "UNKNOWN_KEY" and fault.place is not None}
    found = [Diagnostic(fault.code, fault.message, fault.hint, place=source.place(fault.path)) for fault in document_faults(source.data)]
    return [fault for fault in found if fault.code not in {"NO_LOAD", "EMPTY_PART"} or (fault.place and fault.place.path) not in misspelt]


def _profile_of(source: Source, folder: FilePath) -> tuple[Profile, list[Diagnostic]]:
    """Profile that a problem names, with what is wrong about it; the default stands in where it cannot be read."""
    named = source.data.get("profile")
    if not isinstance(named, str) or not named:
        return Profile(), []
    try:
        return find_profile(named, FilePath() if ("profile",) in source.set_paths else folder), []
    except PlannerError as error:
        place = source.place(("profile",))
        return Profile(), [fault if fault.place is not None else replace(fault, place=place) for fault in error.diagnostics]


def _topology_of(
    source: Source, folder: FilePath, overrides: Sequence[Override], measured: Measurements
) -> tuple[TopologyDocument | None, Fabric | None, list[Diagnostic]]:
    """Topology that a problem names or holds, as far as it can be read, with its faults."""
    named = source.data.get("topology")
    if isinstance(named, dict):
        return _fabric(source, overrides, ("topology",), measured)
    if not isinstance(named, str) or not named:
        return None, None, []
    # A path given by --set is the user's, not the file's: relative to where the command runs.
    path = without_detours(FilePath(named) if ("topology",) in source.set_paths else folder / named)
    try:
        inner = _read(path)
    except PlannerError as error:
        place = source.place(("topology",))
        return None, None, [_named_file(fault, path, place) for fault in error.diagnostics]
    return _fabric(inner, overrides, measured=measured)


def _named_file(fault: Diagnostic, path: str, place: Place) -> Diagnostic:
    """A file that cannot be read at all is reported where it is named; a fault inside it keeps its own place."""
    if fault.place is not None and fault.place.line is not None:
        return fault
    code = "TOPOLOGY_NOT_FOUND" if fault.code == "FILE_NOT_FOUND" else fault.code
    return replace(fault, code=code, message=f"topology file {path}: {fault.message}", place=place)


def _fabric(
    source: Source, overrides: Sequence[Override], root: Path = (), measured: Measurements = NOTHING
) -> tuple[TopologyDocument | None, Fabric | None, list[Diagnostic]]:
    """Fabric of the topology at `root` of a file, with its faults, notes and warnings."""
    faults = apply_overrides(source, TopologyDocument, overrides, root)
    document, form = read_document(TopologyDocument, source, root)
    faults += [*(source.faults if not root else ()), *form]
    if document is None:
        return None, None, [*faults, *unknown_gpus(source, root)]
    try:
        fabric = build_fabric(document, measured)
    except PlannerError as error:
        return document, None, [*faults, *_placed(source, error.diagnostics, root)]
    return document, fabric, [*faults, *_placed(source, fabric.diagnostics, root)]


def _topology_alone(source: Source, texts: Sequence[str]) -> LoadedTopology:
    mine, of_topology, faults = read_overrides(texts)
    document, fabric, found = _fabric(source, [*mine, *of_topology])
    faults += found
    _raise(faults)
    assert document is not None
    assert fabric is not None
    return LoadedTopology(document, fabric, _sha256(document.model_dump(mode="json")), tuple(faults))


def _placed(source: Source, diagnostics: Iterable[Diagnostic], root: Path) -> list[Diagnostic]:
    """Give diagnostics that name a document path the line and column where it stands."""
    placed = []
    # Looking up a path takes time in proportion to the file; no more are looked up than could be shown, errors first.
    shown = sorted(diagnostics, key=lambda diagnostic: diagnostic.severity is not Severity.ERROR)[: 2 * MOST_FAULTS]
    for diagnostic in shown:
        if diagnostic.place is None:
            placed.append(replace(diagnostic, place=source.place(root) if root else Place(source.file)))
        elif diagnostic.place.line is not None:
            placed.append(diagnostic)
        else:
            below, rest = follow(find(source.data, root), diagnostic.place.path)
            place = source.place((*root, *below))
            placed.append(replace(diagnostic, place=replace(place, path=f"{place.path}.{rest}".strip(".") if rest else place.path)))
    return placed


def _is_inside(fault: Diagnostic, key: str) -> bool:
    return fault.place is not None and (fault.place.path == key or fault.place.path.startswith(f"{key}.")) and fault.code != "DUPLICATE_KEY"


def _raise(faults: list[Diagnostic]) -> None:
    """Raise all faults in the order of the files when at least one is an error."""
    found = errors(faults)
    if not found:
        return
    unique = list(dict.fromkeys((*found, *(fault for fault in faults if fault.severity is Severity.WARNING))))
    files = list(dict.fromkeys(fault.place.file if fault.place is not None else None for fault in unique))
    unique.sort(key=lambda fault: (files.index(fault.place.file if fault.place is not None else None), *_line(fault)))
    if len(unique) > MOST_FAULTS:
        more = Diagnostic("MORE_FAULTS", f"at least {len(unique) - MOST_FAULTS} more faults are not shown", "mend these first")
        unique = [*unique[:MOST_FAULTS], more]
    raise_errors(unique)


def _line(fault: Diagnostic) -> tuple[int, int]:
    return (fault.place.line or 0, fault.place.column or 0) if fault.place is not None else (0, 0)


def _digest(problem: Problem, topology: TopologyDocument, models: Sequence[Model], profile: Profile, current: CurrentPlan | None) -> str:
    """Digest of what is asked: the problem with its topology and the contents of its models and profile in place of their names."""
    written = problem.model_dump(mode="json")
    written["topology"] = topology.model_dump(mode="json")
    written["profile"] = profile.contents
    if current is None:
        # What does not ask for it keeps the digest it had before plans could be kept.
        del written["current"]
    else:
        written["current"]["plan"] = current.sha256
    for deployment, model in zip(written["deployments"], models, strict=True):
        deployment["model"] = model.contents
        without_silent_companions(deployment)
        # What a problem does not ask does not change its digest, so that older plans stay known as plans of the same problem.
        _drop_unasked(deployment, "throughput", "spares")
        _drop_unasked(deployment["workload"], "buckets", "slices")
    return _sha256(written)


def _drop_unasked(part: dict[str, Any], *keys: str) -> None:
    for key in keys:
        if not part[key]:
            del part[key]


def _sha256(contents: Any) -> str:
    text = json.dumps(contents, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
