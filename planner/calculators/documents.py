"""Answers of the calculators as plain data: one JSON document, or flat rows for CSV and tables. Units are in the names, infinite = null."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from planner.calculators.communication import Exchange
from planner.calculators.estimate import Estimate, codes
from planner.calculators.question import Case
from planner.calculators.room import GIB, Room
from planner.diagnostics import Diagnostic
from planner.plan.document import FORMAT_VERSION
from planner.plan.shape import Degrees

Row = dict[str, Any]


def document(command: str, profile: str, answers: list[Row], notes: Iterable[Diagnostic] = (), **more: Any) -> Row:
    """The one JSON document of a calculator."""
    found = [diagnostic_row(item) for item in dict.fromkeys(notes)]
    return {"format_version": FORMAT_VERSION, "calculator": command, "profile": profile, **more, "answers": answers, "diagnostics": found}


def finite(value: float | None, digits: int = 9) -> float | None:
    """A number with `digits` significant ones, None where it is infinite or absent."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def diagnostic_row(item: Diagnostic) -> Row:
    """A diagnostic as data."""
    return {
        "code": item.code,
        "severity": item.severity.value,
        "message": item.message,
        "hint": item.hint,
        "path": item.place.path if item.place is not None else "",
    }


def case_row(case: Case) -> Row:
    """What a case is, in the first columns of every row."""
    setting = case.setting
    return {
        "model": setting.architecture.name,
        "gpu": setting.gpu.name,
        "link": case.hardware.link.name,
        "domain": case.hardware.domain,
        "engine": setting.engine,
        "weights": setting.precision.weights,
        "kv_cache": setting.precision.kv_cache,
        "prompt_tokens": int(setting.prompt_tokens),
        "output_tokens": int(setting.output_tokens),
    }


def degrees_row(degrees: Degrees) -> Row:
    """Degrees by their short names."""
    return {
        "tp": degrees.tensor_parallel,
        "pp": degrees.pipeline_parallel,
        "ep": degrees.expert_parallel,
        "dp": degrees.data_parallel,
        "gpus": degrees.gpus,
    }


def room_row(held: Room) -> Row:
    """Memory of the fullest rank."""
    terms = held.stage.terms
    context = sum(term.expected for term in terms if term.name in ("KV cache", "recurrent states"))
    weights = sum(term.expected for term in terms if term.name in ("layers", "embedding", "head", "vision tower"))
    certain = context + weights
    other, low, high = (sum(getattr(term, bound) for term in terms) - certain for bound in ("expected", "low", "high"))
    return {
        "verdict": held.verdict,
        "fits": held.fits,
        "budget_gib": finite(held.stage.budget / GIB),
        "weights_gib": finite(weights / GIB),
        "kv_gib": finite(context / GIB),
        "other_gib": finite(other / GIB),
        "other_low_gib": finite(low / GIB),
        "other_high_gib": finite(high / GIB),
        "free_gib": finite(held.stage.free / GIB),
        "max_sequences": held.sequences,
        "max_sequences_low": held.sequences_low,
        "max_sequences_high": held.sequences_high,
        "max_tokens": held.tokens,
        "engine_log_tokens": held.engine_tokens,
        "fullest_stage": held.stage.stage,
        "largest_term": held.stage.largest.name,
    }


def terms_rows(held: Room) -> list[Row]:
    """Terms of the fullest rank, largest first."""
    ordered = sorted(held.stage.terms, key=lambda term: -term.expected)
    return [
        {"term": term.name, "gib": finite(term.expected / GIB), "low_gib": finite(term.low / GIB), "high_gib": finite(term.high / GIB)}
        for term in ordered
    ]


def exchange_row(phase: str, item: Exchange) -> Row:
    """One exchange with its terms."""
    return {
        "phase": phase,
        "exchange": item.kind,
        "algorithm": item.algorithm,
        "chosen": item.chosen,
        "link": item.link,
        "calls": item.calls,
        "message_bytes": finite(item.message),
        "hops_per_call": finite(item.hops),
        "volume_per_call_bytes": finite(item.volume),
        "hops": finite(item.calls * item.hops),
        "volume_bytes": finite(item.calls * item.volume),
        "alpha_s": finite(item.alpha),
        "beta_s_per_byte": finite(item.beta),
        "latency_s": finite(item.latency),
        "transfer_s": finite(item.transfer),
        "total_s": finite(item.total),
    }


def times_row(estimate: Estimate) -> Row:
    """Times [s] and shares."""
    times = estimate.times
    names = ("tpot", "ttft", "compute", "tp_comm", "pp_comm", "ep_comm", "fixed", "prefill_compute", "prefill_comm", "queueing")
    row = {f"{name}_s": finite(getattr(times, name)) for name in names}
    return row | {name: finite(getattr(times, name)) for name in ("overhead", "efficiency", "latency_efficiency", "bubble")}


def estimate_row(estimate: Estimate) -> Row:
    """One layout as one flat row."""
    case, money = estimate.case, estimate.money
    return {
        **case_row(case),
        **degrees_row(estimate.degrees),
        "batch": estimate.batch,
        "locality": estimate.locality,
        "legal": estimate.legal,
        **room_row(estimate.room),
        "algorithm": estimate.algorithm,
        **times_row(estimate),
        "throughput_tokens_s": finite(estimate.throughput),
        "usd_per_hour": finite(money.per_hour),
        "usd_per_million_output_tokens": finite(money.per_million_output),
        "usd_per_million_tokens": finite(money.per_million_total),
        "codes": " ".join(codes(estimate.findings)),
        "recommendation": estimate.recommendation.message,
    }


def estimate_document(estimate: Estimate) -> Row:
    """One layout in full."""
    money, advice = estimate.money, estimate.recommendation
    exchanges = [("decode", item) for item in estimate.exchanges] + [("prefill", item) for item in estimate.prefill_exchanges]
    answer: Row = {
        **case_row(estimate.case),
        "shape": {**degrees_row(estimate.degrees), "batch": estimate.batch, "locality": estimate.locality},
        "legal": estimate.legal,
        "memory": {**room_row(estimate.room), "words": estimate.room.words, "terms": terms_rows(estimate.room)},
        "times": times_row(estimate),
        "algorithm": estimate.algorithm,
        "communication": [exchange_row(phase, item) for phase, item in exchanges],
        "throughput_tokens_s": finite(estimate.throughput),
        "money": {
            "price_per_gpu_hour": finite(money.price),
            "price_source": money.source,
            "usd_per_hour": finite(money.per_hour),
            "usd_per_million_output_tokens": finite(money.per_million_output),
            "usd_per_million_tokens": finite(money.per_million_total),
        },
        "tails": None,
        "findings": [diagnostic_row(item) for item in estimate.findings],
        "checks": [
            {"step": check.step, "name": check.name, "message": check.message, "verdict": check.verdict} for check in estimate.checks
        ],
        "recommendation": {
            "action": advice.action,
            "message": advice.message,
            "shape": None if advice.degrees is None else degrees_row(advice.degrees),
            "replicas": advice.replicas,
        },
    }
    if estimate.tails is not None:
        found = estimate.tails
        answer["tails"] = {
            f"p{percentile:g}": {"tpot_s": finite(float(found.tpot[0, index])), "ttft_s": finite(float(found.ttft[0, index]))}
            for index, percentile in enumerate(found.percentiles)
        }
    if estimate.law is not None:
        law = estimate.law
        answer["fitted"] = {
            "layer_s": finite(law.layer),
            "prefill_compute_s": finite(law.prefill_compute),
            "ttft_s": finite(law.ttft),
        }
    return answer
