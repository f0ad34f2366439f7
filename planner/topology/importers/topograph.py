"""topograph models -> switches, blocks and NVLink domains.

Two forms of NVIDIA/topograph's models: switches as a mapping with `blocks` whose annotations name the accelerator domain, and the older one with
switches as a list and `capacity_blocks`. Its output for Slurm is Slurm's own and read as such.
"""

from __future__ import annotations

import re
from typing import Final

from planner.catalog.gpus import find_gpu
from planner.diagnostics import PlannerError
from planner.topology.importers.facts import Reading, note
from planner.topology.importers.lines import refusal
from planner.topology.importers.slurm import looks_like as looks_like_slurm
from planner.topology.importers.slurm import read_slurm
from planner.topology.importers.switch_tree import Block, Tree, TreeSwitch, facts_of
from planner.topology.importers.yaml_values import Value, read_values

KIND: Final = "topograph"


def read_topograph(text: str, file: str) -> Reading:
    """Read a topograph model, or its output for Slurm.

    Raises
    ------
    PlannerError
        TOPOGRAPH_SYNTAX, HOST_LIST_INVALID, HOST_LIST_TOO_LARGE, SWITCH_CYCLE, NO_HOSTS, and those of `read_values`.
    """
    if looks_like_slurm(text[:4096]):
        return read_slurm(text, file)
    tree = Tree(file)
    for document in read_values(text, file):
        _read_model(tree, document)
    if tree.faults:
        raise PlannerError(tree.faults)
    if not tree.switches and not tree.blocks:
        raise refusal("TOPOGRAPH_SYNTAX", "has no switches: and no blocks:", "name a topograph model", file)
    facts, learnt = facts_of(tree)
    diagnostics = [
        *tree.remarks,
        note("NIC_SPEED_NOT_TOLD", "topograph knows no link speeds", "give --nics COUNTxSPEED, 8x400Gb/s for example", file),
    ]
    return Reading(KIND, file, tuple(facts), learnt=learnt, diagnostics=tuple(diagnostics))


def _read_model(tree: Tree, document: Value) -> None:
    on_switch: dict[str, list[str]] = {}
    blocks_of: dict[str, list[str]] = {}
    labels: dict[str, dict[str, str]] = {}
    for name, switch in _named(document, "switches"):
        children = tuple(_texts(tree, switch, "switches"))
        labels[name] = {
            key.rpartition("/")[2].replace("availability_zone", "zone"): value.content
            for part in ("labels", "metadata")
            for key, value in switch.pairs(part)
            if isinstance(value.content, str)
        }
        on_switch[name] = list(_texts(tree, switch, "nodes"))
        blocks_of[name] = [text.content for text in switch.items("capacity_blocks") if isinstance(text.content, str)]
        tree.switches[name] = TreeSwitch(name, switch.line, children)
    switch_of_block = {block: name for name, blocks in blocks_of.items() for block in blocks}
    for block in document.items("blocks"):
        nodes = tree.expand([text.content for text in block.items("nodes") if isinstance(text.content, str)], block.line)
        notes = [(key.rpartition("/")[2], value.content) for key, value in block.pairs("annotations") if isinstance(value.content, str)]
        _add_block(
            tree, on_switch, Block(block.text("switch"), block.line, nodes, dict(notes).get("domain"), dict(notes).get("sub-domain"))
        )
    for name, block in _named(document, "capacity_blocks"):
        nodes = tree.expand([text.content for text in block.items("nodes") if isinstance(text.content, str)], block.line)
        found = Block(switch_of_block.get(name, ""), block.line, nodes, block.text("nvlink") or None, gpu=_gpu(block.text("type")))
        _add_block(tree, on_switch, found)
    for name, nodes_on in on_switch.items():
        if name in tree.switches:
            tree.switches[name].nodes = tuple(dict.fromkeys(nodes_on))
    _spread_labels(tree, labels)


def _named(document: Value, key: str) -> list[tuple[str, Value]]:
    """Parts of a model by name: a mapping of names, or a list whose elements have one."""
    listed = [(part.text("name"), part) for part in document.items(key) if part.text("name")]
    return [(name, value) for name, value in [*document.pairs(key), *listed] if name]


def _texts(tree: Tree, value: Value, key: str) -> tuple[str, ...]:
    return tree.expand([text.content for text in value.items(key) if isinstance(text.content, str)], value.line)


def _add_block(tree: Tree, on_switch: dict[str, list[str]], block: Block) -> None:
    if block.name:
        # A leaf that carries only blocks need not be described as a switch.
        tree.switches.setdefault(block.name, TreeSwitch(block.name, block.line))
        on_switch.setdefault(block.name, []).extend(block.nodes)
    tree.blocks.append(block)


def _gpu(product: str) -> str | None:
    found = find_gpu(product) if product else None
    return found.name if found is not None else None


def _spread_labels(tree: Tree, labels: dict[str, dict[str, str]]) -> None:
    """Give every node the zone and region that the switches above it bear."""
    parent = {child: name for name, switch in tree.switches.items() for child in switch.children}
    for name, switch in tree.switches.items():
        found: dict[str, str] = {}
        above: str | None = name
        for _ in range(64):
            if above is None:
                break
            found = {**{key: value for key, value in labels.get(above, {}).items() if key in {"zone", "region"}}, **found}
            above = parent.get(above)
        for node in switch.nodes if found else ():
            tree.failure_domains[node] = found


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like a topograph model."""
    return re.search(r"^(?:blocks|capacity_blocks|switches)[ \t]*:", head, re.MULTILINE) is not None
