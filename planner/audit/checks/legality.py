"""The engine can run the shape: heads, kv heads, experts, groups, quantization blocks and number formats, by the auditor's own arithmetic.

Which rules an engine version has is a fact of the catalog; what each rule asks is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.audit.case import Case
from planner.audit.findings import finding
from planner.audit.widths import INPUTS, OUTPUTS, Width, model_widths
from planner.catalog.architecture import AttentionKind, ModelArchitecture, Quantization
from planner.catalog.engines import Engine
from planner.catalog.gpus import Gpu
from planner.cost.setting import Precision
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees

# Marlin multiplies tiles of 128 inputs by 64 outputs; only 8-bit weights without groups or blocks have no other kernel to fall back on.
MARLIN_TILE = {INPUTS: 128, OUTPUTS: 64}
WEIGHT_ONLY_METHODS = ("marlin", "w8a16", "weight-only", "weight only")
MICROSCALED = frozenset({"mxfp4", "mxfp6", "mxfp8", "nvfp4"})
GROUPED = frozenset({"int4", "int8"})
SIXTEEN_BITS = frozenset({"bf16", "fp16"})

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
        if family.precision is None:
            continue
        faults = violations(Layout(family.architecture, family.precision, family.engine, family.pool.gpu, family.degrees))
        for index in family.rows if faults else ():
            for code, message, hint in faults:
                yield finding(code, case.row_place(index), f"{family.title}: {message}", hint)


def violations(layout: Layout) -> tuple[Fault, ...]:
    """Every rule that the layout breaks, as (code, message, hint)."""
    return (
        *_images(layout),
        *_speculation(layout),
        *_heads(layout),
        *_experts(layout),
        *_recurrent(layout),
        *_blocks(layout),
        *_formats(layout),
        *_ends(layout),
    )


def _heads(layout: Layout) -> Iterator[Fault]:
    tensor_parallel = layout.degrees.tensor_parallel
    attentions = dict.fromkeys(kind.attention for kind, _ in layout.architecture.kind_counts() if kind.attention is not None)
    for heads in dict.fromkeys(attention.heads for attention in attentions):
        if heads % tensor_parallel and layout.refuses("heads"):
            yield "HEADS_NOT_DIVISIBLE", f"{heads} heads do not divide by TP {tensor_parallel}", f"choose a divisor of {heads}"
    for groups in dict.fromkeys(attention.output_groups for attention in attentions if attention.output_groups is not None):
        if groups % tensor_parallel and layout.refuses("output_groups"):
            message = f"{groups} output groups do not divide by TP {tensor_parallel}"
            yield "OUTPUT_GROUPS_NOT_DIVISIBLE", message, f"choose a divisor of {groups}"
    if layout.architecture.compressed:
        staged = layout.degrees.pipeline_parallel > 1 and layout.refuses("compressed_attention", "pipeline")
        if staged or layout.refuses("compressed_attention"):
            where = "in pipeline stages " if staged else ""
            message = f"{layout.engine.title} {layout.engine.version} does not run attention over compressed tokens {where}".rstrip()
            yield "ATTENTION_NOT_SUPPORTED", message, "name a newer version of the engine"
    # MLA keeps one latent on every rank, so its kv heads never refuse.
    for kv_heads in dict.fromkeys(attention.kv_heads for attention in attentions if attention.kind is not AttentionKind.MLA):
        if kv_heads % tensor_parallel and tensor_parallel % kv_heads and layout.refuses("kv_heads"):
            message = f"{kv_heads} kv heads neither divide by TP {tensor_parallel} nor repeat evenly over it"
            yield "KV_HEADS_NOT_DIVISIBLE", message, f"choose a divisor or a multiple of {kv_heads}"
    tower = layout.architecture.vision
    if tower is not None and tower.heads is not None and tower.heads % tensor_parallel and layout.refuses("vision_heads"):
        yield "VISION_HEADS_NOT_DIVISIBLE", f"{tower.heads} vision heads do not divide by TP {tensor_parallel}", "take a newer engine"


def _images(layout: Layout) -> Iterator[Fault]:
    kinds = {kind.attention.kind for kind in layout.architecture.layer_kinds if kind.attention is not None}
    if AttentionKind.CROSS in kinds and layout.refuses("cross_attention"):
        message = f"{layout.engine.title} {layout.engine.version} serves no model that attends to images in layers of their own"
        yield "CROSS_ATTENTION_NOT_SERVED", message, "take another engine or version"


def _speculation(layout: Layout) -> Iterator[Fault]:
    draft, degrees, title = layout.architecture.draft, layout.degrees, f"{layout.engine.title} {layout.engine.version}"
    if draft is None and layout.architecture.speculation is None:
        return
    code, own_layers = "SPECULATION_NOT_SUPPORTED", draft is not None and draft.shares_ends
    if degrees.pipeline_parallel > 1 and layout.refuses("speculation_stages"):
        yield code, f"{title} speculates on one pipeline stage, not on {degrees.pipeline_parallel}", "choose PP 1"
    if degrees.data_parallel > 1 and not own_layers and layout.refuses("speculation", "attention_dp"):
        yield code, f"{title} speculates without data-parallel attention, not over {degrees.data_parallel} ranks of it", "choose DP 1"
    if draft is not None and draft.alone and degrees.tensor_parallel > 1 and layout.refuses("speculation", "whole_draft"):
        yield code, f"{title} keeps no whole draft on each of {degrees.tensor_parallel} ranks", "cut the draft like its model"


def _expert_counts(architecture: ModelArchitecture) -> tuple[int, ...]:
    """Distinct numbers of routed experts in the model's layers."""
    parts = (kind.feed_forward for kind, _ in architecture.kind_counts())
    return tuple(dict.fromkeys(part.experts for part in parts if part is not None and part.experts))


def _experts(layout: Layout) -> Iterator[Fault]:
    degrees, engine = layout.degrees, layout.engine
    counts = _expert_counts(layout.architecture)
    if degrees.expert_parallel > 1 and not counts:
        yield "NO_EXPERTS", f"EP {degrees.expert_parallel} of a model without experts", "leave EP at 1"
    for experts in counts:
        if experts % degrees.expert_parallel and layout.refuses("experts"):
            message = f"{experts} experts do not divide by EP {degrees.expert_parallel}"
            yield "EXPERTS_NOT_DIVISIBLE", message, f"choose a divisor of {experts}"
    whole_stages = engine.expert_parallel == "whole stage"
    if counts and whole_stages and degrees.expert_parallel not in {1, degrees.stage_gpus} and layout.refuses("experts"):
        message = (
            f"{engine.title} spreads experts over all {degrees.stage_gpus} GPUs of a stage or none, not over {degrees.expert_parallel}"
        )
        yield "EP_LAYOUT_NOT_SUPPORTED", message, f"choose EP 1 or {degrees.stage_gpus}"
    if degrees.data_parallel > 1 and layout.refuses("attention_dp"):
        if not counts:
            message = f"DP {degrees.data_parallel} inside a replica of a model without experts"
            yield "ATTENTION_DP_NEEDS_EXPERTS", message, "leave DP at 1 and ask for more replicas"
        elif degrees.tensor_parallel > 1 and engine.attention_dp == "one":
            message = f"{engine.title} runs data-parallel attention on single GPUs, not on TP {degrees.tensor_parallel}"
            yield "ATTENTION_DP_LAYOUT", message, "choose TP 1 with DP, or DP 1"


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
    """Every matrix of a quantized family is cut into whole scale blocks, groups and kernel tiles."""
    main = layout.precision.quantization
    if main is None:
        return
    for width in model_widths(layout.architecture, layout.degrees):
        if width.family in layout.kept_high:
            continue
        scheme = main.of(width.family)
        if scheme.block is not None and layout.refuses("fp8_block", width.family):
            block = scheme.block[0 if width.axis == OUTPUTS else 1]
            yield from _ragged(width, block, "QUANT_BLOCK_NOT_DIVISIBLE", f"the block of {block}")
        if scheme.group is not None and width.axis == INPUTS:
            microscaled = scheme.weights in MICROSCALED and layout.refuses("microscaling", scheme.weights)
            grouped = scheme.weights in GROUPED and layout.refuses("quantization_group", width.family)
            if microscaled or grouped:
                yield from _ragged(width, scheme.group, "QUANT_GROUP_NOT_DIVISIBLE", f"the group of {scheme.group}")
        if _needs_marlin(layout, scheme):
            tile = MARLIN_TILE[width.axis]
            yield from _ragged(width, tile, "KERNEL_TILE", f"the kernel's tile of {tile}")


def _needs_marlin(layout: Layout, scheme: Quantization) -> bool:
    weights, gpu = scheme.weights, layout.gpu
    if scheme.group is not None or scheme.block is not None or not layout.refuses("kernel_tile"):
        return False
    if weights == "fp8" and gpu.vendor == "nvidia" and not gpu.computes("fp8"):
        return True
    return weights in {"int8", "fp8"} and any(word in scheme.method.lower() for word in WEIGHT_ONLY_METHODS)


def _ragged(width: Width, multiple: int, code: str, what: str) -> Iterator[Fault]:
    # A matrix narrower than one block is one that checkpoints leave unquantized.
    if width.whole >= multiple and width.held % multiple:
        message = f"{width.family} {width.axis} {width.whole} over {width.ranks} ranks leave {float(width.held):g}, no multiple of {what}"
        yield code, message, "choose a smaller TP, or spread whole experts with EP"


def _formats(layout: Layout) -> Iterator[Fault]:
    """Weights must be in a format that the GPU multiplies, or that the engine expands on a GPU of its generation."""
    activations, gpu = layout.precision.activations, layout.gpu
    if not layout.refuses("dtype"):
        return
    for weights in _names(layout):
        if weights != "fp32" and not gpu.computes(weights.partition("-")[0]) and not _expanded(layout, weights):
            message = f"{gpu.name} does not multiply {weights}, and {layout.engine.title} {layout.engine.version} does not expand it there"
            yield "UNSUPPORTED_DTYPE_ARCH", message, "choose another format or GPU"
    if activations in SIXTEEN_BITS and activations != layout.precision.weights and not gpu.computes(activations):
        yield "UNSUPPORTED_DTYPE_ARCH", f"{gpu.name} does not multiply {activations} activations", "use fp16 activations"


def _names(layout: Layout) -> tuple[str, ...]:
    """Formats of the weights as engines tell them apart: FP8 of routed experts in blocks has kernels of its own."""
    scheme = layout.precision.quantization
    if scheme is None:
        return (layout.precision.weights,)
    routed = scheme.of("expert") if _expert_counts(layout.architecture) else None
    others = {scheme.weights} if routed is not scheme else set()
    others |= {other.weights for family, other in scheme.apart if family != "expert"}
    if routed is not None:
        others.add("fp8-block-experts" if routed.weights == "fp8" and routed.block is not None else routed.weights)
    return tuple(sorted(others))


def _expanded(layout: Layout, weights: str) -> bool:
    """Whether the engine turns the weights into 16 bits in a kernel that the GPU can run."""
    gpu, support = layout.gpu, layout.engine.format(weights)
    if weights in SIXTEEN_BITS or support is None:
        return False
    if gpu.compute_capability is None:
        return gpu.vendor == "amd" and support.amd
    return support.expanded_from is not None and gpu.compute_capability >= support.expanded_from


def _ends(layout: Layout) -> Iterator[Fault]:
    multiple = layout.engine.vocabulary_padding
    rows = -(-layout.architecture.vocab_size // multiple) * multiple
    if rows % layout.degrees.tensor_parallel and layout.refuses("vocabulary"):
        message = f"a vocabulary of {rows} rows (padded to {multiple}) does not divide by TP {layout.degrees.tensor_parallel}"
        yield "VOCAB_NOT_DIVISIBLE", message, "choose a divisor of the padded vocabulary"
