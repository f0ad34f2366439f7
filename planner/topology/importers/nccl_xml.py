"""NCCL and RCCL topology XML -> GPUs, NVLinks and interfaces of one node, or of each host in a dump of several.

Full dumps (NCCL_TOPO_DUMP_FILE) hold gpu, nvlink and net elements; the partial files that clouds ship (NCCL_TOPO_FILE) only PCI devices, told apart
by their class. Form: NVIDIA/nccl src/graph/xml.cc; RCCL writes xgmi for nvlink. Speeds per lane: NVIDIA/nccl src/graph/topo.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from planner.catalog.hardware_names import gpu_of_device
from planner.diagnostics import Diagnostic, Place
from planner.topology.importers.facts import NicFacts, NodeFacts, Reading, ScaleUpLinks, note, several, shown, warning
from planner.topology.importers.lines import refusal
from planner.topology.importers.xml_elements import Element, read_xml

KIND: Final = "nccl"
MOST_GPUS: Final = 128
MOST_LINKS: Final = 64
# A dump of several hosts is of one NVLink domain, or of a job: not of a cluster.
MOST_HOSTS: Final = 2048

_GPU_CLASSES: Final = ("0x0302", "0x1200")
_NIC_CLASSES: Final = ("0x0207", "0x0200")
_SWITCH_CLASSES: Final = ("0x0680", "0x0604")
# PCIe link by transfer rate of a lane [GT/s], at full width.
_PCIE: Final = {"2.5": "pcie3-x16", "5": "pcie3-x16", "8": "pcie3-x16", "16": "pcie4-x16", "32": "pcie5-x16", "64": "pcie6-x16"}
_RATE: Final = re.compile(r"\s*(\d+)(?:\.(\d+))?\s*GT/s")


@dataclass
class _Host:
    """Devices of one host: GPUs with their PCI device, interfaces with their net elements."""

    element: Element
    gpus: list[tuple[Element, Element | None]] = field(default_factory=list)
    nics: list[tuple[Element, list[Element]]] = field(default_factory=list)


def read_nccl_xml(text: str, file: str) -> Reading:
    """Read an NCCL or RCCL topology file.

    Raises
    ------
    PlannerError
        NCCL_GRAPH_FILE for a graph file, WRONG_XML for another document, NO_GPUS, TOO_MANY_GPUS, and those of `read_xml`.
    """
    root = read_xml(text, file)
    if root.tag == "graphs":
        message = "is an NCCL graph file (NCCL_GRAPH_DUMP_FILE): which rings and trees NCCL chose, not how the node is wired"
        raise refusal("NCCL_GRAPH_FILE", message, "name the topology file, NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE", file, root.line)
    if root.tag != "system":
        message = f"the root element is <{root.tag[:40]}>, not <system>"
        raise refusal("WRONG_XML", message, "name an NCCL or RCCL topology file", file, root.line)
    hosts = _hosts(root)
    if len(hosts) > MOST_HOSTS:
        raise refusal("TOO_MANY_VALUES", f"holds {len(hosts):,} hosts", f"a dump has {MOST_HOSTS:,} at most", file, root.line)
    diagnostics: list[Diagnostic] = []
    nodes = [_node(host, file, diagnostics) for host in hosts.values() if host.gpus]
    if not nodes:
        raise refusal("NO_GPUS", "holds no GPU", "name the topology of a node with GPUs", file, root.line)
    learnt = tuple(
        f"{several(node.gpus or 0, 'GPU')}{f' ({node.gpu})' if node.gpu else ''}, {_links_in_words(node.scale_up)}; "
        f"{several(node.nics.count or 0 if node.nics else 0, 'interface')}"
        for node in nodes[:3]
    )
    return Reading(KIND, file, tuple(nodes), learnt=learnt, diagnostics=tuple(dict.fromkeys(diagnostics)))


def _hosts(root: Element) -> dict[str, _Host]:
    """Devices by host: newer dumps hold several hosts, told apart by the host_hash of their CPUs."""
    hosts: dict[str, _Host] = {}
    for part in root.children:
        host = hosts.setdefault(part.get("host_hash"), _Host(part))
        for element, nic in _walk(part):
            device = element.get("class").lower()
            if element.tag == "pci" and device.startswith(_GPU_CLASSES):
                host.gpus.append((element, next((child for child in element.children if child.tag == "gpu"), None)))
            elif element.tag == "pci" and device.startswith(_NIC_CLASSES):
                host.nics.append((element, [net for child in element.children if child.tag == "nic" for net in child.children]))
            elif element.tag == "nic" and not nic:
                host.nics.append((element, list(element.children)))
    return hosts


def _walk(root: Element) -> Iterator[tuple[Element, bool]]:
    """Every element below one, in order, with whether its parent is an interface's PCI device."""
    left = [(root, False)]
    while left:
        element, nic = left.pop()
        yield element, nic
        below = element.tag == "pci" and element.get("class").lower().startswith(_NIC_CLASSES)
        left.extend((child, below) for child in reversed(element.children))


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text.strip()) else None


def _node(host: _Host, file: str, diagnostics: list[Diagnostic]) -> NodeFacts:
    first = host.gpus[0][0].line
    if len(host.gpus) > MOST_GPUS:
        raise refusal("TOO_MANY_GPUS", f"a host of {len(host.gpus)} GPUs", f"a node has 1 to {MOST_GPUS}", file, first)
    order = sorted(
        range(len(host.gpus)), key=lambda place: _order(host.gpus[place][1], place)
    )  # a dump may list GPUs by bus and number them otherwise
    gpus = [host.gpus[place] for place in order]
    nics = _nics(host, file, diagnostics)
    return NodeFacts(
        None,
        Place(file, first),
        guids=tuple(dict.fromkeys(guid for _, nets in host.nics for net in nets if (guid := _guid(net.get("guid"))))),
        gpu=_model(gpus, file, diagnostics),
        gpus=len(gpus),
        scale_up=_links(gpus, file, diagnostics),
        pcie=_pcie(gpus, file, diagnostics),
        nics=nics,
    )


def _order(gpu: Element | None, place: int) -> tuple[int, int]:
    number = _number(gpu.get("dev")) if gpu is not None else None
    return (number if number is not None else place, place)


def _guid(text: str) -> str | None:
    found = text.lower().removeprefix("0x")
    return found.rjust(16, "0") if re.fullmatch(r"[0-9a-f]{1,16}", found) and found.strip("0") else None


def _model(gpus: list[tuple[Element, Element | None]], file: str, diagnostics: list[Diagnostic]) -> str | None:
    found = {gpu_of_device(pci.get("vendor"), pci.get("device")) for pci, _ in gpus}
    known = sorted(name for name in found if name is not None)
    if len(known) == 1 and len(found) == 1:
        return known[0]
    numbers = sorted({f"{pci.get('vendor') or '?'}:{pci.get('device') or '?'}" for pci, _ in gpus})
    if len(known) > 1:
        message = f"the node mixes {shown(known)}"
        diagnostics.append(warning("GPUS_MIXED", message, "write such a server as one node per type", file, gpus[0][0].line))
    else:
        message = f"the PCI devices {shown(numbers)} do not tell the GPU type"
        diagnostics.append(note("GPU_MODEL_NOT_TOLD", message, "give --gpu", file, gpus[0][0].line))
    return None


def _links(gpus: list[tuple[Element, Element | None]], file: str, diagnostics: list[Diagnostic]) -> ScaleUpLinks:
    """Links of every GPU; a partial file holds no gpu elements and cannot show any."""
    kind = "xgmi" if any(pci.get("class").lower().startswith("0x1200") for pci, _ in gpus) else "nvlink"
    if all(gpu is None for _, gpu in gpus):
        message = "the file is a partial one and holds no links between GPUs; the GPU type's usual wiring is taken"
        diagnostics.append(note("NVLINK_HIDDEN", message, "dump the whole topology with NCCL_TOPO_DUMP_FILE", file, gpus[0][0].line))
        return ScaleUpLinks(len(gpus), kind, visible=False)
    place = {pci.get("busid").lower(): number for number, (pci, _) in enumerate(gpus)}
    counts: dict[tuple[int, int], int] = {}
    switched = [0] * len(gpus)
    for number, (_, gpu) in enumerate(gpus):
        for link in gpu.children if gpu is not None else ():
            if link.tag not in {"nvlink", "xgmi"}:
                continue
            links = _number(link.get("count"))
            if not links or links > MOST_LINKS:
                message = f"a link of count `{link.get('count')[:20]}`"
                diagnostics.append(warning("LINK_COUNT_UNREADABLE", message, "check the dump", file, link.line))
                continue
            other = place.get(link.get("target").lower())
            if other is not None and other != number:
                pair = (min(number, other), max(number, other))
                counts[pair] = max(counts.get(pair, 0), links)
            elif link.get("tclass").lower().startswith(_SWITCH_CLASSES) or not link.get("tclass"):
                switched[number] += links
    if any(switched) and len(set(switched)) > 1:
        message = f"GPUs have {shown(switched, 16)} links to switches"
        diagnostics.append(warning("NVLINKS_UNEVEN", message, "run `nvidia-smi nvlink -s` on the node", file, gpus[0][0].line))
    return ScaleUpLinks(len(gpus), kind, counts, tuple(switched) if any(switched) else ())


def _pcie(gpus: list[tuple[Element, Element | None]], file: str, diagnostics: list[Diagnostic]) -> str | None:
    rates = []
    for pci, _ in gpus:
        rate = _RATE.match(pci.get("link_speed"))
        rates.append(f"{rate[1]}.{rate[2]}" if rate is not None and (rate[2] or "0").strip("0") else rate[1] if rate is not None else "")
    found = [_PCIE.get(rate) for rate in rates]
    narrow = [number for number, (pci, _) in enumerate(gpus) if (_number(pci.get("link_width")) or 16) < 16]
    if narrow:
        message = f"GPUs {shown(narrow, 16)} have fewer than 16 PCIe lanes; the model counts 16"
        diagnostics.append(warning("PCIE_NARROW", message, "check the slots", file, gpus[narrow[0]][0].line))
    slowest = sorted(name for name in found if name is not None)
    if len(set(found)) > 1 and slowest:
        message = f"the GPUs' PCIe rates differ; {slowest[0]} is taken for all"
        diagnostics.append(warning("PCIE_UNEVEN", message, "check the slots", file, gpus[0][0].line))
    return slowest[0] if slowest else None


def _nics(host: _Host, file: str, diagnostics: list[Diagnostic]) -> NicFacts | None:
    nets = [net for _, found in host.nics for net in found if net.tag == "net"]
    if nets:
        speeds = [speed for net in nets if (speed := _number(net.get("speed")))]
        if len(set(speeds)) > 1:
            message = f"interfaces run at {shown(sorted(set(speeds)))} Mb/s; the slowest is taken for all"
            diagnostics.append(warning("NICS_UNEVEN", message, "give --nics COUNTxSPEED", file, nets[0].line))
        names = {net.get("name").lower()[:4] for net in nets}
        infiniband = any(pci.get("class").lower().startswith("0x0207") for pci, _ in host.nics)
        kind = "efa" if names & {"rdma", "efa_"} else "infiniband" if infiniband else "roce" if names & {"mlx5", "bnxt"} else None
        return NicFacts(len(nets), min(speeds) * 1e6 / 8 if speeds else None, kind)
    if not host.nics:
        return None
    efa = all(pci.get("vendor") == "0x1d0f" for pci, _ in host.nics)
    infiniband = all(pci.get("class").lower().startswith("0x0207") for pci, _ in host.nics)
    message = f"the speed of {several(len(host.nics), 'interface')} is not in the file"
    diagnostics.append(note("NIC_SPEED_NOT_TOLD", message, "give --nics SPEED, 400Gb/s for example", file, host.nics[0][0].line))
    return NicFacts(len(host.nics), None, "efa" if efa else "infiniband" if infiniband else None)


def _links_in_words(links: ScaleUpLinks | None) -> str:
    if links is None or not links.visible:
        return "links between them not shown"
    if links.to_switches:
        values = "/".join(str(value) for value in sorted(set(links.to_switches)))
        return f"{values} NVLinks each to switches"
    pairs = links.gpus * (links.gpus - 1) // 2
    return f"{links.kind} between {len(links.counts)} of {several(pairs, 'pair')}" if pairs else "alone"


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like XML."""
    return head.lstrip().startswith("<")
