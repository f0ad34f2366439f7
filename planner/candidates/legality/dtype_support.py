"""Number formats: the GPU multiplies them natively, or the engine expands them in a kernel that the GPU can run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from planner.candidates.legality.question import Question, finding
from planner.diagnostics import Diagnostic, Severity
from planner.plan.shape import Degrees

SIXTEEN_BIT: Final = ("bf16", "fp16", "fp32")


def supported(question: Question, name: str) -> bool:
    """Tell whether weights of the format `name` run on this GPU under this engine version."""
    gpu, weights = question.gpu, name.partition("-")[0]
    if weights == "fp32" or gpu.computes(weights):
        return True
    if weights in SIXTEEN_BIT:
        return False
    support = question.engine.format(name)
    if support is None:
        return False
    if gpu.compute_capability is None:
        return gpu.vendor == "amd" and support.amd
    return support.expanded_from is not None and gpu.compute_capability >= support.expanded_from


def format_names(question: Question) -> tuple[str, ...]:
    """Names of the formats in the engine's table: block FP8 of routed experts runs in other kernels than dense FP8."""
    scheme = question.precision.quantization
    if scheme is None:
        return (question.precision.weights,)
    found = [scheme.weights]
    if question.expert_parts():
        experts = scheme.of("expert")
        blocked = experts.weights == "fp8" and experts.block is not None
        found = [*(found if experts is not scheme else []), "fp8-block-experts" if blocked else experts.weights]
    return tuple(dict.fromkeys((*found, *(other.weights for family, other in scheme.apart if family != "expert"))))


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report formats that neither the GPU nor the engine can run; degrees do not matter."""
    del degrees
    gpu, precision = question.gpu, question.precision
    where = f"{gpu.name} (compute capability {gpu.compute_capability})" if gpu.compute_capability is not None else gpu.name
    native = ", ".join(sorted(gpu.dtypes))
    rule = question.engine.rule("dtype")
    for name in format_names(question):
        if supported(question, name):
            continue
        support = question.engine.format(name)
        since = f" and {question.engine.title} {question.engine.version} does not expand it there"
        if support is not None and support.expanded_from is not None and gpu.compute_capability is not None:
            since = f"; {question.engine.title} {question.engine.version} expands it from compute capability {support.expanded_from} on"
        message = f"{name} weights: {where} multiplies {native}{since}"
        hint = "use fp16 weights" if name == "bf16" else "use 16-bit or 4-bit integer weights, or a newer GPU"
        yield from finding(rule, "UNSUPPORTED_DTYPE_ARCH", message, hint)
    if precision.activations in SIXTEEN_BIT and precision.activations != precision.weights and not gpu.computes(precision.activations):
        message = f"{precision.activations} activations: {where} multiplies {native}"
        yield from finding(rule, "UNSUPPORTED_DTYPE_ARCH", message, "use fp16 activations")
    if precision.kv_cache == "fp8" and not gpu.computes("fp8"):
        message = f"fp8 KV cache on {where}, which has no fp8 arithmetic: only some attention kernels store it so"
        yield Diagnostic("KV_DTYPE_NOT_NATIVE", message, "keep the KV cache in 16 bits", Severity.WARNING)
