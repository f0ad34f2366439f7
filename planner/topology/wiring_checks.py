"""Whether a wiring can exist: on that GPU, with those indices, with that link."""

from __future__ import annotations

from planner.catalog.gpus import Gpu
from planner.catalog.links import Link
from planner.diagnostics import Diagnostic, Place
from planner.topology.node_groups import NodeGroup
from planner.topology.wiring import CUBE_MESH_GPUS, links_per_gpu

_LINK_KINDS = {"nvswitch": "nvlink", "nvlink-pairs": "nvlink", "nvlink-mesh": "nvlink", "cube-mesh": "nvlink", "xgmi": "xgmi", "ici": "ici"}

# DGX-2 joins 16 V100 in one NVSwitch fabric, twice what the board of the catalog's V100 joins.
_DGX2_GPUS = 16


def check_wiring(group: NodeGroup, gpu: Gpu, scale_up: str, link: Link | None, pcie: Link | None, path: str) -> list[Diagnostic]:
    """Find everything that keeps a node from being wired as asked.

    Parameters
    ----------
    group : NodeGroup
        The nodes as written.
    gpu : Gpu
        Their GPU type.
    scale_up : str
        The wiring asked for, or the GPU type's usual one.
    link, pcie : Link or None
        The links it would use; `link` is None where the GPU type has no scale-up link and none is named.
    path : str
        Place of the group in the document.

    Returns
    -------
    list of Diagnostic
        Empty when the wiring can exist.
    """
    faults: list[Diagnostic] = []

    def fault(code: str, key: str, message: str, hint: str) -> None:
        faults.append(Diagnostic(code, message, hint, place=Place(path=f"{path}.{key}")))

    if scale_up != "none":
        wanted = _LINK_KINDS[scale_up]
        if link is None:
            hint = (
                "write scale_up: none" if scale_up != "nvlink-pairs" else "write scale_up: none, or scale_up_link: with the bridge's name"
            )
            fault("SCALE_UP_NOT_SUPPORTED", "scale_up", f"{gpu.name} has no {wanted} for {scale_up}", hint)
        elif link.kind != wanted:
            fault(
                "SCALE_UP_NOT_SUPPORTED",
                "scale_up",
                f"{scale_up} is made of {wanted}, and {link.name} is {link.kind}",
                f"name a link of kind {wanted}",
            )
        elif scale_up == "nvswitch" and gpu.scale_up_domain <= 2 and group.scale_up_link is None:
            message = f"{gpu.name} is joined by bridges between cards, not by an NVSwitch"
            fault("SCALE_UP_NOT_SUPPORTED", "scale_up", message, "write scale_up: nvlink-pairs with pairs: [[0, 1], ...], or none")
    if pcie is not None and pcie.kind != "pcie":
        fault("NOT_A_PCIE_LINK", "pcie", f"{pcie.name} is a link of kind {pcie.kind}", "name a PCIe link, such as pcie5-x16")
    if scale_up == "cube-mesh" and group.gpus != CUBE_MESH_GPUS:
        fault(
            "CUBE_MESH_SIZE",
            "gpus",
            f"a cube mesh has {CUBE_MESH_GPUS} GPUs, and {group.name} has {group.gpus}",
            "write gpus: 8, or another scale_up",
        )
    if scale_up in {"nvswitch", "xgmi"}:
        most = _DGX2_GPUS if gpu.architecture == "volta" else gpu.scale_up_domain
        if most > 2 and group.gpus > most:
            message = f"{group.name} has {group.gpus} GPUs, and one {scale_up} domain of {gpu.name} joins at most {most}"
            fault("DOMAIN_TOO_LARGE", "gpus", message, f"write gpus: {most} or less")
    if group.nvlink_domain is not None and scale_up != "nvswitch":
        message = f"{group.name} is in an NVLink domain of several nodes, but its GPUs are wired as {scale_up}"
        fault("DOMAIN_WITHOUT_NVSWITCH", "nvlink_domain", message, "write scale_up: nvswitch, or leave nvlink_domain out")
    faults.extend(_check_pairs(group, scale_up, path))
    faults.extend(_check_nvlinks(group, scale_up, link, path))
    return faults


def _check_pairs(group: NodeGroup, scale_up: str, path: str) -> list[Diagnostic]:
    faults: list[Diagnostic] = []

    def fault(code: str, where: str, message: str, hint: str) -> None:
        faults.append(Diagnostic(code, message, hint, place=Place(path=f"{path}.{where}")))

    if group.pairs is None:
        if scale_up == "nvlink-pairs":
            fault(
                "PAIRS_MISSING",
                "scale_up",
                f"{group.name} has NVLink pairs, but does not say which GPUs they join",
                "write pairs: [[0, 1], [2, 3]]",
            )
        return faults
    if scale_up not in {"nvlink-pairs", "nvlink-mesh"}:
        fault(
            "PAIRS_WITHOUT_BRIDGES",
            "pairs",
            f"{group.name} lists pairs, but its GPUs are wired as {scale_up}",
            "write scale_up: nvlink-pairs",
        )
        return faults
    if not group.pairs:
        fault("PAIRS_MISSING", "pairs", f"{group.name} lists no pairs", "write pairs: [[0, 1], [2, 3]], or scale_up: none")
    seen: dict[int, int] = {}
    for number, members in enumerate(group.pairs):
        where = f"pairs.{number}"
        if len(members) < 2 or (scale_up == "nvlink-pairs" and len(members) > 2):
            wanted = "two GPUs" if scale_up == "nvlink-pairs" else "at least two GPUs"
            fault(
                "PAIR_SIZE", where, f"a group of {len(members)} in {group.name}; {scale_up} joins {wanted}", "write pairs: [[0, 1], [2, 3]]"
            )
        for index in members:
            if index >= group.gpus:
                fault("GPU_INDEX_OUT_OF_RANGE", where, f"{group.name} has GPUs 0 to {group.gpus - 1}, not {index}", "count GPUs from 0")
            earlier = seen.setdefault(index, number)
            if earlier != number:
                fault("PAIRS_OVERLAP", where, f"GPU {index} of {group.name} is already in pair {earlier}", "name every GPU once")
        if len(set(members)) < len(members):
            fault("PAIRS_OVERLAP", where, f"a GPU of {group.name} is named twice in one pair", "name every GPU once")
    return faults


def _check_nvlinks(group: NodeGroup, scale_up: str, link: Link | None, path: str) -> list[Diagnostic]:
    faults: list[Diagnostic] = []

    def fault(code: str, where: str, message: str, hint: str) -> None:
        faults.append(Diagnostic(code, message, hint, place=Place(path=f"{path}.{where}")))

    if group.nvlinks is None:
        return faults
    if scale_up != "nvlink-mesh" or group.pairs is not None:
        conflict = "also lists pairs" if group.pairs is not None else f"its GPUs are wired as {scale_up}"
        fault(
            "NVLINKS_WITHOUT_MESH",
            "nvlinks",
            f"{group.name} counts direct links, but {conflict}",
            "write scale_up: nvlink-mesh, without pairs",
        )
        return faults
    if not group.nvlinks:
        fault("NVLINKS_WITHOUT_MESH", "nvlinks", f"{group.name} counts no links", "write scale_up: none where GPUs meet over PCIe only")
    seen: set[tuple[int, int]] = set()
    used = [0.0] * group.gpus
    for number, (one, other, links) in enumerate(group.nvlinks):
        where = f"nvlinks.{number}"
        outside = [index for index in (one, other) if index >= group.gpus]
        if outside:
            fault("GPU_INDEX_OUT_OF_RANGE", where, f"{group.name} has GPUs 0 to {group.gpus - 1}, not {outside[0]}", "count GPUs from 0")
            continue
        key = (min(one, other), max(one, other))
        if one == other or key in seen:
            fault("NVLINKS_OVERLAP", where, f"GPUs {one} and {other} of {group.name} cannot be joined here", "name every two GPUs once")
        seen.add(key)
        used[one] += links
        used[other] += links
    if link is not None:
        most = links_per_gpu(link)
        for gpu, links in enumerate(used):
            if links > most + 1e-6:
                fault(
                    "NVLINKS_EXCEED_GPU",
                    "nvlinks",
                    f"GPU {gpu} of {group.name} would have {links:g} links of {link.name}",
                    f"it has {most}",
                )
    return faults
