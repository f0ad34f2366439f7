"""Times of collectives as measured, by engine, link and group size, with the name of the algorithm that runs.

Constants come from `catalog.collectives`. A link that was measured uses its own series; another one borrows a measured fabric of its kind, starts
scaled by the ratio of the links' alphas and the rest by the ratio of their achieved bandwidths. A user's own fit of a link enters the same way.
Engines run their own all-reduce kernels where those accept the group (vLLM and SGLang: 2, 4, 6 or 8 ranks) and NCCL elsewhere.
Across scale-up scopes see `collectives_hierarchical`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.catalog.collectives import CollectiveSeries, find_series
from planner.catalog.links import NIC_KINDS, Link, link
from planner.cost.collectives import Numbers
from planner.cost.collectives_network import network_time
from planner.topology.paths import LinkPath

FloatArray = NDArray[np.float64]
Named = tuple[FloatArray, NDArray[np.str_]]

# PCIe boxes of these GPUs were measured apart.
_BOXES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "pcie4-x16": (("a100", "pcie4-a100"), ("a800", "pcie4-a100")),
    "pcie5-x16": (("h100-pcie", "pcie5-h100"), ("h100-nvl", "pcie5-h100")),
}
_BOX_LINKS: Final[dict[str, str]] = {"pcie4-a100": "pcie4-x16", "pcie5-h100": "pcie5-x16"}
# Links without measurements of their own, with the measured one that stands in.
_STAND_INS: Final[dict[str, str]] = {
    "nvlink2-v100": "nvlink3-a100",
    "nvlink3-a800": "nvlink3-a100",
    "nvlink4-h800": "nvlink4-h100",
    "nvlink6-rubin": "nvlink5-nvl72",
    "nvlink3-bridge": "nvlink3-a100-bridge",
    "pcie3-x16": "pcie4-x16",
    "pcie5-x16-no-peer": "pcie4-x16-no-peer",
    "pcie6-x16": "pcie5-x16",
    "xgmi-mi300x": "xgmi-mi355x",
    "xgmi-mi325x": "xgmi-mi355x",
}
_MEASURED: Final[dict[str, tuple[str, ...]]] = {
    "nvlink": ("nvlink3-a100", "nvlink4-h100", "nvlink5-b200"),
    "pcie": ("pcie4-x16", "pcie5-x16"),
    "xgmi": ("xgmi-mi355x", "nvlink3-a100"),
    "ici": ("nvlink3-a100",),
}
# Engines run the kernels they run over NVSwitch over a bridge too; of bridges only NCCL was measured, from PyTorch without graphs.
_SWITCHED: Final[dict[str, str]] = {
    "nvlink3-bridge": "nvlink3-a100",
    "nvlink3-a100-bridge": "nvlink3-a100",
    "nvlink4-bridge": "nvlink4-h100",
}
# The same lanes without peer access, measured apart.
_WITHOUT_PEERS: Final[dict[str, str]] = {"pcie4-x16": "pcie4-x16-no-peer"}
# What stands where NCCL stands on NVIDIA GPUs.
_VENDOR_LIBRARIES: Final[dict[str, str]] = {"xgmi": "rccl", "ici": "xla"}
_LIBRARIES: Final[dict[str, str]] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "tensorrt-llm",
    "tensorrtllm": "tensorrt-llm",
    "tensorrt": "tensorrt-llm",
}


class _Source(NamedTuple):
    """A series with how to carry it over: starts times `start_scale`, the rest over `bandwidth_scale`, all times `share`."""

    series: CollectiveSeries
    start_scale: float
    bandwidth_scale: float
    share: float


def library_of(engine: str) -> str:
    """Name the kernel library of an engine ("trtllm", "TensorRT-LLM" -> tensorrt-llm); engines without one of their own use NCCL."""
    plain = "".join(character for character in engine.lower().split()[0] if character.isalnum()) if engine.strip() else ""
    return _LIBRARIES.get(plain, "nccl")


def _fabrics(entry: Link, gpu: str | None) -> tuple[str, ...]:
    """Measured fabrics to look at for a link, best first."""
    own = [fabric for prefix, fabric in _BOXES.get(entry.name, ()) if gpu is not None and gpu.lower().startswith(prefix)]
    own.append(entry.name)
    if entry.name in _STAND_INS:
        own.append(_STAND_INS[entry.name])

    def distance(name: str) -> float:
        return abs(math.log(link(name).calibrated_bandwidth.value / entry.calibrated_bandwidth.value))

    return (*own, *sorted(_MEASURED.get(entry.kind, ("nvlink3-a100",)), key=distance))


def _kernels(entry: Link, library: str, operation: str) -> tuple[str, ...]:
    """Fabrics whose engine kernels stand before everything measured on the link itself."""
    return (_SWITCHED[entry.name],) if entry.name in _SWITCHED and library != "nccl" and operation == "all_reduce" else ()


def own_series(entry: Link, library: str, operation: str, ranks_inside: int = 1) -> CollectiveSeries | None:
    """Series of an operation that somebody timed on links of his own, None without one."""
    for series in entry.measured:
        if (series.library, series.operation, series.ranks_inside) == (library, operation, ranks_inside):
            return series
    return None


def _effective_bandwidth(path: LinkPath, ranks: int) -> float:
    """Nominal bandwidth of one rank among `ranks` [B/s]: a mesh reaches each peer through one link only, shared lanes carry their share."""
    if path.link.peer_bandwidth is not None:
        return min(path.bandwidth, (ranks - 1) * min(path.peer_bandwidth, path.link.peer_bandwidth.value))
    return path.bandwidth


def _find(path: LinkPath, library: str, operation: str, ranks: int, gpu: str | None, version: str | None) -> _Source:
    """Series for an operation: the engine's own, else NCCL's; half an all-reduce stands for one that was not measured."""
    entry = path.link
    # Engines bring kernels of their own for all-reduce only; for the rest, what somebody timed of NCCL is what will run.
    timed = own_series(entry, "nccl", operation) if operation != "all_reduce" or library == "nccl" else None
    if timed is not None:
        return _Source(timed, 1.0, 1.0, 1.0)
    switched = _kernels(entry, library, operation)
    for fabric in (*switched, *_fabrics(entry, gpu)):
        candidates = [(library, operation, 1.0), ("nccl", operation, 1.0)]
        if operation != "all_reduce":
            candidates.append(("nccl", "all_reduce", 0.5))
        elif library != "nccl":
            # An engine with kernels of its own that were not measured on this fabric is taken to be as good as one whose were.
            candidates += [(other, "all_reduce", 1.0) for other in ("vllm", "tensorrt-llm", "sglang")]
        for name, measured, share in candidates:
            series = find_series(fabric, name, measured, version if name == library else None)
            if series is None or (series.legal_ranks and ranks not in series.legal_ranks):
                continue
            if (own := own_series(entry, name, measured)) is not None:
                return _Source(own, 1.0, 1.0, share)
            reference = link(_BOX_LINKS.get(fabric, fabric))
            # Shares of the nominal bandwidth: constants of the link against the reference's, and the path's nominal against the link's.
            narrowed = _effective_bandwidth(path, ranks) / _full_bandwidth(entry, ranks)
            starts = entry.calibrated_alpha.value / reference.calibrated_alpha.value
            return _Source(
                series,
                max(starts, 1.0) if fabric in switched else starts,
                entry.calibrated_bandwidth.value / reference.calibrated_bandwidth.value * _mesh_share(entry, reference, ranks) * narrowed,
                share,
            )
    message = f"no measured fabric for {entry.name} ({operation}, {library})"
    raise LookupError(message)


def _full_bandwidth(entry: Link, ranks: int) -> float:
    if entry.peer_bandwidth is None:
        return entry.bandwidth.value
    return min(entry.bandwidth.value, (ranks - 1) * entry.peer_bandwidth.value)


def _mesh_share(entry: Link, reference: Link, ranks: int) -> float:
    """Share of the whole bandwidth that fewer ranks of a mesh reach, over the same share of the measured fabric where it was taken at all ranks."""
    own = _full_bandwidth(entry, ranks) / entry.bandwidth.value
    measured_at = 8 if reference.peer_bandwidth is not None else ranks
    return own / (_full_bandwidth(reference, measured_at) / reference.bandwidth.value)


def _carried(source: _Source, ranks: int, message_bytes: FloatArray, own_library: str) -> Named:
    start, _ = source.series.time(ranks, np.zeros(1))
    times, names = source.series.time(ranks, message_bytes)
    moved = source.share * (start[0] * source.start_scale + (times - start[0]) / source.bandwidth_scale)
    if source.series.library == "nccl":
        named = np.full(names.shape, f"{own_library}-{source.series.form}")
    else:
        named = np.where(names == "nccl", own_library, f"{source.series.library}-custom")
    return moved, named


def collective_time(
    operation: str,
    path: LinkPath,
    engine: str,
    ranks: Numbers,
    message_bytes: Numbers,
    *,
    gpu: str | None = None,
    version: str | None = None,
) -> Named:
    """Time of one collective inside one level of the fabric, and the algorithm that runs.

    Parameters
    ----------
    operation : str
        all_reduce, all_gather, reduce_scatter or all_to_all.
    path : LinkPath
        What joins the group. Over NICs the network's own form is used, one rank a NIC path (`collectives_hierarchical` adds the scopes' insides).
    engine : str
        Engine or library ("vllm", "sglang", "tensorrt-llm", "nccl"); others use NCCL.
    ranks : int or array
        Size of the group, broadcast against `message_bytes`.
    message_bytes : float or array
        Size as in `cost.collectives` [B].
    gpu : str, optional
        Catalog name of the GPU; PCIe boxes of some GPUs were measured apart.
    version : str, optional
        Version of the engine; the newest measured one that is not newer is used, without it the newest.

    Returns
    -------
    tuple of arrays
        Seconds and the algorithm's name, both of the broadcast shape; 0 and "none" for one rank.
    """
    counts, sizes = np.broadcast_arrays(np.asarray(ranks, dtype=np.int64), np.asarray(message_bytes, dtype=np.float64))
    seconds = np.zeros(sizes.shape)
    names = np.full(sizes.shape, "none", dtype="<U32")
    # TPUs have no kernels of the engines'.
    library = "nccl" if path.link.kind == "ici" else library_of(engine)
    for count in np.unique(counts):
        if count <= 1:
            continue
        chosen = counts == count
        own = own_series(path.link, "nccl", operation)
        if path.link.kind in NIC_KINDS and own is not None:
            times, _ = own.time(int(count), sizes[chosen])
            seconds[chosen], names[chosen] = times, f"nccl-{own.form}-network"
        elif path.link.kind in NIC_KINDS:
            seconds[chosen], names[chosen] = network_time(operation, path, int(count), sizes[chosen])
        else:
            source = _find(path, library, operation, int(count), gpu, version)
            times, named = _carried(source, int(count), sizes[chosen], _VENDOR_LIBRARIES.get(path.link.kind, "nccl"))
            if path.link.name in _WITHOUT_PEERS and source.series.fabric not in _BOX_LINKS:
                # What goes through the host's memory goes as well where peers could be reached, and is sooner there for small messages of two.
                around = replace(path, link=link(_WITHOUT_PEERS[path.link.name]))
                other, other_named = collective_time(operation, around, engine, int(count), sizes[chosen], gpu=gpu, version=version)
                times, named = np.minimum(times, other), np.where(other < times, other_named, named)
            seconds[chosen], names[chosen] = times, named
    return seconds, names


def all_reduce_time(
    path: LinkPath, engine: str, ranks: Numbers, message_bytes: Numbers, *, gpu: str | None = None, version: str | None = None
) -> Named:
    """Time of an all-reduce of m bytes held by each rank [s], and the algorithm; see `collective_time`."""
    return collective_time("all_reduce", path, engine, ranks, message_bytes, gpu=gpu, version=version)


def all_gather_time(path: LinkPath, engine: str, ranks: Numbers, message_bytes: Numbers, *, gpu: str | None = None) -> FloatArray:
    """Time of an all-gather into m bytes [s]; see `collective_time`."""
    return collective_time("all_gather", path, engine, ranks, message_bytes, gpu=gpu)[0]


def reduce_scatter_time(path: LinkPath, engine: str, ranks: Numbers, message_bytes: Numbers, *, gpu: str | None = None) -> FloatArray:
    """Time of a reduce-scatter of m bytes [s]; see `collective_time`."""
    return collective_time("reduce_scatter", path, engine, ranks, message_bytes, gpu=gpu)[0]


def all_to_all_time(path: LinkPath, engine: str, ranks: Numbers, message_bytes: Numbers, *, gpu: str | None = None) -> FloatArray:
    """Time of an all-to-all of m bytes a rank [s]; see `collective_time`."""
    return collective_time("all_to_all", path, engine, ranks, message_bytes, gpu=gpu)[0]


def send_constants(path: LinkPath) -> tuple[float, float]:
    """Start [s] and bandwidth [B/s] of one send between neighbouring pipeline stages: calibrated alpha, achieved share x what two GPUs get alone."""
    entry = path.link
    achieved = entry.calibrated_bandwidth.value / entry.bandwidth.value
    return entry.calibrated_alpha.value, achieved * min(
        path.peer_bandwidth, entry.peer_bandwidth.value if entry.peer_bandwidth is not None else np.inf
    )


def send_time(path: LinkPath, message_bytes: Numbers) -> FloatArray:
    """Time of one send between neighbouring pipeline stages [s], alpha + m / bandwidth; see `send_constants`."""
    start, bandwidth = send_constants(path)
    return np.asarray(start + np.asarray(message_bytes, dtype=np.float64) / bandwidth, dtype=np.float64)
