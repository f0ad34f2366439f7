"""Where everything runs: nodes by leaf, one cell a GPU, equal free nodes folded into one line."""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.plan.document import PlanDocument
from planner.topology.fabric import Fabric
from planner.topology.inventory import STATES

FREE, TAKEN, FAILED, SPARE = ".", "x", "!", "s"
MOST_LINES = 48
NO_LEAF = "no leaf"


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node of the grid: its leaf, name, a mark per GPU, and what runs there in words."""

    leaf: str
    node: str
    cells: tuple[str, ...]
    words: str


def replica_marks(plan: PlanDocument) -> dict[tuple[str, int], tuple[str, str]]:
    """Mark and label of every used GPU: the mark is the rank inside its replica, the label names deployment, replica and stage."""
    marks: dict[tuple[str, int], tuple[str, str]] = {}
    for deployment in plan.deployments:
        for index, replica in enumerate(deployment.replicas, start=1):
            several = len(deployment.replicas) > 1
            for rank in replica.ranks:
                label = deployment.name + (f"#{index}" if several else "")
                if replica.shape.pp > 1:
                    label += f" stage {rank.stage}"
                marks[rank.node, rank.gpu] = (str(rank.rank), label)
        for spare in deployment.spares:
            marks.update({(rank.node, rank.gpu): (SPARE, f"spare of {deployment.name}") for rank in spare.ranks})
    return marks


def node_lines(plan: PlanDocument, fabric: Fabric) -> list[NodeLine]:
    """Grid lines of every node, in the fabric's order."""
    marks = replica_marks(plan)
    lines = []
    inventory = fabric.inventory
    for row, node in enumerate(fabric.nodes):
        cells: list[str] = []
        labels: dict[str, None] = {}
        first = int(inventory.first_gpu[row])
        for gpu, state in enumerate(inventory.state[first : int(inventory.first_gpu[row + 1])].tolist()):
            if (node, gpu) in marks:
                mark, label = marks[node, gpu]
                cells.append(mark)
                labels[label] = None
            else:
                cells.append({"free": FREE, "taken": TAKEN, "failed": FAILED}[STATES[state]])
        words = ", ".join(labels) if labels else _idle_words(cells)
        lines.append(NodeLine(leaf=fabric.leaf_name(int(inventory.leaf[row])), node=node, cells=tuple(cells), words=words))
    return lines


def _idle_words(cells: Iterable[str]) -> str:
    """What a node without a replica is: free, taken, failed, or a mix of them."""
    kinds = {FREE: "free", TAKEN: "taken", FAILED: "failed"}
    present = dict.fromkeys(kinds[cell] for cell in cells)
    return ", ".join(present) if len(present) != 1 else next(iter(present))


def folded(lines: list[NodeLine]) -> list[NodeLine]:
    """Fold runs of idle nodes that look alike into one line each, so that a large fleet stays readable."""
    if len(lines) <= MOST_LINES // 3:
        return lines
    answer: list[NodeLine] = []
    runs: dict[tuple[str, tuple[str, ...], str], list[NodeLine]] = defaultdict(list)
    for line in lines:
        idle = all(cell in (FREE, TAKEN, FAILED) for cell in line.cells)
        if idle:
            runs[line.leaf, line.cells, line.words].append(line)
        else:
            answer.append(line)
    for (leaf, cells, words), members in runs.items():
        name = members[0].node if len(members) == 1 else f"{members[0].node} and {len(members) - 1} alike"
        answer.append(NodeLine(leaf=leaf, node=name, cells=cells, words=words))
    return answer


def aggregate_words(lines: list[NodeLine]) -> Mapping[str, int]:
    """How many nodes run each thing, for fleets too large to list."""
    counts: dict[str, int] = defaultdict(int)
    for line in lines:
        counts[line.words.rstrip(string.digits)] += 1
    return counts


def grid_text(plan: PlanDocument, fabric: Fabric) -> list[str]:
    """Grid of the placement as plain lines, at most `MOST_LINES` and a last one that says how many more nodes there are."""
    lines = folded(node_lines(plan, fabric))
    shown = lines[:MOST_LINES]
    leaf_width = max((len(line.leaf) for line in shown), default=0)
    leaf_width = max(leaf_width, len(NO_LEAF)) if leaf_width and any(not line.leaf for line in shown) else leaf_width
    node_width = max((len(line.node) for line in shown), default=0)
    cell_width = max((len(cell) for line in shown for cell in line.cells), default=1)
    text = []
    previous = None
    for line in shown:
        leaf = "" if line.leaf == previous else line.leaf or (NO_LEAF if leaf_width else "")
        previous = line.leaf
        cells = " ".join(cell.rjust(cell_width) for cell in line.cells)
        text.append(f"{leaf:<{leaf_width}}  {line.node:<{node_width}}  [{cells}] {line.words}".strip(" "))
        if leaf_width and not leaf:
            text[-1] = " " * (leaf_width + 2) + text[-1]
    if len(lines) > len(shown):
        text.append(f"... and {len(lines) - len(shown)} more nodes (all of them with --json)")
    return text
