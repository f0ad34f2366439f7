"""Links that a file shows + the GPU type -> the keys of a node group: switched, paired, meshed, or over PCIe only.

The counts alone do not tell a switch from direct links: a GPU with more links than it has, or with all of them to each of several peers, reaches
them through a switch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from planner.catalog.gpus import Gpu
from planner.catalog.links import Link
from planner.catalog.links import link as link_named
from planner.diagnostics import Diagnostic, Place, Severity
from planner.topology.importers.facts import ScaleUpLinks, shown
from planner.topology.wiring import links_per_gpu

# Link of a type that the catalog gives none because only some of its boards have it, by architecture.
_BOARD_LINKS = {"volta": "nvlink2-v100", "ampere": "nvlink3-a100", "hopper": "nvlink4-h100", "blackwell": "nvlink5-b200"}


@dataclass
class ScaleUpKeys:
    """Keys of a node group, GPUs that are off the links of the others, and what was found odd."""

    keys: dict[str, Any] = field(default_factory=dict)
    off: tuple[int, ...] = ()
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def remark(self, code: str, message: str, hint: str, place: Place, severity: Severity = Severity.WARNING) -> None:
        """Record something odd, or an error."""
        self.diagnostics.append(Diagnostic(code, message, hint, severity, place))


def scale_up_keys(links: ScaleUpLinks, gpu: Gpu, place: Place) -> ScaleUpKeys:
    """Find the keys that describe links of GPUs of this type; contradictions between the two are errors among the diagnostics."""
    found = ScaleUpKeys()
    if not links.visible or links.gpus == 1:
        return found
    if links.kind == "xgmi" or not (links.counts or any(links.to_switches)):
        _without_nvlink(links, gpu, place, found)
        return found
    link = _link(gpu)
    if link is None or link.kind != "nvlink":
        hint = "give --gpu with a type that has NVLink"
        found.remark("GPU_CONTRADICTS_FILE", f"the file shows NVLinks, and {gpu.name} has none", hint, place, Severity.ERROR)
        return found
    most = links_per_gpu(link)
    counts = dict(links.counts)
    bonded = max([*counts.values(), *links.to_switches])
    if bonded > most:
        message = f"the file shows {bonded} NVLinks of one GPU, and {gpu.name} has {most}"
        found.remark("GPU_CONTRADICTS_FILE", message, "give --gpu with the type that is in the node", place, Severity.ERROR)
        return found
    degree = [sum(number for pair, number in counts.items() if index in pair) for index in range(links.gpus)]
    full = gpu.scale_up_domain > 2 and bool(counts) and max(counts.values()) == most
    if any(links.to_switches) or max(degree) > most or full:
        _switched(links, gpu, degree, most, place, found)
        return found
    if gpu.scale_up is None:
        found.keys["scale_up_link"] = link.name
    partners = [sum(index in pair for pair in counts) for index in range(links.gpus)]
    if max(partners) == 1 and set(counts.values()) == {most}:
        found.keys |= {"scale_up": "nvlink-pairs", "pairs": [list(pair) for pair in sorted(counts)]}
    else:
        found.keys |= {"scale_up": "nvlink-mesh", "nvlinks": [[*pair, number] for pair, number in sorted(counts.items())]}
    alone = [index for index, number in enumerate(partners) if not number]
    if alone:
        message = f"no NVLink where others have one: GPU {shown(alone, 16)}"
        found.remark("GPU_OFF_NVLINK", message, "run `nvidia-smi nvlink -s` on the node; they are planned over PCIe", place)
    return found


def _link(gpu: Gpu) -> Link | None:
    name = gpu.scale_up or _BOARD_LINKS.get(gpu.architecture)
    return link_named(name) if name is not None else None


def _without_nvlink(links: ScaleUpLinks, gpu: Gpu, place: Place, found: ScaleUpKeys) -> None:
    """XGMI meshes, and nodes whose GPUs meet over PCIe."""
    kind = link_named(gpu.scale_up).kind if gpu.scale_up is not None else "pcie"
    pairs = links.gpus * (links.gpus - 1) // 2
    if links.counts:
        if kind != "xgmi":
            message = f"the file shows XGMI links, and {gpu.name} has none"
            found.remark("GPU_CONTRADICTS_FILE", message, "give --gpu with the AMD type that is in the node", place, Severity.ERROR)
        found.keys["scale_up"] = "xgmi" if len(links.counts) == pairs else "none"
        return
    found.keys["scale_up"] = "none"
    if gpu.scale_up_domain > 2:
        message = f"{gpu.name} usually meets over {kind}, and the file shows no such link; the GPUs are planned over PCIe"
        found.remark(
            "NO_SCALE_UP_LINKS", message, "check `nvidia-smi nvlink -s` (or rocm-smi), and that the driver's fabric manager runs", place
        )


def _switched(links: ScaleUpLinks, gpu: Gpu, degree: list[int], most: int, place: Place, found: ScaleUpKeys) -> None:
    """GPUs that meet in NVSwitches; those without a link to them are off."""
    if gpu.scale_up_domain <= 2:
        message = f"the file shows GPUs that meet in NVSwitches, and {gpu.name} is joined by bridges between cards at most"
        found.remark("GPU_CONTRADICTS_FILE", message, "give --gpu with the SXM type that is in the node", place, Severity.ERROR)
        return
    found.keys["scale_up"] = "nvswitch"
    joined = list(links.to_switches) if any(links.to_switches) else degree
    off = tuple(index for index, number in enumerate(joined) if not number)
    if off:
        found.off = off
        message = f"off NVLink where others are on it, counted as failed: GPU {shown(list(off), 16)}"
        found.remark("GPU_OFF_NVLINK", message, "run `nvidia-smi nvlink -s` on the node; reset or replace them", place)
    best = [max((number for pair, number in links.counts.items() if index in pair), default=0) for index in range(links.gpus)]
    own = list(links.to_switches) if any(links.to_switches) else best
    fewer = [f"GPU {index} has {number}" for index, number in enumerate(own) if 0 < number < most]
    if fewer:
        message = f"fewer than the {most} NVLinks of {gpu.name}: {shown(fewer, 8)}; the full width is planned"
        found.remark("NVLINKS_MISSING", message, "run `nvidia-smi nvlink -s` on the node", place)
