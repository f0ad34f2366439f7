"""Kueue Topology objects -> the order of node labels, top of the network first. They name no nodes: they are read together with a list of nodes.

Form: kueue.sigs.k8s.io, topology aware scheduling; the last level is kubernetes.io/hostname.
"""

from __future__ import annotations

import re
from typing import Final

from planner.topology.importers.facts import Reading, several, shown, warning
from planner.topology.importers.lines import refusal
from planner.topology.importers.yaml_values import Value, read_values

KIND: Final = "kueue"


def read_kueue(text: str, file: str) -> Reading:
    """Read the first Topology of a file of Kueue objects.

    Raises
    ------
    PlannerError
        NO_TOPOLOGY_OBJECT, TOPOLOGY_WITHOUT_LEVELS, and those of `read_values`.
    """
    documents = read_values(text, file)
    objects = [
        part for document in documents for part in ([document, *document.items("items")] if document.get("kind") else document.items())
    ]
    topologies = [part for part in objects if part.text("kind") == "Topology" and "kueue" in part.text("apiVersion")]
    if not topologies:
        kinds = shown(list(dict.fromkeys(part.text("kind")[:40] for part in objects if part.text("kind")))) or "nothing of Kubernetes"
        raise refusal(
            "NO_TOPOLOGY_OBJECT", f"holds no Kueue Topology, but {kinds}", "save `kubectl get topologies.kueue.x-k8s.io -o yaml`", file
        )
    chosen = topologies[0]
    levels = _levels(chosen)
    if not levels:
        raise refusal("TOPOLOGY_WITHOUT_LEVELS", "the Topology lists no levels", "write spec.levels with nodeLabel", file, chosen.line)
    name = (chosen.get("metadata") or Value({}, 0)).text("name")[:60]
    diagnostics = []
    if levels[-1] != "kubernetes.io/hostname":
        message = f"the last level of {name or 'the Topology'} is {levels[-1][:80]}, not kubernetes.io/hostname; it is taken for the leaf"
        diagnostics.append(warning("TOPOLOGY_LEVEL_ORDER", message, "list the levels from the top down to the host", file, chosen.line))
    if len(topologies) > 1:
        message = f"{several(len(topologies) - 1, 'more Topology', 'more Topologies')} not read"
        diagnostics.append(warning("TOPOLOGY_KIND_UNUSED", message, "keep one Topology a file", file, topologies[1].line))
    learnt = f"levels of {name or 'the Topology'}, top first: {shown(levels)}"
    return Reading(KIND, file, label_order=levels, learnt=(learnt,), diagnostics=tuple(diagnostics))


def _levels(topology: Value) -> tuple[str, ...]:
    spec = topology.get("spec")
    return tuple(label for level in (spec.items("levels") if spec is not None else []) if (label := level.text("nodeLabel")))


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like Kueue objects."""
    return re.search(r"apiVersion\"?\s*:\s*\"?kueue\.x-k8s\.io/", head) is not None
