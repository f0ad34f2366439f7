"""The fabric and the targets that a plan shows are those of its problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.findings import deployment_place, finding
from planner.diagnostics import Diagnostic
from planner.plan.fabric import AskedDocument, NodesDocument
from planner.topology.host_lists import HostListError, expand_hosts

STATES = ("free_gpus", "taken_gpus", "failed_gpus")


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every group of nodes or target that is shown otherwise than the problem has it."""
    yield from _targets(case)
    shown = case.plan.fabric
    if shown is None:
        return
    seen: Counter[str] = Counter()
    for index, entry in enumerate(shown.nodes):
        try:
            names = expand_hosts(entry.nodes, len(case.fabric.nodes))
        except HostListError:
            names = ()
        seen.update(names)
        wrong = _wrong(case, entry, names)
        if wrong:
            yield finding("FABRIC_MISMATCH", f"fabric.nodes.{index}", f"{entry.nodes}: {wrong}", "show the nodes of the topology")
    twice = [name for name, times in seen.items() if times > 1]
    missing = [name for name in case.fabric.nodes if name not in seen]
    for odd, word in ((twice, "shown twice"), (missing, "not shown")):
        if odd:
            yield finding("FABRIC_MISMATCH", "fabric.nodes", f"{odd[0]} and {len(odd) - 1} more are {word}", "show every node once")


def _wrong(case: Case, entry: NodesDocument, names: tuple[str, ...]) -> str:
    """Say what is wrong about one group of nodes; empty where nothing is."""
    inventory = case.fabric.inventory
    rows = [inventory.index[name] for name in names if name in inventory.index]
    if not rows or len(rows) < len(names):
        return "the topology has no such nodes"
    counts = np.zeros(3, dtype=np.int64)
    leaves, gpus = set(), set()
    listed = {1: entry.taken, 2: entry.failed}
    exact = bool(entry.taken or entry.failed)
    for row in rows:
        states = inventory.state[int(inventory.first_gpu[row]) : int(inventory.first_gpu[row + 1])]
        counts += np.bincount(states, minlength=3)
        leaves.add(int(inventory.leaf[row]))
        gpus.add((case.fabric.pools[int(case.fabric.pool_of_node[row])].gpu.name, len(states)))
        if exact and any(np.flatnonzero(states == state).tolist() != list(indices) for state, indices in listed.items()):
            return f"taken or failed GPUs of {inventory.names[row]} are others"
    if entry.count != len(rows):
        return f"{len(rows)} nodes, counted as {entry.count}"
    if gpus != {(entry.gpu, entry.gpus)}:
        return f"not nodes of {entry.gpus} {entry.gpu}"
    if {case.fabric.leaf_name(leaf) for leaf in leaves} != {entry.leaf}:
        return f"not on leaf {entry.leaf or '(none)'}"
    if counts.tolist() != [getattr(entry, state) for state in STATES]:
        return f"{counts[0]} GPUs are free, {counts[1]} taken, {counts[2]} failed"
    return ""


def _targets(case: Case) -> Iterator[Diagnostic]:
    for answer in case.plan.deployments:
        index = case.asked.get(answer.name)
        if answer.asked is None or index is None:
            continue
        asked = case.problem.deployments[index]
        slo, workload = asked.slo, asked.workload
        wanted = AskedDocument(
            prompt_tokens=workload.prompt_tokens,
            output_tokens=workload.output_tokens,
            tpot_s=getattr(slo, "tpot", None),
            ttft_s=getattr(slo, "ttft", None),
            percentile=getattr(slo, "percentile", None),
            min_efficiency=asked.min_efficiency,
        )
        for name, value in wanted:
            said = getattr(answer.asked, name)
            if said != value:
                yield finding(
                    "ASKED_MISMATCH", deployment_place(answer.name), f"{name} {said} was not asked, but {value}", f"write {value}"
                )
