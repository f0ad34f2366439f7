"""Trees of switches and blocks of nodes, as schedulers describe them -> facts on nodes: leaf, spine, island, NVLink block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.topology.host_lists import HostListError, expand_hosts
from planner.topology.importers.facts import NodeFacts, note, several, shown, warning

# Twice the nodes of a fleet of a hundred thousand GPUs at eight a node; more ranges than this stand for a slip.
MOST_HOSTS: Final = 30_000
MOST_SWITCHES: Final = 50_000
MOST_FAULTS: Final = 50


@dataclass
class TreeSwitch:
    """One switch: its children and the nodes on it, as names, and its own name where the file has a better one than its key."""

    name: str
    line: int
    children: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass
class Block:
    """Nodes of one block, with the NVLink domain and its part where the file names them."""

    name: str
    line: int
    nodes: tuple[str, ...]
    domain: str | None = None
    part: str | None = None
    gpu: str | None = None


@dataclass
class Tree:
    """What one file says: switches by key, blocks, and whether blocks are NVLink domains (Slurm's) or only say so where they name one."""

    file: str
    switches: dict[str, TreeSwitch] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    failure_domains: dict[str, dict[str, str]] = field(default_factory=dict)
    faults: list[Diagnostic] = field(default_factory=list)
    remarks: list[Diagnostic] = field(default_factory=list)
    hosts: int = 0
    full: bool = False

    def fault(self, code: str, message: str, hint: str, line: int) -> None:
        """Record one error of the file; a file that is wrong all over is not read to its end.

        Raises
        ------
        PlannerError
            Once there are `MOST_FAULTS`.
        """
        self.faults.append(Diagnostic(code, message, hint, place=Place(self.file, line)))
        if len(self.faults) >= MOST_FAULTS:
            raise PlannerError(self.faults)

    def expand(self, texts: Iterable[str], line: int, most: int = MOST_HOSTS) -> tuple[str, ...]:
        """Names of host lists; what is too large or no host list is recorded as a fault."""
        found: list[str] = []
        for text in self._single(texts):
            if self.full:
                break
            try:
                names = expand_hosts(text, most - min(self.hosts, most))
            except HostListError as error:
                self.fault(error.code, error.message, error.hint, line)
                self.full = error.code == "HOST_LIST_TOO_LARGE"
                continue
            self.hosts += len(names)
            found.extend(names)
        return tuple(dict.fromkeys(found))

    @staticmethod
    def _single(texts: Iterable[str]) -> Iterable[str]:
        """Host lists without blanks; long lists of plain names one by one, which needs no grammar."""
        for text in texts:
            plain = re.sub(r"\s+", "", text)
            if "[" in plain or not plain.strip(","):
                yield plain
            else:
                yield from filter(None, plain.split(","))


def facts_of(tree: Tree) -> tuple[list[NodeFacts], tuple[str, ...]]:
    """Facts on every node of a tree, and a sentence on what was learnt.

    Raises
    ------
    PlannerError
        SWITCH_CYCLE, NO_HOSTS, and the faults met while reading.
    """
    parents = _parents(tree)
    tops = _tops(parents, tree)
    if tree.faults:
        raise PlannerError(tree.faults)
    named = {key: switch.name for key, switch in tree.switches.items()}
    leaves: dict[str, list[str]] = {}
    for key, switch in tree.switches.items():
        for node in switch.nodes:
            leaves.setdefault(node, []).append(key)
    blocks = {node: block for block in tree.blocks for node in block.nodes}
    if not leaves and not blocks:
        message = f"names {several(len(tree.switches), 'switch', 'switches')} and no nodes"
        raise PlannerError([Diagnostic("NO_HOSTS", message, "name a file that lists nodes", place=Place(tree.file))])
    roots = list(dict.fromkeys(tops[key] for keys in leaves.values() for key in keys))
    several_roots = len(roots) > 1
    facts = []
    for node in dict.fromkeys([*leaves, *blocks]):
        keys = leaves.get(node, [])
        block = blocks.get(node)
        line = tree.switches[keys[0]].line if keys else block.line if block is not None else 1
        facts.append(
            NodeFacts(
                node,
                Place(tree.file, line),
                gpu=block.gpu if block is not None else None,
                leaves=tuple(named[key] for key in keys),
                spines=tuple(dict.fromkeys(named[parent] for key in keys for parent in parents.get(key, ()))),
                island=named[tops[keys[0]]] if several_roots and keys else None,
                domain=block.domain if block is not None else None,
                part_of_domain=block.part if block is not None else None,
                failure_domains=tree.failure_domains.get(node, {}),
            )
        )
    if several_roots:
        message = f"the switches are {several(len(roots), 'tree')} that nothing joins: {shown([named[root] for root in roots])}"
        tree.remarks.append(note("FABRIC_SPLIT", message, "their nodes never work on one replica together", tree.file))
    _depth_remark(tree, parents)
    return facts, (_summary(tree, leaves, parents, len(facts)),)


def _parents(tree: Tree) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    undescribed: list[str] = []
    for key, switch in tree.switches.items():
        for child in switch.children:
            if child in tree.switches:
                found.setdefault(child, []).append(key)
            else:
                undescribed.append(child)
    if undescribed:
        message = f"{several(len(undescribed), 'switch is', 'switches are')} named as children and not described: {shown(undescribed)}"
        tree.remarks.append(warning("SWITCH_UNKNOWN", message, "nodes on them are not in the file", tree.file))
    return {child: tuple(dict.fromkeys(above)) for child, above in found.items()}


def _tops(parents: dict[str, tuple[str, ...]], tree: Tree) -> dict[str, str]:
    """Root above every switch, each switch walked over once."""
    found: dict[str, str] = {}
    for start in tree.switches:
        key, walked = start, {start: None}
        while key not in found and parents.get(key):
            key = parents[key][0]
            if key in walked:
                message = f"{tree.switches[key].name} is its own child, over {several(len(walked), 'switch', 'switches')}"
                tree.fault("SWITCH_CYCLE", message, "write the switches as a tree", tree.switches[key].line)
                raise PlannerError(tree.faults)
            walked[key] = None
        found.update(dict.fromkeys(walked, found.get(key, key)))
    return found


def _depth_remark(tree: Tree, parents: dict[str, tuple[str, ...]]) -> None:
    depth, level = 0, {key for key, switch in tree.switches.items() if switch.nodes}
    while level:
        depth += 1
        level = {parent for key in level for parent in parents.get(key, ())}
    if depth > 3:
        message = f"the tree has {depth} levels of switches; all above the second are planned as one"
        tree.remarks.append(note("SWITCH_LEVELS_FOLDED", message, "nothing to do", tree.file))


def _summary(tree: Tree, leaves: dict[str, list[str]], parents: dict[str, tuple[str, ...]], nodes: int) -> str:
    used = {key for keys in leaves.values() for key in keys}
    spines = {parent for key in used for parent in parents.get(key, ())}
    parts = [several(nodes, "node")]
    if used:
        parts.append(f"{several(len(used), 'leaf', 'leaves')} below {several(len(spines), 'spine')}")
    domains = {block.domain for block in tree.blocks if block.domain is not None}
    if domains:
        parts.append(several(len(domains), "NVLink block"))
    return ", ".join(parts)


def unused(tree: Tree, keys: Sequence[str], what: str, line: int) -> None:
    """Note parts of a file that a plan has no use for."""
    if keys:
        tree.remarks.append(
            warning("TOPOLOGY_KIND_UNUSED", f"{what} {shown(list(keys))} cannot be planned on", "tree and block can", tree.file, line)
        )
