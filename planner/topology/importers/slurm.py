"""Slurm's topology.conf and topology.yaml -> switches, blocks and the nodes on them.

Forms: Slurm topology.conf and topology.yaml manuals (slurm.schedmd.com). A tree may be a forest, a switch may hold switches and nodes; a block is an NVLink
domain. topograph writes a switch's or block's own name in the comment line above it.
"""

from __future__ import annotations

import re
from typing import Final

from planner.diagnostics import PlannerError
from planner.topology.importers.facts import Reading, note
from planner.topology.importers.lines import clean_lines, refusal
from planner.topology.importers.switch_tree import MOST_SWITCHES, Block, Tree, TreeSwitch, facts_of, unused
from planner.topology.importers.yaml_values import Value, read_values

KIND: Final = "slurm"

_ASSIGNMENT: Final = re.compile(r"\s*([A-Za-z]{1,40})\s*=\s*(\S*)")
_REAL_NAME: Final = re.compile(r"\s*#\s*([\w.-]{1,200})\s*=\s*([\w.-]{1,200})\s*")
_KNOWN: Final = frozenset({"switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes"})


def read_slurm(text: str, file: str) -> Reading:
    """Read topology.conf or topology.yaml, told apart by their form.

    Raises
    ------
    PlannerError
        SLURM_SYNTAX, HOST_LIST_INVALID, HOST_LIST_TOO_LARGE, SWITCH_CYCLE, NO_HOSTS, and those of the text's own form.
    """
    tree = _read_yaml(text, file) if re.search(r"^[ \t]*-?[ \t]*topology[ \t]*:", text[:4096], re.MULTILINE) else _read_conf(text, file)
    facts, learnt = facts_of(tree)
    diagnostics = [
        *tree.remarks,
        note("NIC_SPEED_NOT_TOLD", "Slurm knows no link speeds", "give --nics COUNTxSPEED, 8x400Gb/s for example", file),
    ]
    return Reading(KIND, file, tuple(facts), learnt=learnt, diagnostics=tuple(diagnostics))


def _read_conf(text: str, file: str) -> Tree:
    tree = Tree(file)
    real: tuple[str, str] | None = None
    for number, line in _joined(clean_lines(text, file)):
        named = _REAL_NAME.fullmatch(line)
        if named is not None:
            real = (named[1], named[2])
            continue
        body = line.partition("#")[0].strip()
        if body:
            _read_line(tree, body, number, real)
            real = None
    if tree.faults:
        raise PlannerError(tree.faults)
    if not tree.switches and not tree.blocks:
        raise refusal("SLURM_SYNTAX", "has no SwitchName= and no BlockName= line", "name Slurm's topology.conf or topology.yaml", file)
    return tree


def _joined(lines: list[str]) -> list[tuple[int, str]]:
    """Lines with those that end in a backslash joined to the next."""
    found: list[tuple[int, str]] = []
    start, held = 0, ""
    for number, line in enumerate(lines, start=1):
        start = start or number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        found.append((start, held + line))
        start, held = 0, ""
    return [*found, *([(start, held)] if held else [])]


def _read_line(tree: Tree, body: str, line: int, real: tuple[str, str] | None) -> None:
    keys: dict[str, str] = {}
    position = 0
    while match := _ASSIGNMENT.match(body, position):
        keys[match[1].lower()] = match[2].strip('"')
        position = match.end()
    if body[position:].strip() or not keys:
        tree.fault("SLURM_SYNTAX", f"`{body[position:][:60].strip()}` is no key=value", "write SwitchName=leaf-1 Nodes=h[01-16]", line)
        return
    unknown = sorted(set(keys) - _KNOWN)
    if unknown:
        tree.fault("SLURM_SYNTAX", f"the key {unknown[0]} is not known in topology.conf", "name Slurm's topology.conf", line)
        return
    if "switchname" in keys:
        _read_switches(tree, keys, line, real)
    elif "blockname" in keys:
        name = keys["blockname"]
        shown_name = real[1] if real is not None and real[0] == name else name
        tree.blocks.append(
            Block(shown_name, line, tree.expand([keys.get("nodes", "")] if keys.get("nodes") else [], line), domain=shown_name)
        )
    if len(tree.switches) > MOST_SWITCHES:
        raise refusal("TOO_MANY_VALUES", f"more than {MOST_SWITCHES:,} switches", "name Slurm's topology.conf", tree.file, line)


def _read_switches(tree: Tree, keys: dict[str, str], line: int, real: tuple[str, str] | None) -> None:
    """Switches of one line: SwitchName may itself be a host list of switches that are alike."""
    children = tree.expand([keys["switches"]] if keys.get("switches") else [], line, MOST_SWITCHES * 2)
    nodes = tree.expand([keys["nodes"]] if keys.get("nodes") else [], line)
    for name in tree.expand([keys["switchname"]], line, MOST_SWITCHES * 2):
        if name in tree.switches:
            tree.fault(
                "DUPLICATE_SWITCH", f"switch {name} is already described in line {tree.switches[name].line}", "name every switch once", line
            )
            continue
        tree.switches[name] = TreeSwitch(real[1] if real is not None and real[0] == name else name, line, children, nodes)


def _read_yaml(text: str, file: str) -> Tree:
    tree = Tree(file)
    documents = read_values(text, file)
    topologies = [part for document in documents for part in document.items() if part.get("topology") is not None]
    if not topologies:
        raise refusal("SLURM_SYNTAX", "lists no topology", "begin with `- topology: NAME` and tree: or block:", file)
    for part in topologies:
        others = [kind for kind in ("ring", "torus3d") if part.get(kind) is not None]
        unused(tree, others, "the topology", part.line)
        _read_part(tree, part)
    if tree.faults:
        raise PlannerError(tree.faults)
    return tree


def _read_part(tree: Tree, part: Value) -> None:
    block, switches = part.get("block"), part.get("tree")
    for switch in switches.items("switches") if switches is not None else ():
        name = switch.text("switch")
        if not name or name in tree.switches:
            problem = f"switch {name} is described twice" if name else "a switch has no name"
            # Two topologies of one cluster may hold the same switches; the first that describes one is read.
            if not name:
                tree.fault("SLURM_SYNTAX", problem, "write switch: NAME", switch.line)
            continue
        children = tree.expand([text.content for text in switch.items("children") if isinstance(text.content, str)], switch.line)
        nodes = tree.expand([text.content for text in switch.items("nodes") if isinstance(text.content, str)], switch.line)
        tree.switches[name] = TreeSwitch(name, switch.line, children, nodes)
    for found in block.items("blocks") if block is not None else ():
        name = found.text("block") or found.text("name")
        nodes = tree.expand([text.content for text in found.items("nodes") if isinstance(text.content, str)], found.line)
        if not name:
            tree.fault("SLURM_SYNTAX", "a block has no name", "write block: NAME", found.line)
        tree.blocks.append(Block(name, found.line, nodes, domain=name))


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like one of Slurm's topology files."""
    return (
        re.search(r"^[ \t]*(?:SwitchName|BlockName|BlockSizes)[ \t]*=|^[ \t]*-[ \t]*topology[ \t]*:", head, re.MULTILINE | re.IGNORECASE)
        is not None
    )
