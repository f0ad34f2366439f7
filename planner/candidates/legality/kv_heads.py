"""Key and value heads are dealt out whole, or each is held by t / K ranks: K % t == 0 or t % K == 0."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.legality.question import Question, degrees_that, divisors, finding
from planner.catalog.architecture import AttentionKind
from planner.diagnostics import Diagnostic
from planner.plan.shape import Degrees


def legal(kv_heads: int, tensor_parallel: int) -> bool:
    """Tell whether `kv_heads` can be dealt out to, or repeated over, `tensor_parallel` ranks."""
    return kv_heads % tensor_parallel == 0 or tensor_parallel % kv_heads == 0


def check(question: Question, degrees: Degrees) -> Iterator[Diagnostic]:
    """Report kv heads that neither divide nor replicate. MLA has one latent that every rank holds, so it never refuses."""
    t = degrees.tensor_parallel
    for kv_heads, heads in sorted({(a.kv_heads, a.heads) for a in question.attentions() if a.kind is not AttentionKind.MLA}):
        if not legal(kv_heads, t):
            allowed = [degree for degree in divisors(heads) if legal(kv_heads, degree)]
            message = f"{kv_heads} kv heads / TP {t} leaves {kv_heads % t} over, and {t} is no multiple of {kv_heads} either"
            yield from finding(question.engine.rule("kv_heads"), "KV_HEADS_NOT_DIVISIBLE", message, degrees_that(allowed))
