"""A topology as tables: pools, levels, leaves, domains, and what looks wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from planner.diagnostics import Diagnostic, Severity
from planner.report.words import per_hour
from planner.topology.fabric import Fabric
from planner.topology.groups import HostGroup
from planner.topology.host_lists import fold_hosts
from planner.topology.inventory import FAILED, FREE, TAKEN
from planner.topology.pools import leaf_ratio

Row = dict[str, Any]
MOST_NAMED: Final = 12
# GPUs that servers are built with; other counts are a broken GPU that nobody lists any more, or a slip of the pen.
_USUAL_COUNTS: Final = frozenset({1, 2, 4, 8, 16})


def _folded(names: list[str]) -> str:
    """Some names as a host list, cut where nobody would read on; switches may bear names that no host list can."""
    foldable = all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names[:10_000])
    shown = fold_hosts(names[:10_000]) if names and foldable else ", ".join(names[:100])
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def pool_rows(fabric: Fabric) -> list[Row]:
    """One row for each kind of node."""
    inventory = fabric.inventory
    gpus = np.diff(inventory.first_gpu)
    node_of_gpu = np.repeat(np.arange(len(gpus)), gpus)
    rows = []
    for pool in fabric.pools:
        mine = fabric.pool_of_node[node_of_gpu] == pool.index
        counted = {
            state: int(np.count_nonzero(mine & (inventory.state == value)))
            for state, value in (("free", FREE), ("taken", TAKEN), ("failed", FAILED))
        }
        rows.append(
            {
                "pool": pool.index,
                "gpu": pool.gpu.name,
                "nodes": pool.nodes,
                "gpus_per_node": pool.gpus_per_node,
                **counted,
                "wiring": pool.wiring.scale_up,
                "domain_gpus": pool.scope_size,
                "nics": f"{pool.nics.count} x {pool.nics.speed * 8 / 1e9:g}Gb/s {pool.nics.link.kind}" if pool.nics is not None else "none",
                "price": per_hour(pool.price_per_node, fabric.currency),
            }
        )
    return rows


def level_rows(fabric: Fabric) -> list[Row]:
    """One row for each level of each pool: what it joins and what a GPU gets through it."""
    rows = []
    for pool in fabric.pools:
        nodes = np.flatnonzero(fabric.pool_of_node == pool.index)
        for level, path in zip(pool.levels, pool.paths, strict=True):
            sets, largest = _joined(fabric, nodes, level, pool.gpus_per_node)
            rows.append(
                {
                    "pool": pool.index,
                    "gpu": pool.gpu.name,
                    "level": level,
                    "sets": sets,
                    "largest_gpus": largest,
                    "link": path.link.name if level != "gpu" else "memory",
                    "gb_s_per_gpu": round(path.bandwidth / 1e9, 2),
                    "gb_s_pair": round(path.peer_bandwidth / 1e9, 2),
                    "hops": path.hops,
                    "oversubscription": round(path.oversubscription, 3),
                }
            )
    return rows


def _joined(fabric: Fabric, nodes: Any, level: str, gpus_per_node: int) -> tuple[int, int]:
    """Number of sets of GPUs that a level joins within a pool, and the GPUs of the largest."""
    if level == "gpu":
        return len(nodes) * gpus_per_node, 1
    wiring = fabric.inventory.groups[int(fabric.inventory.group[int(nodes[0])])].wiring
    if level in {"pair", "mesh"}:
        largest = max((len(group) for group in wiring.groups), default=1)
        return len(nodes) * len(set(wiring.group_labels())), largest
    counts = np.bincount(fabric.inventory.level_labels(level)[nodes])
    return int(np.count_nonzero(counts)), int(counts.max()) * gpus_per_node


def _leaves(fabric: Fabric) -> dict[str, tuple[list[HostGroup], list[str]]]:
    """Groups and nodes on each leaf switch."""
    found: dict[str, tuple[list[HostGroup], list[str]]] = {}
    for group in fabric.inventory.groups:
        for leaf in group.leaves:
            groups, nodes = found.setdefault(leaf, ([], []))
            groups.append(group)
            nodes.extend(group.names)
    return found


def leaf_rows(fabric: Fabric) -> list[Row]:
    """One row for each leaf switch."""
    rows = []
    for leaf, (groups, nodes) in sorted(_leaves(fabric).items()):
        spines = sorted({spine for group in groups for spine in group.spines})
        rows.append(
            {
                "leaf": leaf,
                "nodes": len(nodes),
                "gpus": sum(len(group.names) * group.wiring.gpus for group in groups),
                "oversubscription": round(leaf_ratio((leaf,), fabric.network), 3),
                "spines": len(spines),
                "on": _folded(spines),
                "names": _folded(nodes),
            }
        )
    return rows


def domain_rows(fabric: Fabric) -> list[Row]:
    """One row for each kind of scale-up scope: GPUs they hold and GPUs free, with the first names."""
    scopes = fabric.scopes
    alike: dict[tuple[int, int, int], list[int]] = {}
    for scope in range(len(scopes)):
        alike.setdefault((int(scopes.pool[scope]), int(scopes.capacity[scope]), int(scopes.free[scope])), []).append(scope)
    return [
        {
            "pool": pool,
            "gpu": fabric.pools[pool].gpu.name,
            "level": fabric.pools[pool].scale_up_level,
            "domains": len(members),
            "gpus": capacity,
            "free": free,
            "names": ", ".join(scopes.name(scope) for scope in members[:3]) + (f" and {len(members) - 3} more" if len(members) > 3 else ""),
        }
        for (pool, capacity, free), members in alike.items()
    ]


def suspicions(fabric: Fabric) -> list[Diagnostic]:
    """What looks wrong in a topology that is valid: broken links, missing cables, odd counts."""
    found: list[Diagnostic] = []

    def suspect(code: str, message: str, hint: str) -> None:
        found.append(Diagnostic(code, message, hint, Severity.WARNING))

    _suspect_gpus(fabric, suspect)
    _suspect_leaves(fabric, suspect)
    _suspect_nics(fabric, suspect)
    _suspect_domains(fabric, suspect)
    return found


def _suspect_gpus(fabric: Fabric, suspect: Callable[[str, str, str], None]) -> None:
    inventory = fabric.inventory
    for gpus in sorted({group.wiring.gpus for group in inventory.groups} - _USUAL_COUNTS):
        names = [name for group in inventory.groups if group.wiring.gpus == gpus for name in group.names]
        suspect("ODD_GPU_COUNT", f"{_folded(names)} has {gpus} GPUs a node", "list broken GPUs under failed: and count them in gpus:")
    off = [
        f"{_folded(list(group.names))} GPU {', '.join(map(str, alone))}"
        for group in inventory.groups
        if group.wiring.groups
        and (alone := sorted(set(range(group.wiring.gpus)) - {gpu for members in group.wiring.groups for gpu in members}))
    ]
    if off:
        suspect(
            "GPU_OFF_NVLINK",
            f"no NVLink where the node's other GPUs have one: {'; '.join(off[:MOST_NAMED])}",
            "run `nvidia-smi nvlink -s` there",
        )
    failed: Counter[str] = Counter()
    for row in (
        np.flatnonzero(np.add.reduceat((inventory.state == FAILED).astype(np.int64), inventory.first_gpu[:-1])).tolist()
        if inventory.names
        else []
    ):
        state = inventory.state[int(inventory.first_gpu[row]) : int(inventory.first_gpu[row + 1])]
        if np.count_nonzero(state == FAILED) < len(state):
            failed[inventory.names[row]] = int(np.count_nonzero(state == FAILED))
    if failed:
        listed = ", ".join(f"{name} {count}" for name, count in list(failed.items())[:MOST_NAMED])
        suspect(
            "GPUS_FAILED",
            f"some GPUs of a node failed while others work: {listed}",
            "mend them; until then no group of the whole node fits there",
        )


def _suspect_leaves(fabric: Fabric, suspect: Callable[[str, str, str], None]) -> None:
    ratios = {leaf: leaf_ratio((leaf,), fabric.network) for leaf in _leaves(fabric)}
    if len(ratios) < 2:
        return
    usual = Counter(ratios.values()).most_common(1)[0][0]
    fewer = sorted(leaf for leaf, ratio in ratios.items() if ratio > usual + 1e-9)
    if fewer:
        listed = ", ".join(f"{leaf} {ratios[leaf]:.3g}:1" for leaf in fewer[:MOST_NAMED]) + (
            f" and {len(fewer) - MOST_NAMED} more" if len(fewer) > MOST_NAMED else ""
        )
        suspect(
            "LEAF_UPLINKS_MISSING", f"leaves with fewer uplinks than the usual {usual:.3g}:1: {listed}", "look for missing or broken cables"
        )


def _suspect_nics(fabric: Fabric, suspect: Callable[[str, str, str], None]) -> None:
    """Nodes with fewer interfaces, or on fewer leaves, than most with the same GPU."""
    by_gpu: dict[str, list[HostGroup]] = {}
    for group in fabric.inventory.groups:
        by_gpu.setdefault(group.gpu.name, []).append(group)
    measures: Mapping[str, Callable[[HostGroup], int]] = {
        "network interfaces": lambda group: group.nics.count if group.nics is not None else 0,
        "leaves": lambda group: len(group.leaves),
    }
    for gpu, groups in by_gpu.items():
        for what, measure in measures.items():
            counted: Counter[int] = Counter()
            for group in groups:
                counted[measure(group)] += len(group.names)
            usual = counted.most_common(1)[0][0]
            names = [name for group in groups if measure(group) < usual for name in group.names]
            if names:
                code = "NODE_WITHOUT_NICS" if what != "leaves" else "NODE_OFF_RAIL"
                message = f"{len(names)} nodes with {gpu} have fewer {what} than the usual {usual}: {_folded(names)}"
                suspect(code, message, "look for missing cables")


def _suspect_domains(fabric: Fabric, suspect: Callable[[str, str, str], None]) -> None:
    for pool in fabric.pools:
        mine = np.flatnonzero(fabric.scopes.pool == pool.index)
        sizes = fabric.scopes.capacity[mine]
        if len(mine) < 2 or pool.gpus_per_node == pool.scope_size:
            continue
        usual = Counter(sizes.tolist()).most_common(1)[0][0]
        short = [fabric.scopes.name(int(scope)) for scope in mine[sizes < usual]]
        if short:
            shown = ", ".join(short[:MOST_NAMED]) + (f" and {len(short) - MOST_NAMED} more" if len(short) > MOST_NAMED else "")
            suspect(
                "DOMAIN_SHORT",
                f"{len(short)} NVLink domains hold fewer than the usual {usual} GPUs: {shown}",
                "look for trays that are missing",
            )


TABLES: Final[Mapping[str, Callable[[Fabric], list[Row]]]] = {
    "pools": pool_rows,
    "levels": level_rows,
    "leaves": leaf_rows,
    "domains": domain_rows,
    "suspicions": lambda fabric: [{"code": item.code, "what": item.message, "hint": item.hint} for item in suspicions(fabric)],
}
