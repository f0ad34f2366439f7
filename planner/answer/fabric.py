"""The fabric and what was asked, as parts of the plan document, so that a plan can be drawn and judged by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from planner.plan.fabric import AskedDocument, FabricDocument, LinkDocument, NodesDocument
from planner.problem.documents import Deployment
from planner.topology.fabric import Fabric
from planner.topology.host_lists import fold_hosts
from planner.topology.inventory import FAILED, FREE, TAKEN

MOST_EXACT: Final = 1_000
"""Nodes up to which the document tells the state of every GPU; beyond, only counts, as nobody reads a map of more."""


def fabric_document(fabric: Fabric, profile: str) -> FabricDocument:
    """Nodes and links of a fabric; `profile` (hockney or another) says whose start-up times are told."""
    links = (
        LinkDocument(
            gpu=pool.gpu.name,
            level=path.level,
            link=path.link.name,
            bandwidth=path.bandwidth,
            alpha=(path.link.hockney_alpha if profile == "hockney" else path.link.calibrated_alpha).value,
            oversubscription=path.oversubscription,
        )
        for pool in fabric.pools
        for path in pool.paths
        if path.level != "gpu"
    )
    return FabricDocument(name=fabric.name, nodes=tuple(_nodes(fabric)), links=tuple(dict.fromkeys(links)))


def _nodes(fabric: Fabric) -> Iterator[NodesDocument]:
    inventory = fabric.inventory
    exact = len(inventory.names) <= MOST_EXACT
    first = 0
    for group in inventory.groups:
        names = group.names
        last = first + len(names)
        states = inventory.state[int(inventory.first_gpu[first]) : int(inventory.first_gpu[last])].reshape(len(names), group.wiring.gpus)
        alike: dict[bytes, list[int]] = {}
        if exact:
            for row, key in enumerate(map(bytes, states)):
                alike.setdefault(key, []).append(row)
        else:
            alike[b""] = list(range(len(names)))
        leaf = fabric.leaf_name(int(inventory.leaf[first])) if group.leaves else ""
        spine = fabric.spine_name(int(inventory.spine[first])) if group.spines else ""
        for rows in alike.values():
            of_these = states[rows]
            yield NodesDocument(
                nodes=fold_hosts([names[row] for row in rows]),
                count=len(rows),
                gpu=group.gpu.name,
                gpus=group.wiring.gpus,
                leaf=leaf,
                spine=spine,
                domain=group.nvlink_domain or "",
                parts=group.wiring.groups,
                taken=tuple(np.flatnonzero(of_these[0] == TAKEN).tolist()) if exact else (),
                failed=tuple(np.flatnonzero(of_these[0] == FAILED).tolist()) if exact else (),
                free_gpus=int((of_these == FREE).sum()),
                taken_gpus=int((of_these == TAKEN).sum()),
                failed_gpus=int((of_these == FAILED).sum()),
            )
        first = last


def asked_document(deployment: Deployment) -> AskedDocument:
    """Lengths and targets of a deployment."""
    slo, workload = deployment.slo, deployment.workload
    return AskedDocument(
        prompt_tokens=workload.prompt_tokens,
        output_tokens=workload.output_tokens,
        tpot_s=None if slo is None else slo.tpot,
        ttft_s=None if slo is None else slo.ttft,
        percentile=None if slo is None else slo.percentile,
        min_efficiency=deployment.min_efficiency,
    )
