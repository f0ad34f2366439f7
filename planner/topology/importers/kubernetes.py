"""`kubectl get nodes -o json` -> nodes with their GPUs, readiness and place in the network, by the labels of clouds, GPU operators and topograph.

Labels: NVIDIA GPU Feature Discovery and GPU Operator (nvidia.com/gpu.*), AMD's labeller (amd.com/gpu.*), see also `tier_labels`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from planner.catalog.gpus import find_gpu
from planner.diagnostics import Diagnostic, Place
from planner.topology.importers.facts import NodeFacts, Reading, note, several, shown, warning
from planner.topology.importers.lines import LARGEST, check_size, refusal
from planner.topology.importers.tier_labels import CLIQUE, failure_domains_of, tiers_of

KIND: Final = "kubernetes"
# The largest cluster that a cloud's documentation offers (Google Kubernetes Engine), and the values that 32 MiB of kubectl's indented output hold.
MOST_NODES: Final = 65_000
MOST_VALUES: Final = 1_500_000
MOST_GPUS: Final = 1024

_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")
_PRODUCTS: Final = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator")
_INSTANCES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
# GKE's own names of accelerators, where they are not the product's.
_GKE: Final = {
    "nvidia-tesla-a100": "a100-sxm-40gb",
    "nvidia-a100-80gb": "a100-sxm-80gb",
    "nvidia-h100-80gb": "h100-sxm-80gb",
    "nvidia-h100-mega-80gb": "h100-sxm-80gb",
    "nvidia-tesla-t4": "t4-16gb",
    "nvidia-l4": "l4-24gb",
}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
# Taints that every GPU pool has, or that say no more than the conditions do.
_USUAL_TAINTS: Final = re.compile(r"nvidia\.com/gpu|amd\.com/gpu|node\.kubernetes\.io/(?:unschedulable|not-ready|unreachable)|.*sku")


@dataclass
class _Counts:
    """What the list holds besides usable nodes."""

    plain: int = 0
    cordoned: list[str] = field(default_factory=list)
    not_ready: list[str] = field(default_factory=list)
    sliced: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    tainted: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    no_clique: list[str] = field(default_factory=list)
    unnamed: int = 0
    unknown: Counter[str] = field(default_factory=Counter)


def read_json(text: str, file: str) -> Any:
    """Data of a JSON file.

    Raises
    ------
    PlannerError
        JSON_SYNTAX, NESTED_TOO_DEEP, TOO_MANY_VALUES, FILE_TOO_LARGE, EMPTY_FILE.
    """
    check_size(text, file, LARGEST)
    if sum(text.count(sign) for sign in ",[{") > MOST_VALUES:
        raise refusal("TOO_MANY_VALUES", f"holds more than {MOST_VALUES:,} values", "split the list of nodes", file)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise refusal("JSON_SYNTAX", f"is not JSON: {error.msg}", "save the command's output again", file, error.lineno) from None
    except ValueError:
        raise refusal("JSON_SYNTAX", "holds a number of thousands of digits", "save the command's output again", file) from None
    except RecursionError:
        raise refusal("NESTED_TOO_DEEP", "nests too many levels", "save the command's output again", file) from None


def read_kubernetes(text: str, file: str) -> Reading:
    """Read the nodes that `kubectl get nodes -o json` lists.

    Raises
    ------
    PlannerError
        WRONG_JSON, NO_GPU_NODES, TOO_MANY_VALUES, and those of `read_json`.
    """
    data = read_json(text, file)
    items = (
        _mapping(data).get("items") if _mapping(data).get("kind") in {"List", "NodeList"} else data if isinstance(data, list) else [data]
    )
    nodes = [item for item in items if _mapping(item).get("kind", "Node") == "Node"] if isinstance(items, list) else []
    if not nodes or not all(isinstance(item, dict) and "metadata" in item for item in nodes):
        raise refusal("WRONG_JSON", "holds no list of Kubernetes nodes", "save the output of `kubectl get nodes -o json`", file)
    if len(nodes) > MOST_NODES:
        raise refusal("TOO_MANY_VALUES", f"lists more than {MOST_NODES:,} nodes", "split the list", file)
    counts = _Counts()
    facts = [found for item in nodes if (found := _node(item, Place(file), counts)) is not None]
    if not facts:
        message = f"lists {several(len(nodes), 'node')} and none with whole GPUs"
        raise refusal("NO_GPU_NODES", message, "check that the GPU device plugin runs on the nodes", file)
    learnt = f"{several(len(facts), 'GPU node')} with {several(sum(fact.gpus or 0 for fact in facts), 'GPU')}"
    if counts.plain:
        learnt += f"; {several(counts.plain, 'node')} without GPUs left out"
    return Reading(KIND, file, tuple(facts), learnt=(learnt,), diagnostics=tuple(_remarks(counts, file)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> dict[str, str]:
    return {key: str(text) for key, text in _mapping(value).items() if isinstance(text, str | int)}


def _count(value: Any) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else None


def _node(item: Mapping[str, Any], place: Place, counts: _Counts) -> NodeFacts | None:
    labels = _texts(_mapping(item["metadata"]).get("labels"))
    name = str(_mapping(item["metadata"]).get("name") or labels.get("kubernetes.io/hostname") or "")
    status, spec = _mapping(item.get("status")), _mapping(item.get("spec"))
    capacity, allocatable = _texts(status.get("capacity")), _texts(status.get("allocatable"))
    if not _NAME.fullmatch(name):
        counts.unnamed += 1
        return None
    if any(key.startswith("nvidia.com/mig-") for key in (*capacity, *allocatable)):
        counts.sliced.append(name)
        return None
    product, model = _product(labels)
    gpus, usable = _gpu_counts(labels, capacity, allocatable, name, product, counts)
    if not gpus or gpus > MOST_GPUS:
        counts.plain += 1
        return None
    if product and model is None:
        counts.unknown[product] += 1
    tiers = tiers_of(labels)
    if CLIQUE in labels and not labels[CLIQUE]:
        counts.no_clique.append(name)
    return NodeFacts(
        name,
        place,
        gpu=model,
        product=product,
        gpus=gpus,
        leaves=(tiers.leaf,) if tiers.leaf else (),
        spines=(tiers.spine,) if tiers.spine else (),
        island=tiers.island,
        domain=tiers.domain,
        part_of_domain=tiers.part_of_domain,
        failure_domains=failure_domains_of(labels),
        instance=next((labels[key] for key in _INSTANCES if labels.get(key)), None),
        failed=tuple(range(usable, gpus)),
        out_of_use=_out_of_use(name, status, spec, counts),
        labels=labels,
    )


def _product(labels: Mapping[str, str]) -> tuple[str | None, str | None]:
    """What the labels call the GPU, and its catalog name where that is known."""
    product = next((labels[key] for key in _PRODUCTS if labels.get(key)), None)
    if product is None:
        return None, None
    plain = re.sub(r"-(?:SHARED|MIG-[\w.+-]+)$", "", product)
    if plain in _GKE:
        return product, _GKE[plain]
    found = find_gpu(plain.replace("_", "-"))
    return product, found.name if found is not None else None


def _gpu_counts(
    labels: Mapping[str, str], capacity: Mapping[str, str], allocatable: Mapping[str, str], name: str, product: str | None, counts: _Counts
) -> tuple[int, int]:
    """GPUs of a node, and how many of them pods may have."""
    told = _count(labels.get("nvidia.com/gpu.count"))
    held = next((count for key in _RESOURCES if (count := _count(capacity.get(key)))), 0)
    offered = next((count for key in _RESOURCES if (count := _count(allocatable.get(key))) is not None), held)
    if (product or "").endswith("-SHARED"):
        # Time slicing offers every GPU several times over; only the label counts the real ones.
        counts.shared.append(name)
        return told or 0, told or 0
    gpus = max(held, offered, (told or 0) if held or offered else 0)
    if gpus and offered < gpus:
        counts.short.append(f"{name} {offered} of {gpus}")
    return gpus, min(offered, gpus)


def _out_of_use(name: str, status: Mapping[str, Any], spec: Mapping[str, Any], counts: _Counts) -> str | None:
    conditions = status.get("conditions")
    ready = [
        condition.get("status")
        for condition in (conditions if isinstance(conditions, list) else [])
        if isinstance(condition, dict) and condition.get("type") == "Ready"
    ]
    taints = spec.get("taints")
    odd = [
        str(taint.get("key"))
        for taint in (taints if isinstance(taints, list) else [])
        if isinstance(taint, dict)
        and taint.get("effect") in {"NoSchedule", "NoExecute"}
        and not _USUAL_TAINTS.fullmatch(str(taint.get("key")))
    ]
    if odd:
        counts.tainted.append(f"{name} ({odd[0][:60]})")
    if ready and ready[0] != "True":
        counts.not_ready.append(name)
        return "failed"
    if spec.get("unschedulable") is True:
        counts.cordoned.append(name)
        return "taken"
    return None


def _remarks(counts: _Counts, file: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []

    def remark(names: list[str], code: str, what: str, hint: str) -> None:
        if names:
            found.append(warning(code, f"{what}: {shown(names)}", hint, file))

    remark(counts.not_ready, "NODE_NOT_READY", "not ready, kept as failed", "mend the nodes, or take them out of the list")
    remark(counts.cordoned, "NODE_CORDONED", "cordoned, kept as taken", "uncordon them to plan on them")
    remark(
        counts.short,
        "GPUS_NOT_ALLOCATABLE",
        "some GPUs are not allocatable; which is not told, so the last ones count as failed",
        "look for unhealthy GPUs on the node",
    )
    remark(counts.sliced, "MIG_NODE", "sliced by MIG and left out", "plans need whole GPUs")
    remark(counts.shared, "GPUS_SHARED", "GPUs are time-sliced; whole GPUs are counted", "stop sharing them before deploying a plan")
    remark(counts.tainted, "NODE_TAINTED", "tainted, kept as free", "check that the deployment tolerates the taints")
    remark(
        counts.no_clique,
        "CLIQUE_EMPTY",
        "the NVLink domain is not told (empty clique label); the node counts as one by itself",
        "list the nodes again",
    )
    if counts.unknown:
        products = shown([f"{product} ({number})" for product, number in counts.unknown.items()])
        found.append(warning("GPU_MODEL_UNKNOWN", f"no GPU of the catalog is called {products}", "give --gpu for them", file))
    if counts.unnamed:
        found.append(note("NODE_UNNAMED", f"{several(counts.unnamed, 'node')} without a usable name left out", "nothing to do", file))
    return found


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like kubectl's JSON."""
    return re.match(r"\s*[\[{]", head) is not None and re.search(r'"(?:apiVersion|kind)"\s*:', head) is not None and "kueue" not in head
