"""What readers find out: facts on nodes and cables, each with the file it came from, before anything is joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.diagnostics import Diagnostic, Place, Severity


@dataclass(frozen=True, slots=True)
class ScaleUpLinks:
    """Links between the GPUs of one node as a file shows them.

    `counts` holds the bonded links between two GPUs, lower index first; through switches or direct, which the counts alone do not tell. `to_switches`
    holds the links of each GPU that end in a switch, where the file tells the two apart. With `visible` false the file cannot show such links.
    """

    gpus: int
    kind: str
    counts: Mapping[tuple[int, int], int] = field(default_factory=dict)
    to_switches: tuple[int, ...] = ()
    visible: bool = True


@dataclass(frozen=True, slots=True)
class NicFacts:
    """Network interfaces of one node that carry GPU traffic: count, speed of one in one direction [B/s], kind; None where not told."""

    count: int | None = None
    speed: float | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What one file says of one node, or of all nodes like it.

    `name` is None for the picture of a node that does not say which; `hints` are then names it may have (the prompt it was pasted with, the file's
    name), `guids` those of its interfaces. `gpu` is a catalog name, `product` what the file calls it. `leaves`, `spines`, `island` are switches and network,
    `domain` and `part_of_domain` an NVLink domain and its part. `failed` and `taken` list GPU indices, `out_of_use` says why a whole node is
    "failed" or "taken". `labels` are the node's own, for formats that only order them.
    """

    name: str | None
    place: Place
    hints: tuple[str, ...] = ()
    guids: tuple[str, ...] = ()
    gpu: str | None = None
    product: str | None = None
    gpus: int | None = None
    scale_up: ScaleUpLinks | None = None
    pcie: str | None = None
    nics: NicFacts | None = None
    leaves: tuple[str, ...] = ()
    spines: tuple[str, ...] = ()
    island: str | None = None
    domain: str | None = None
    part_of_domain: str | None = None
    failure_domains: Mapping[str, str] = field(default_factory=dict)
    instance: str | None = None
    failed: tuple[int, ...] = ()
    out_of_use: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HcaPort:
    """One port of a host channel adapter on a leaf: host (None where its description names none), GUIDs, speed in one direction [B/s] (None: not told)."""

    host: str | None
    guids: tuple[str, ...]
    leaf: str
    speed: float | None
    place: Place


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file says. `learnt` are sentences for a person, `diagnostics` what was assumed (notes) and could not be learnt (warnings).

    `ports`, `spines_of_leaf` and `leaf_cables` describe cables: what a leaf has towards its hosts and towards other switches, in [B/s] or,
    where no speed is told, in cables. `label_order`
    lists node labels from the top of the network down to the node.
    """

    kind: str
    file: str
    nodes: tuple[NodeFacts, ...] = ()
    ports: tuple[HcaPort, ...] = ()
    spines_of_leaf: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leaf_cables: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    island_of_leaf: Mapping[str, str] = field(default_factory=dict)
    fabric_kind: str | None = None
    label_order: tuple[str, ...] = ()
    learnt: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def origin(self) -> str:
        """The file and its format, as shown beside what was taken from it."""
        return f"{self.kind} {self.file}"


def note(code: str, message: str, hint: str, file: str, line: int | None = None) -> Diagnostic:
    """Something assumed, or worth knowing."""
    return Diagnostic(code, message, hint, Severity.NOTE, Place(file, line))


def warning(code: str, message: str, hint: str, file: str, line: int | None = None) -> Diagnostic:
    """Something that could not be learnt, or looks wrong."""
    return Diagnostic(code, message, hint, Severity.WARNING, Place(file, line))


def shown(names: object, most: int = 6) -> str:
    """Some names in a sentence: `a, b and 4 more`."""
    listed = [str(name) for name in names] if isinstance(names, list | tuple | dict | set | frozenset) else [str(names)]
    cut = [name if len(name) <= 60 else name[:57] + "..." for name in listed[:most]]
    return ", ".join(cut) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def several(count: int, singular: str, plural: str | None = None) -> str:
    """A count with its noun: `1 leaf`, `31 leaves`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
