"""Stacked bars: what a time or a memory is made of, against what was asked or is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.plan.document import ReplicaDocument
from planner.plan.fabric import AskedDocument
from planner.report.words import gibibytes, milliseconds, percent


@dataclass(frozen=True)
class Segment:
    """One part of a bar: its name, its figure in words, its share of the bar's length [%], and the kind its colour goes by."""

    name: str
    words: str
    width: float
    kind: str


@dataclass(frozen=True)
class Mark:
    """A line across a bar: where [%], and what it stands for."""

    at: float
    words: str


@dataclass(frozen=True)
class Bar:
    """A bar with its total in words, its parts, and the limits it is held against."""

    title: str
    total: str
    segments: tuple[Segment, ...]
    marks: tuple[Mark, ...]
    note: str = ""

    @property
    def spoken(self) -> str:
        """The bar in one sentence, for those who hear it."""
        parts = ", ".join(f"{segment.name} {segment.words}" for segment in self.segments)
        limits = "".join(f"; {mark.words}" for mark in self.marks)
        return f"{self.title} {self.total}: {parts}{limits}"


def _stacked(title: str, total: str, parts: Sequence[tuple[str, str, float, str]], limits: Sequence[tuple[float, str]], note: str) -> Bar:
    """A bar of (name, words, amount, kind) parts and (amount, words) limits, in one unit."""
    length = max(sum(amount for _, _, amount, _ in parts), *(amount for amount, _ in limits), 0.0) or 1.0
    segments = tuple(Segment(name, words, 100 * amount / length, kind) for name, words, amount, kind in parts if amount > 0)
    return Bar(title, total, segments, tuple(Mark(100 * amount / length, words) for amount, words in limits), note)


def token_bar(replica: ReplicaDocument, asked: AskedDocument | None) -> Bar:
    """Time per output token by compute, collectives and fixed overhead."""
    times = replica.times
    parts = [
        ("compute", times.compute_s, "compute"),
        ("all-reduce (TP)", times.tp_comm_s, "tp"),
        ("pipeline hops (PP)", times.pp_comm_s, "pp"),
        ("expert exchange (EP)", times.ep_comm_s, "ep"),
        ("fixed overhead", times.fixed_s, "fixed"),
    ]
    note = f"communication is {percent(times.overhead)} of compute · efficiency {percent(times.efficiency)}"
    if replica.shape.pp > 1:
        note += f" · pipeline bubble {percent(times.bubble, 1)}"
    limits = _limits(asked, asked.tpot_s if asked else None, replica.tail.tpot_s if replica.tail else None)
    named = [(name, milliseconds(seconds), seconds, kind) for name, seconds, kind in parts]
    return _stacked("Time per token", milliseconds(times.tpot_s), named, limits, note)


def first_token_bar(replica: ReplicaDocument, asked: AskedDocument | None) -> Bar:
    """Time to the first token by prefill, its communication, and waiting."""
    times = replica.times
    parts = [
        ("prefill compute", times.prefill_compute_s, "compute"),
        ("prefill communication", times.prefill_comm_s, "tp"),
        ("waiting for a turn", times.queueing_s, "fixed"),
    ]
    limits = _limits(asked, asked.ttft_s if asked else None, replica.tail.ttft_s if replica.tail else None)
    named = [(name, milliseconds(seconds), seconds, kind) for name, seconds, kind in parts]
    return _stacked("Time to first token", milliseconds(times.ttft_s), named, limits, "")


def _limits(asked: AskedDocument | None, target: float | None, tail: float | None) -> list[tuple[float, str]]:
    limits = [] if target is None else [(target, f"asked: at most {milliseconds(target)}")]
    if tail is not None and asked is not None and asked.percentile is not None:
        limits.append((tail, f"P{asked.percentile:g}: {milliseconds(tail)}"))
    return limits


def memory_bar(replica: ReplicaDocument) -> Bar:
    """Memory of the fullest rank against what the engine may use."""
    memory = replica.memory
    parts = [
        ("weights", memory.weights_gib, "weights"),
        ("KV cache in use", memory.kv_gib, "kv"),
        ("activations, graphs, communicators", memory.other_gib, "other"),
        ("free for more KV cache", max(memory.free_gib, 0.0), "free"),
    ]
    named = [(name, f"{gibibytes(amount)} GiB", amount, kind) for name, amount, kind in parts]
    where = f"fullest rank, stage {memory.stage}" if replica.shape.pp > 1 else "every rank alike"
    low, high = gibibytes(memory.other_low_gib), gibibytes(memory.other_high_gib)
    note = f"{where} · room for {memory.max_sequences:,} sequences · activations and graphs vary from {low} to {high} GiB"
    used = memory.weights_gib + memory.kv_gib + memory.other_gib
    limits = [(memory.budget_gib, f"budget: {gibibytes(memory.budget_gib)} GiB")]
    return _stacked("Memory per GPU", f"{gibibytes(used)} of {gibibytes(memory.budget_gib)} GiB", named, limits, note)
