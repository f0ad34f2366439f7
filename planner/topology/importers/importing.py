"""Files -> topology: read each, join, complete, assemble, and make sure that the result can be built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from planner.diagnostics import Diagnostic, PlannerError, Severity
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric
from planner.topology.importers.assembling import assemble
from planner.topology.importers.completing import Assumptions
from planner.topology.importers.facts import Reading
from planner.topology.importers.joining import join
from planner.topology.importers.kinds import kind_named, read_file
from planner.topology.importers.prices import PriceList
from planner.topology.importers.writing import topology_yaml


@dataclass(frozen=True)
class SourceFile:
    """One file to read: its name as shown, its text, and names of the host it may be of."""

    name: str
    text: str
    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """A topology read from files: as plain data, as commented YAML, as a fabric, with what was assumed and not learnt."""

    data: dict[str, Any]
    text: str
    fabric: Fabric
    kinds: tuple[str, ...]
    learnt: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = field(default=())


def import_topology(
    kind: str,
    files: Sequence[SourceFile],
    *,
    name: str = "imported",
    assumptions: Assumptions | None = None,
    hosts: str | None = None,
    guid_map: Mapping[str, str] | None = None,
    prices: PriceList | None = None,
) -> Imported:
    """Read files of one kind (or `auto`: each as what it looks like) and join them into one topology.

    Parameters
    ----------
    kind
        One of `kinds.KINDS`, a shorter name of one, or auto.
    files
        At least one file.
    name
        Name of the topology.
    assumptions
        What to take where no file tells.
    hosts
        Host list of the nodes a picture stands for.
    guid_map
        Host of each adapter's GUID.
    prices
        Prices of nodes.

    Raises
    ------
    PlannerError
        With the faults of all files, or of what they are together.
    """
    wanted = kind_named(kind)
    readings = []
    faults: list[Diagnostic] = []
    for file in files:
        try:
            reading = read_file(wanted, file.text, file.name)
        except PlannerError as error:
            faults.extend(error.diagnostics)
            continue
        readings.append(_hinted(reading, file.hints))
    if faults:
        raise PlannerError(faults)
    joined = join(readings, guid_map or {}, hosts)
    assembled = assemble(name, joined, readings, assumptions or Assumptions(), prices)
    from_readings = [item for reading in readings for item in reading.diagnostics]
    assembled = replace(assembled, diagnostics=(*_settled(from_readings, assembled.data), *assembled.diagnostics))
    fabric = _built(assembled.data)
    return Imported(
        assembled.data,
        topology_yaml(assembled, readings),
        fabric,
        tuple(reading.kind for reading in readings),
        tuple(f"{reading.file}: {sentence}" for reading in readings for sentence in reading.learnt),
        tuple(dict.fromkeys((*assembled.diagnostics, *(item for item in fabric.diagnostics if item.severity is not Severity.ERROR)))),
    )


def _built(data: Mapping[str, Any]) -> Fabric:
    """Fabric of a document; a host with more than a topology can hold is refused here."""
    try:
        document = TopologyDocument.model_validate(data)
    except ValidationError as error:
        faults = [(".".join(map(str, item["loc"])), item["msg"]) for item in error.errors(include_url=False)]
        hint = "leave that part out of the file, and report the file's form"
        raise PlannerError(
            Diagnostic("IMPORT_NOT_DESCRIBABLE", f"{where[:200]}: {message}", hint) for where, message in faults[:20]
        ) from None
    return build_fabric(document)


def _hinted(reading: Reading, hints: tuple[str, ...]) -> Reading:
    """Reading whose pictures may also be of the hosts that their file is called after."""
    nodes = tuple(replace(node, hints=(*node.hints, *hints)) if node.name is None else node for node in reading.nodes)
    return replace(reading, nodes=nodes)


def _settled(remarks: Iterable[Diagnostic], data: Mapping[str, Any]) -> list[Diagnostic]:
    """Leave out what one file could not tell and another did: speeds once every group has its interfaces."""
    complete = all("nics" in group for group in data["nodes"])
    gone = {"NIC_SPEED_NOT_TOLD", "GPU_MODEL_NOT_TOLD"} if complete else {"GPU_MODEL_NOT_TOLD"}
    return [remark for remark in remarks if remark.code not in gone]
