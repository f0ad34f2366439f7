"""What a plan costs: dollars an hour by GPU or by node, and dollars per million tokens."""

from __future__ import annotations

import numpy as np

from planner.cost.setting import FloatArray

SECONDS_PER_HOUR = 3600.0
MILLION = 1e6


def hourly_cost(
    gpus: FloatArray,
    price_per_gpu: float | None,
    *,
    billing: str = "gpu",
    gpus_per_node: int = 8,
    price_per_node: float | None = None,
) -> FloatArray:
    """Cost of `gpus` GPUs [$/h]: each GPU when billed by GPU, every started node whole when billed by node.

    Parameters
    ----------
    gpus
        GPUs used, scalar or array.
    price_per_gpu, price_per_node
        Prices [$/h]; one of them may be None and is then taken from the other (node = gpus_per_node x GPU).
    billing
        "gpu" or "node".
    gpus_per_node
        GPUs of a node.

    Raises
    ------
    ValueError
        If neither price is given, or the billing is neither of the two.
    """
    if billing not in {"gpu", "node"}:
        raise ValueError(f"billing is by gpu or by node, not by {billing!r}")
    if price_per_gpu is None and price_per_node is None:
        raise ValueError("a price per GPU or per node is needed")
    node = price_per_node if price_per_node is not None else gpus_per_node * (price_per_gpu or 0.0)
    used = np.asarray(gpus, dtype=np.float64)
    if billing == "node":
        return np.ceil(used / gpus_per_node) * node
    single = price_per_gpu if price_per_gpu is not None else node / gpus_per_node
    return used * single


def per_million_tokens(dollars_per_hour: FloatArray | float, tokens_per_second: FloatArray | float) -> FloatArray:
    """Cost of a million tokens [$]: $/h / 3600 / (tokens/s) x 10^6; infinite where nothing is produced."""
    rate = np.asarray(tokens_per_second, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.asarray(dollars_per_hour, dtype=np.float64) / SECONDS_PER_HOUR / rate * MILLION
    return np.where(rate > 0.0, cost, np.inf)


def total_tokens_per_second(output_tokens_per_second: FloatArray | float, prompt_tokens: float, output_tokens: float) -> FloatArray:
    """Prompt and output tokens a second that go with a rate of output tokens [tokens/s]: x (S + out) / out."""
    return np.asarray(output_tokens_per_second, dtype=np.float64) * ((prompt_tokens + output_tokens) / max(output_tokens, 1.0))
