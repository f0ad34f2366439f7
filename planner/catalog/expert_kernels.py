"""Constants of the kernels that carry tokens to their experts and back, fitted on published DeepEP measurements.

    time = start + per_expert x experts + (leaving + per_doubling x log2 scopes, when more than one) + bytes / bandwidth

Inside a scale-up scope the bandwidth is `share` of the link's nominal one. Rows: ai-dynamo/aiconfigurator @095f58a5 DeepEP tables (sglang 0.5.6.post2 and 0.5.12,
H100 and B200 with 8 ranks, H100 with 16 and 64; of the throughput kernel those with 20 or 24 SMs). Median errors on those rows: low latency 2-4 %, throughput 4-7 %
inside one node and about 15 % over several.
"""

from __future__ import annotations

from typing import Final, NamedTuple

SOURCE: Final = "fitted on ai-dynamo/aiconfigurator @095f58a5 DeepEP tables, sglang 0.5.6.post2 and 0.5.12"


class ExpertKernel(NamedTuple):
    """Start inside [s], per routed expert [s], when leaving a scope [s], per doubling of scopes [s], and share of the link reached inside."""

    start: float
    per_expert: float
    leaving: float
    per_doubling: float
    share: float


# (kernel, direction): constants up to NVLink 4, then from NVLink 5 on, where starts are longer and the throughput kernel uses less of the link.
_HOPPER: Final[dict[tuple[str, str], ExpertKernel]] = {
    ("low_latency", "dispatch"): ExpertKernel(8.0e-6, 17e-9, 6.5e-6, 3.0e-6, 0.58),
    ("low_latency", "combine"): ExpertKernel(9.5e-6, 8e-9, 12e-6, 2.5e-6, 0.48),
    ("throughput", "dispatch"): ExpertKernel(27e-6, 4e-9, 5e-6, 30e-6, 0.62),
    ("throughput", "combine"): ExpertKernel(41e-6, 20e-9, 0.0, 32e-6, 0.67),
}
_BLACKWELL: Final[dict[tuple[str, str], ExpertKernel]] = {
    ("low_latency", "dispatch"): ExpertKernel(16e-6, 20e-9, 6.5e-6, 3.0e-6, 0.58),
    ("low_latency", "combine"): ExpertKernel(15e-6, 16e-9, 12e-6, 2.5e-6, 0.69),
    ("throughput", "dispatch"): ExpertKernel(35e-6, 4e-9, 5e-6, 30e-6, 0.31),
    ("throughput", "combine"): ExpertKernel(49e-6, 20e-9, 0.0, 32e-6, 0.38),
}
_FIRST_BLACKWELL_BANDWIDTH: Final = 900e9


def expert_kernel(kernel: str, direction: str, link_bandwidth: float) -> ExpertKernel:
    """Constants of a kernel (low_latency or throughput) and direction (dispatch or combine) on a scale-up link of this nominal bandwidth [B/s]."""
    table = _BLACKWELL if link_bandwidth >= _FIRST_BLACKWELL_BANDWIDTH else _HOPPER
    return table[kernel, direction]
