"""How much memory a GPU's driver hands out, when nobody has published the figure.

Engines budget from what `cudaMemGetInfo` (or its ROCm twin) reports as total, which is less than `nvidia-smi` shows, which is less than
the number on the box. Both steps are small and regular, so a stated rule fills the gaps:

1. number on the box -> `nvidia-smi`: GDDR6 with ECC keeps 1/16 for the check bits (24 GB L4 shows 23,034 MiB, 48 GB L40S 46,068 MiB); HBM carries
   its check bits in extra cells, GDDR6 and GDDR7 without ECC none at all, and both show the whole nominal size.
2. `nvidia-smi` -> driver total: the driver and its page tables keep `RESERVE_BASE + RESERVE_SHARE x size`. The line is the least-squares fit
   through the GPUs for which both figures are published (T4, RTX 3090, 4090, 5090, A100 40 and 80 GB, L40S, A6000, H100, H20, H200, B200);
   it errs by at most 0.3 GiB there, 0.1 GiB in the median.

AMD's driver reports the nominal size less about 20 MiB (an MI300X 191.98 of 192 GiB).
"""

from __future__ import annotations

from typing import Final

GIB: Final = 2.0**30
MIB: Final = 2.0**20

ECC_SHARE: Final = 1 / 16
RESERVE_BASE: Final = 0.40 * GIB
RESERVE_SHARE: Final = 0.0019
AMD_RESERVE: Final = 0.02 * GIB


def shown_by_smi(nominal: float, memory_kind: str) -> float:
    """Estimate what `nvidia-smi` shows as total [B] from the nominal size [B].

    Parameters
    ----------
    nominal
        The number on the box, counted in GiB as vendors do [B].
    memory_kind
        `hbm`, `gddr` or `gddr-ecc` (ECC on, as data-centre cards ship).
    """
    return nominal * (1 - ECC_SHARE) if memory_kind == "gddr-ecc" else nominal


def reported_by_driver(shown: float) -> float:
    """Estimate the driver's total [B] from what `nvidia-smi` shows [B]: `shown - RESERVE_BASE - RESERVE_SHARE x shown`."""
    return shown - RESERVE_BASE - RESERVE_SHARE * shown


def reported_by_amd_driver(nominal: float) -> float:
    """Estimate the ROCm driver's total [B] from the nominal size [B]."""
    return nominal - AMD_RESERVE
