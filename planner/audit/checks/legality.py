"""The engine can run the shape: heads, kv heads, experts, groups, quantization blocks and number formats, by the auditor's own arithmetic.

Which rules an engine version has is a fact of the catalog; what each rule asks is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.audit.case import Case, Family
from planner.audit.findings import finding
from planner.audit.question import engine_of, precision_of
from planner.audit.widths import Width, model_widths
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import Engine
from planner.catalog.gpus import Gpu
from planner.cost.setting import Precision
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees

MARLIN_FORMATS = frozenset({"int4"})
MARLIN_TILE = {"inputs": 128, "outputs": 64}
MICROSCALED = {"mxfp4": 32, "nvfp4": 16}

Fault = tuple[str, str, str]


@dataclass(frozen=True)
class Layout:
    """What the rules look at: a model in a precision, run by an engine on a GPU, cut by degrees."""

    architecture: ModelArchitecture
    precision: Precision
    engine: Engine
    gpu: Gpu
    degrees: Degrees

    def refuses(self, rule: str, part: str | None = None) -> bool:
        """Whether breaking this rule stops the engine."""
        found = self.engine.rule(rule, part)
        return found is not None and found.effect == "error"

    @property
    def kept_high(self) -> frozenset[str]:
        """Families that are not quantized."""
        scheme = self.precision.quantization
        return frozenset() if scheme is None else frozenset(scheme.kept_high)


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic per replica and rule of its engine that its shape breaks."""
    for family in case.families:
        precision = precision_of(family)
        if precision is None:
            continue
        faults = violations(Layout(family.architecture, precision, engine_of(family.question), family.pool.gpu, family.degrees))
        for index in family.rows.tolist():
            for code, message, hint in faults:
                yield finding(code, case.row_place(index), _titled(family, message), hint)


def _titled(family: Family, message: str) -> str:
    return f"{family.title}: {message}"


def violations(layout: Layout) -> tuple[Fault, ...]:
    """Every rule that the layout breaks, as (code, message, hint)."""
    return (*_heads(layout), *_experts(layout), *_recurrent(layout), *_blocks(layout), *_formats(layout), *_ends(layout))


def _heads(layout: Layout) -> Iterator[Fault]:
    tensor_parallel = layout.degrees.tensor_parallel
    attentions = dict.fromkeys(kind.attention for kind, _ in layout.architecture.kind_counts() if kind.attention is not None)
    for heads in dict.fromkeys(attention.heads for attention in attentions):
        if heads % tensor_parallel and layout.refuses("heads"):
            yield "HEADS_NOT_DIVISIBLE", f"{heads} heads do not divide by TP {tensor_parallel}", f"choose a divisor of {heads}"
    for kv_heads in dict.fromkeys(attention.kv_heads for attention in attentions):
        if kv_heads % tensor_parallel and tensor_parallel % kv_heads and layout.refuses("kv_heads"):
            message = f"{kv_heads} kv heads neither divide by TP {tensor_parallel} nor repeat evenly over it"
            yield "KV_HEADS_NOT_DIVISIBLE", message, f"choose a divisor or a multiple of {kv_heads}"
    tower = layout.architecture.vision
    if tower is not None and tower.heads is not None and tower.heads % tensor_parallel and layout.refuses("vision_heads"):
        yield "VISION_HEADS_NOT_DIVISIBLE", f"{tower.heads} vision heads do not divide by TP {tensor_parallel}", "take a newer engine"


def _experts(layout: Layout) -> Iterator[Fault]:
    degrees = layout.degrees
    counts = dict.fromkeys(kind.feed_forward.experts for kind, _ in layout.architecture.kind_counts() if kind.feed_forward is not None)
    counts.pop(0, None)
    if not counts and (degrees.expert_parallel > 1):
        yield "NO_EXPERTS", f"EP {degrees.expert_parallel} of a model without experts", "leave EP at 1"
    for experts in counts:
        if experts % degrees.expert_parallel and layout.refuses("experts"):
            message = f"{experts} experts do not divide by EP {degrees.expert_parallel}"
            yield "EXPERTS_NOT_DIVISIBLE", message, f"choose a divisor of {experts}"
    if layout.engine.expert_parallel == "whole stage" and degrees.expert_parallel not in {1, degrees.stage_gpus}:
        message = f"{layout.engine.title} spreads experts over all {degrees.stage_gpus} GPUs of a stage or none, not over {degrees.expert_parallel}"
        yield "EP_NOT_OFFERED", message, f"choose EP 1 or {degrees.stage_gpus}"
    if degrees.data_parallel > 1 and degrees.tensor_parallel > 1 and layout.engine.attention_dp == "one" and layout.refuses("attention_dp"):
        message = f"{layout.engine.title} runs data-parallel attention on single GPUs, not on TP {degrees.tensor_parallel}"
        yield "ATTENTION_DP_NOT_OFFERED", message, "choose TP 1 with DP, or DP 1"


def _recurrent(layout: Layout) -> Iterator[Fault]:
    tensor_parallel = layout.degrees.tensor_parallel
    for kind, _ in layout.architecture.kind_counts():
        state = kind.recurrent
        if state is None or not layout.refuses("recurrent_groups"):
            continue
        if state.groups > 1 and state.groups % tensor_parallel:
            message = f"{state.groups} groups of a recurrent layer do not divide by TP {tensor_parallel}"
            yield "MAMBA_GROUPS_NOT_DIVISIBLE", message, f"choose a divisor of {state.groups}"
        if state.heads % tensor_parallel:
            message = f"{state.heads} heads of a recurrent layer do not divide by TP {tensor_parallel}"
            yield "HEADS_NOT_DIVISIBLE", message, f"choose a divisor of {state.heads}"


def _blocks(layout: Layout) -> Iterator[Fault]:
    scheme = layout.precision.quantization
    if scheme is None:
        return
    padding = layout.engine.kernel_padding(layout.precision.weights)
    for width in model_widths(layout.architecture, layout.degrees):
        if width.cut == 1 or width.family in layout.kept_high:
            continue
        if scheme.block is not None and layout.refuses("fp8_block", width.family):
            block = scheme.block[0 if width.axis == "outputs" else 1]
            yield from _ragged(width, block, "QUANT_BLOCK_NOT_DIVISIBLE", f"the block of {block}")
        group = MICROSCALED.get(layout.precision.weights)
        if width.axis == "inputs" and group is not None and layout.refuses("microscaling", width.family):
            if width.family == "expert" and padding.expert_width > 1:
                continue
            yield from _ragged(width, group, "QUANT_GROUP_NOT_DIVISIBLE", f"the scale block of {group}")
        elif width.axis == "inputs" and scheme.group is not None and layout.refuses("quantization_group", width.family):
            yield from _ragged(width, scheme.group, "QUANT_GROUP_NOT_DIVISIBLE", f"the group of {scheme.group}")
        if layout.precision.weights in MARLIN_FORMATS and layout.refuses("kernel_tile", width.family):
            tile = MARLIN_TILE[width.axis]
            yield from _ragged(width, tile, "KERNEL_TILE", f"the kernel's tile of {tile}")


def _ragged(width: Width, multiple: int, code: str, what: str) -> Iterator[Fault]:
    if width.held % multiple:
        message = f"{width.family} {width.axis} {width.whole} over {width.cut} ranks leave {float(width.held):g}, no multiple of {what}"
        yield code, message, "choose a smaller TP, or spread whole experts with EP"


def _formats(layout: Layout) -> Iterator[Fault]:
    """Weights must be in a format that the GPU multiplies, or that the engine expands on a GPU of its generation."""
    weights, gpu = layout.precision.weights, layout.gpu
    if gpu.computes(weights) or not layout.refuses("dtype"):
        return
    scheme = layout.precision.quantization
    has_experts = any(kind.feed_forward is not None and kind.feed_forward.experts for kind, _ in layout.architecture.kind_counts())
    name = "fp8-block-experts" if weights == "fp8" and has_experts and scheme is not None and scheme.block is not None else weights
    support = layout.engine.format(name)
    if support is None:
        runs = False
    elif gpu.compute_capability is None:
        runs = gpu.vendor == "amd" and support.amd
    else:
        runs = support.expanded_from is not None and gpu.compute_capability >= support.expanded_from
    if not runs:
        message = f"{gpu.name} does not multiply {weights}, and {layout.engine.title} {layout.engine.version} does not expand it there"
        yield "UNSUPPORTED_DTYPE_ARCH", message, "choose another format or GPU"


def _ends(layout: Layout) -> Iterator[Fault]:
    multiple = layout.engine.vocabulary_padding
    rows = -(-layout.architecture.vocab_size // multiple) * multiple
    if rows % layout.degrees.tensor_parallel and layout.refuses("vocabulary"):
        message = f"a vocabulary of {rows} rows (padded to {multiple}) does not divide by TP {layout.degrees.tensor_parallel}"
        yield "VOCAB_NOT_DIVISIBLE", message, "choose a divisor of the padded vocabulary"
