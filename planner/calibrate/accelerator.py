"""What one GPU reaches by itself: bytes a second of a large copy, and dense products in 16 bits.

A copy reads and writes every byte once; a square product of side n takes 2 n^3 operations. Both are medians after a warm-up, timed with the device's own events.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, Final

COPIED: Final = 2**30  # bytes; far beyond any cache
SIDE: Final = 8192  # large enough to fill the GPU with products
WARM_UP: Final = 5
SAMPLES: Final = 30


def reached(torch: Any) -> dict[str, Any]:
    """Memory bandwidth [B/s] and FLOP/s by number format of this process's GPU."""
    bandwidth = 2.0 * COPIED / _median(torch, _copy(torch))
    flops: dict[str, float] = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        flops[name] = 2.0 * float(SIDE) ** 3 / _median(torch, _product(torch, dtype))
    return {"memory_bandwidth": bandwidth, "flops": flops, "copied": COPIED, "side": SIDE}


def _copy(torch: Any) -> Callable[[], Any]:
    source = torch.ones(COPIED, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _product(torch: Any, dtype: Any) -> Callable[[], Any]:
    left = torch.randn(SIDE, SIDE, device="cuda").to(dtype)
    right = torch.randn(SIDE, SIDE, device="cuda").to(dtype)
    product = torch.empty_like(left)
    return lambda: torch.matmul(left, right, out=product)


def _median(torch: Any, call: Callable[[], Any]) -> float:
    """Median time of a call on the device [s]."""
    for _ in range(WARM_UP):
        call()
    taken: list[float] = []
    for _ in range(SAMPLES):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        taken.append(float(begin.elapsed_time(end)) * 1e-3)
    return statistics.median(taken)
