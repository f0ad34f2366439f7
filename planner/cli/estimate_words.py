"""An estimate as a person reads it: the figures first, then memory, communication, rules, the ten steps, and what would be better."""

from __future__ import annotations

from collections.abc import Iterator

from planner.calculators.communication import Exchange
from planner.calculators.estimate import Estimate
from planner.calculators.room import GIB
from planner.diagnostics import Severity
from planner.report.words import milliseconds, money, per_hour, percent, shape_words


def head_lines(estimate: Estimate) -> Iterator[str]:
    """What was asked, and the figures of the step, the first token, the money."""
    case, degrees, times = estimate.case, estimate.degrees, estimate.times
    setting = case.setting
    shape = shape_words(degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)
    yield (
        f"{setting.architecture.name} · {setting.precision.weights}, KV {setting.precision.kv_cache} · {setting.engine} · {shape} on "
        f"{degrees.gpus} x {setting.gpu.name} · {case.hardware.link.name} · {case.profile}"
    )
    yield f"  load             batch {estimate.batch:,}, {setting.prompt_tokens:,.0f} prompt + {setting.output_tokens:,.0f} output tokens"
    parts = f"compute {milliseconds(times.compute)} + TP {milliseconds(times.tp_comm)} + PP {milliseconds(times.pp_comm)}"
    parts += f" + EP {milliseconds(times.ep_comm)} + fixed {milliseconds(times.fixed)}"
    yield f"  time per token   {milliseconds(times.tpot)}   {parts}"
    yield (
        f"                   overhead {percent(times.overhead)}   efficiency {percent(times.efficiency)} (latency alone "
        f"{percent(times.latency_efficiency)})   bubble {percent(times.bubble, 1)}   all-reduce by {estimate.algorithm}"
    )
    prefill = f"compute {milliseconds(times.prefill_compute)} + communication {milliseconds(times.prefill_comm)}"
    yield f"  first token      {milliseconds(times.ttft)}   {prefill} + queueing {milliseconds(times.queueing)}"
    if estimate.law is not None:
        law = estimate.law
        yield (
            f"    by your fit    {milliseconds(law.ttft)}   compute {milliseconds(law.prefill_compute)}, "
            f"one layer on one GPU {milliseconds(law.layer)}"
        )
    if estimate.tails is not None:
        found = estimate.tails
        marks = [f"P{mark:g}" for mark in found.percentiles]
        tpot = ", ".join(f"{mark} {milliseconds(float(value))}" for mark, value in zip(marks, found.tpot[0], strict=True))
        ttft = ", ".join(f"{mark} {milliseconds(float(value))}" for mark, value in zip(marks, found.ttft[0], strict=True))
        yield f"  tails            per token {tpot}; first token {ttft}"
    yield f"  throughput       {estimate.throughput:,.0f} output tokens/s, {estimate.throughput / degrees.gpus:,.0f} a GPU"
    yield f"  money            {_money_words(estimate)}"
    yield ""


def _money_words(estimate: Estimate) -> str:
    found = estimate.money
    if found.price is None:
        return "no price: add --price 2.50 (a GPU, per hour)"
    source = "" if found.source == "given" else f" (example: {found.source})"
    words = f"{per_hour(found.per_hour)} at {money(found.price)} a GPU{source}"
    return f"{words} · {money(found.per_million_output)} per 1M output tokens · {money(found.per_million_total)} per 1M of all tokens"


def memory_lines(estimate: Estimate) -> Iterator[str]:
    """Verdict on the memory and the terms of the fullest rank."""
    held = estimate.room
    yield f"memory of the fullest rank: {held.verdict} ({held.words})"
    for term in sorted(held.stage.terms, key=lambda item: -item.expected):
        band = f"   {term.low / GIB:.1f} to {term.high / GIB:.1f}" if term.high - term.low > 1e6 else ""
        yield f"  {term.name:<44} {term.expected / GIB:>7.2f} GiB{band}"
    yield f"  {'budget':<44} {held.stage.budget / GIB:>7.2f} GiB"
    yield ""


def communication_lines(estimate: Estimate) -> Iterator[str]:
    """Every exchange with hops, volume, alpha and beta."""
    found = [("decode", item) for item in estimate.exchanges] + [("prefill", item) for item in estimate.prefill_exchanges]
    if not found:
        return
    yield "communication of one pass: alpha x hops + beta x volume"
    for phase, item in found:
        yield f"  {phase:<8} {_exchange_words(item)}"
    decode = sum(item.total for item in estimate.exchanges if item.chosen and item.kind == "all-reduce")
    carried = estimate.times.tp_comm - decode
    if carried > 0.02 * estimate.times.tp_comm and estimate.degrees.pipeline_parallel == 1:
        yield f"  a mean step also carries prompts of other requests, whose all-reduces add {milliseconds(carried)}"
    yield ""


def _exchange_words(item: Exchange) -> str:
    mark = "*" if item.chosen else " "
    volume = item.calls * item.volume
    return (
        f"{mark} {item.kind:<12} {item.algorithm:<18} {item.calls:>4} x {item.message / 1024:,.0f} KiB over {item.link}: {item.calls * item.hops:,.0f} hops x "
        f"{item.alpha * 1e6:.2g} us, {volume / 1e6:,.1f} MB at {1.0 / item.beta / 1e9:,.0f} GB/s = {milliseconds(item.latency)} + "
        f"{milliseconds(item.transfer)} = {milliseconds(item.total)}"
    )


def verdict_lines(estimate: Estimate) -> Iterator[str]:
    """Broken rules all at once, the ten steps, and the recommendation."""
    if estimate.findings:
        yield "rules"
        for finding in sorted(estimate.findings, key=lambda item: list(Severity).index(item.severity)):
            yield f"  {finding.severity.value}: {finding}"
        yield ""
    yield "check"
    for check in estimate.checks:
        yield f"  {check.step:>2} {check.verdict:<4} {check.name}: {check.message}"
    yield ""
    yield f"recommendation: {estimate.recommendation.message}"


def estimate_lines(estimate: Estimate) -> Iterator[str]:
    """The whole answer for one layout."""
    yield from head_lines(estimate)
    yield from memory_lines(estimate)
    yield from communication_lines(estimate)
    yield from verdict_lines(estimate)
