"""What of the step-time constants is fitted on which published series, and which series are kept out to test them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from least_squares import minimise
from offline_rows import OfflineGroup
from serving_groups import Group

from planner.catalog.architecture import AttentionKind
from planner.catalog.step_times import StepConstants, step_constants
from planner.cost.closed_loop import Step, step_times
from planner.cost.compute import kernel_dtype
from planner.cost.tensor import EXPERT_SPLITS
from planner.cost.tensors import layer_tensors

GENERATIONS = {
    "hopper": ("H100-SXM-80GB", "H200-SXM-141GB"),
    "blackwell": ("B200-SXM", "B300-SXM", "GB200-NVL72"),
}
# TensorRT-LLM before 1.0 ran compiled engines without Python between steps; it was measured offline only.
OLD_GENERATIONS = {
    "hopper": ("H100-SXM-80GB", "H200-SXM-141GB"),
    "ampere": ("A100-SXM4-80GB",),
    "ada": ("L40S",),
}
# Series (version, GPU, model) of the offline tables that are fitted; all others are predicted. Llama-3.1-70B repeats Llama-3-70B, figure for figure
# within 1 %, and counts as fitted where that is. Mixtral-8x7B is never fitted, nor 70B on H200 and L40S; 70B on A100-PCIE gave the shares of its lanes (`cost.traffic`).
OFFLINE_FITTED = {
    *[
        ("0.14.0", card, name)
        for card in ("H100-SXM-80GB", "H200-SXM-141GB", "A100-SXM4-80GB", "L40S")
        for name in ("Llama-3.1-8B", "Mistral-7B")
    ],
    *[("0.14.0", card, name) for card in ("H100-SXM-80GB", "A100-SXM4-80GB") for name in ("Llama-3-70B", "Llama-3.1-70B", "Mixtral-8x22B")],
    *[("0.14.0", "A100-PCIE-80GB", name) for name in ("Llama-3-70B", "Llama-3.1-70B")],
    *[("1.0", card, "Llama-3.1-8B") for card in ("H100-SXM-80GB", "H200-SXM-141GB")],
}
# What the throughput of full engines tells apart; the rest keeps its start.
OFFLINE_PARAMETERS = (
    "weight_read", "kv_read", "layer", "sequence", "step", "multiply", "prefill_exchange", "decode_exchange", "prompt_queue", "evenness",
    "expert_tile", "expert_traffic", "expert_read", "expert_multiply", "moe_layer",
)  # fmt: skip
OLD_STARTS = {"prompt_layer": 0.0, "prompt_moe_layer": 0.0, "decode_exchange": 1.3, "prompt_queue": 0.1}

# Never fitted. A whole GPU type (B300), H100 where H200 is fitted with the same model, and models in a format of which another model is fitted.
HELD_OUT: tuple[tuple[str, str, str, str], ...] = (
    ("vllm", "H100-SXM-80GB", "MiniMax-M2.5", "fp8"),
    ("vllm", "H200-SXM-141GB", "Qwen3-235B-A22B-FP8", "fp8"),
    ("vllm", "B200-SXM", "Kimi-K2.5", "fp4"),
    ("vllm", "B300-SXM", "Kimi-K2.5", "fp4"),
    ("vllm", "B300-SXM", "MiniMax-M2.5", "fp4"),
    ("vllm", "B300-SXM", "MiniMax-M2.5", "fp8"),
    ("trtllm", "H100-SXM-80GB", "gpt-oss-120b", "fp8"),
    ("trtllm", "B200-SXM", "DeepSeek-V3", "fp4"),
    ("trtllm", "B200-SXM", "DeepSeek-R1-NVFP4", "fp4"),
    ("trtllm", "B200-SXM", "DeepSeek-V3.1-NVFP4", "fp4"),
    ("trtllm", "GB200-NVL72", "DeepSeek-V3.1-NVFP4", "fp4"),
    ("sglang", "H200-SXM-141GB", "Qwen3-235B-A22B-FP8", "fp8"),
    ("sglang", "B300-SXM", "Qwen3.5-397B-A17B", "bf16"),
    ("sglang", "B300-SXM", "Qwen3.5-397B-A17B", "fp8"),
    ("sglang", "B300-SXM", "Qwen3.5-397B-A17B", "fp4"),
    ("sglang", "B300-SXM", "DeepSeek-V3", "fp8"),
    ("sglang", "B200-SXM", "GLM-5", "fp4"),
)

# Start, lowest and highest value of each parameter; times in microseconds, `first_token` in milliseconds. The start is what an unidentified one keeps.
PARAMETERS: dict[str, tuple[float, float, float]] = {
    "weight_read.bf16": (0.92, 0.5, 1.0),
    "weight_read.fp8": (0.90, 0.4, 1.0),
    "weight_read.fp8-block": (0.90, 0.4, 1.0),
    "weight_read.nvfp4": (0.60, 0.3, 1.0),
    "kv_read": (0.85, 0.3, 1.0),
    "layer": (50.0, 5.0, 200.0),
    "sequence": (0.5, 0.0, 4.0),
    "step": (200.0, 0.0, 3000.0),
    "multiply.bf16": (0.65, 0.2, 1.0),
    "multiply.fp8": (0.50, 0.15, 1.0),
    "multiply.fp8-block": (0.45, 0.15, 1.0),
    "multiply.nvfp4": (0.40, 0.1, 1.0),
    "prefill_exchange": (1.0, 0.2, 2.0),
    "decode_exchange": (1.0, 1.0, 4.0),
    "prompt_layer": (100.0, 0.0, 2000.0),
    "prompt_queue": (0.4, 0.05, 5.0),
    "prompt_crowding": (0.55, 0.1, 1.1),
    "first_token": (10.0, 0.0, 300.0),
    "evenness": (2.0, 0.3, 50.0),
    "expert_tile": (32.0, 0.0, 1000.0),
    "expert_traffic": (8.0, 0.0, 100.0),
    "prompt_moe_layer": (200.0, 0.0, 3000.0),
    "mixer_layer.mla": (20.0, 0.0, 150.0),
    "mixer_layer.sparse": (60.0, 0.0, 200.0),
    "mixer_layer.recurrent": (5.0, 0.0, 100.0),
    "expert_read.bf16": (0.8, 0.15, 1.0),
    "expert_read.fp8": (0.8, 0.15, 1.0),
    "expert_read.fp8-block": (0.8, 0.15, 1.0),
    "expert_read.mxfp4": (0.8, 0.15, 1.0),
    "expert_read.int4": (0.7, 0.15, 1.0),
    "expert_read.nvfp4": (0.8, 0.15, 1.0),
    "expert_multiply.bf16": (0.6, 0.02, 1.0),
    "expert_multiply.fp8": (0.4, 0.02, 1.0),
    "expert_multiply.fp8-block": (0.4, 0.02, 1.0),
    "expert_multiply.mxfp4": (0.35, 0.02, 1.0),
    "expert_multiply.int4": (0.35, 0.02, 1.0),
    "expert_multiply.nvfp4": (0.3, 0.02, 1.0),
    "moe_layer.bf16": (15.0, 0.0, 200.0),
    "moe_layer.fp8": (45.0, 0.0, 200.0),
    "moe_layer.fp8-block": (45.0, 0.0, 200.0),
    "moe_layer.mxfp4": (13.0, 0.0, 200.0),
    "moe_layer.int4": (40.0, 0.0, 200.0),
    "moe_layer.nvfp4": (20.0, 0.0, 200.0),
}
# H200 reads experts no faster than H100 does (gpt-oss-120b on both, vLLM): the slower card's bandwidth is the bound. None is known on Blackwell.
EXPERT_BANDWIDTH = {"hopper": 3.35e12, "blackwell": 8.0e12, "ampere": 8.0e12, "ada": 8.0e12}
OLD_EXPERT_BANDWIDTH = 8.0e12
MICROSECONDS = ("layer", "sequence", "step", "prompt_layer", "prompt_moe_layer", "mixer_layer", "moe_layer")
ROUTED = ("evenness", "prompt_moe_layer", "expert_tile", "expert_traffic")
WEIGHT_OF_TTFT = 0.1

# What is expected before any measurement differs on Blackwell: its memory is faster than its kernels.
BLACKWELL_STARTS = {"weight_read.bf16": 0.85, "weight_read.fp8": 0.80, "weight_read.fp8-block": 0.80, "multiply.fp8": 0.45, "layer": 45.0}
# GPUs whose figures the shares of a generation were read off [B/s].
REFERENCE = {"hopper": 3.35e12, "blackwell": 7.7e12, "ampere": 2.039e12, "ada": 0.864e12}
# How far a parameter may lie from its start, as a share of it, before that weighs as much as ten rows that are 5 % off.
SPREADS = {
    "weight_read": 0.08,
    "kv_read": 0.15,
    "layer": 0.15,
    "sequence": 0.6,
    "step": 1.5,
    "multiply": 0.2,
    "prefill_exchange": 0.2,
    "decode_exchange": 0.5,
    "prompt_layer": 1.0,
    "prompt_queue": 1.0,
    "prompt_crowding": 0.3,
    "first_token": 3.0,
    "evenness": 0.7,
    "expert_tile": 1.0,
    "expert_traffic": 1.0,
    "prompt_moe_layer": 1.0,
    "mixer_layer": 1.0,
    "expert_read": 0.2,
    "expert_multiply": 0.4,
    "moe_layer": 0.5,
}
ANCHOR = 0.05 * 10.0**0.5


def is_moe(group: Group | OfflineGroup) -> bool:
    """Tell whether the model routes tokens to experts."""
    return any(kind.feed_forward is not None and kind.feed_forward.experts for kind in group.setting.architecture.layer_kinds)


def held_out(group: Group) -> bool:
    """Tell whether a series is kept out of every fit."""
    return group.rows[0].series in HELD_OUT


def offline_fitted(group: OfflineGroup) -> bool:
    """Tell whether an offline series is fitted."""
    return group.rows[0].series[:3] in OFFLINE_FITTED


def identified(groups: Iterable[Group], offline: Iterable[OfflineGroup] = ()) -> list[str]:
    """Parameters that rows of these groups depend on; served rows depend on all, offline ones on `OFFLINE_PARAMETERS`."""
    served = list(groups)
    names = {name for name in PARAMETERS if "." not in name and name not in (*ROUTED, "decode_exchange")} if served else set()
    for group in served:
        names |= _of_model(group)
    for one in offline:
        plain = {name for name in OFFLINE_PARAMETERS if name in PARAMETERS and name not in (*ROUTED, "decode_exchange")}
        old = set() if served else {"decode_exchange"}
        names |= plain | old | {name for name in _of_model(one) if name.partition(".")[0] in OFFLINE_PARAMETERS}
    return [name for name in PARAMETERS if name in names]


def _of_model(group: Group | OfflineGroup) -> set[str]:
    """Parameters of the mixers, number formats and experts of a group's model."""
    setting, names = group.setting, set()
    for kind in setting.architecture.layer_kinds:
        if kind.recurrent is not None:
            names.add("mixer_layer.recurrent")
        if kind.attention is not None and kind.attention.kind is AttentionKind.MLA:
            names.add("mixer_layer.mla")
        if kind.attention is not None and kind.attention.index_topk is not None:
            names.add("mixer_layer.sparse")
        for tensor in layer_tensors(kind, setting.architecture.hidden_size):
            dtype = kernel_dtype(tensor, setting.precision, setting.architecture.dtype)
            if tensor.split in EXPERT_SPLITS:
                names |= {f"expert_read.{dtype}", f"expert_multiply.{dtype}", f"moe_layer.{dtype}", *ROUTED}
            elif tensor.family in {"attention", "mlp", "recurrent", "shared_expert"}:
                names |= {f"weight_read.{dtype}", f"multiply.{dtype}"}
    return names


def starts(architecture: str, *, old: bool = False) -> dict[str, float]:
    """Start of every parameter on a generation, `old` = before TensorRT-LLM 1.0."""
    values = {name: value[0] for name, value in PARAMETERS.items()}
    return values | (BLACKWELL_STARTS if architecture == "blackwell" else {}) | (OLD_STARTS if old else {})


def constants_of(engine: str, architecture: str, values: Mapping[str, float], *, old: bool = False) -> StepConstants:
    """Constants with these values, everything else as in the catalog."""
    fields: dict[str, object] = {}
    for name, value in values.items():
        field, _, dtype = name.partition(".")
        unit = 1e-6 if field in MICROSECONDS else 1e-3 if field == "first_token" else 1.0
        if dtype:
            table = fields.setdefault(field, {})
            table[dtype] = value * unit  # type: ignore[index]
        else:
            fields[field] = value * unit
    fields["expert_bandwidth"] = OLD_EXPERT_BANDWIDTH if old else EXPERT_BANDWIDTH[architecture]
    fields["memory_reference"] = REFERENCE[architecture]
    return replace(step_constants(engine, architecture), **fields)  # type: ignore[arg-type]


def predict(group: Group, constants: StepConstants) -> Step:
    """Times of a group's rows."""
    return step_times(group.setting, group.shapes, constants)


def ratios(group: Group | OfflineGroup, constants: StepConstants) -> np.ndarray:
    """Predicted over measured TPOT of every row, offline measured over predicted throughput."""
    step = step_times(group.setting, group.shapes, constants)
    if isinstance(group, OfflineGroup):
        return group.throughput * step.tpot / step.decoding
    return step.tpot / group.tpot


def fit(groups: list[Group], engine: str, architecture: str, offline: list[OfflineGroup] | None = None) -> dict[str, float]:
    """Fit all identified parameters of an engine on a generation to TPOT, and lightly to TTFT, of these groups, and to the throughput of offline ones.

    Every parameter is held to its start by `SPREADS`, so that what a series does not identify stays where other hardware has it.
    """
    old = not groups
    values = starts(architecture, old=old)
    free = identified(groups, offline or [])
    start = np.array([values[name] for name in free])
    spread = np.array([SPREADS[name.partition(".")[0]] for name in free]) * start

    def residuals(vector: np.ndarray) -> np.ndarray:
        values.update(zip(free, vector, strict=True))
        constants = constants_of(engine, architecture, values, old=old)
        parts = [ANCHOR * (vector - start) / spread]
        parts += [np.log(ratios(group, constants)) for group in offline or []]
        for group in groups:
            step = predict(group, constants)
            parts.append(np.log(step.tpot / group.tpot))
            # Where the KV cache holds fewer sequences than the load, TTFT is the wait for a slot.
            usable = (group.shapes.batch >= np.array([row.load for row in group.rows])) & (group.ttft > 0.0)
            waited = np.where(usable, step.first_token / np.where(usable, group.ttft, 1.0), 1.0)
            parts.append(WEIGHT_OF_TTFT * np.log(waited))
        return np.concatenate(parts)

    low = np.array([PARAMETERS[name][1] for name in free])
    high = np.array([PARAMETERS[name][2] for name in free])
    values.update(zip(free, minimise(residuals, start, low, high), strict=True))
    return values
