"""Everything a document says of its nodes, in one list: written groups, builders, and an explicit graph."""

from __future__ import annotations

from dataclasses import dataclass

from planner.diagnostics import Diagnostic
from planner.topology.document import FabricDescription, TopologyDocument
from planner.topology.node_groups import NodeGroup


@dataclass(frozen=True)
class Sources:
    """Node groups with their document paths, the fabric, and entries of taken and failed GPUs with theirs."""

    groups: tuple[tuple[str, NodeGroup], ...]
    fabric: FabricDescription
    taken: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...]
    diagnostics: tuple[Diagnostic, ...]


def gather(document: TopologyDocument) -> Sources:
    """Collect the node groups of a document, in the order nodes, builders, graph."""
    groups = [(f"nodes.{number}", group) for number, group in enumerate(document.nodes)]
    for number, builder in enumerate(document.build):
        groups.extend((f"build.{number}", group) for group in builder.groups())
    taken = [(f"taken.{number}", entry) for number, entry in enumerate(document.taken)]
    failed = [(f"failed.{number}", entry) for number, entry in enumerate(document.failed)]
    if document.graph is None:
        return Sources(tuple(groups), document.fabric, tuple(taken), tuple(failed), ())
    from planner.topology.graph_reading import read_graph

    reading = read_graph(document.graph)
    ratios = reading.leaf_oversubscription | document.fabric.leaf_oversubscription
    return Sources(
        (*groups, *reading.groups),
        document.fabric.model_copy(update={"leaf_oversubscription": ratios}),
        (*taken, *reading.taken),
        (*failed, *reading.failed),
        tuple(reading.diagnostics),
    )
