"""One replica, its shape and its figures as parts of the plan document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.answer.changes import Change
from planner.answer.mix import Mix, Served
from planner.candidates.menu import Menu
from planner.candidates.serving import limits_document
from planner.cost.money import per_million_tokens
from planner.plan.document import (
    BucketDocument,
    MemoryDocument,
    RankDocument,
    ReplicaDocument,
    ShapeDocument,
    SpareDocument,
    TailDocument,
    TimesDocument,
)
from planner.plan.outcome import PlacedReplica
from planner.plan.serving import LimitsDocument
from planner.plan.shape import MemoryFigures, Shape, TailFigures, TimeFigures

GIB = 2.0**30


def shape_document(shape: Shape, gpu_names: Sequence[str]) -> ShapeDocument:
    """A shape of the menu as part of a document."""
    degrees = shape.degrees
    return ShapeDocument(
        gpu=gpu_names[shape.pool],
        tp=degrees.tensor_parallel,
        pp=degrees.pipeline_parallel,
        ep=degrees.expert_parallel,
        dp=degrees.data_parallel,
        batch=shape.batch,
        locality=shape.locality,
        partition=shape.partition,
        weights_dtype=shape.weights_dtype,
        kv_dtype=shape.kv_dtype,
    )


def _memory(memory: MemoryFigures) -> MemoryDocument:
    return MemoryDocument(
        budget_gib=memory.budget / GIB,
        weights_gib=memory.weights / GIB,
        kv_gib=memory.kv / GIB,
        other_gib=memory.other / GIB,
        other_low_gib=memory.other_low / GIB,
        other_high_gib=memory.other_high / GIB,
        free_gib=memory.free / GIB,
        max_sequences=memory.max_sequences,
        stage=memory.stage,
    )


def _times(times: TimeFigures) -> TimesDocument:
    return TimesDocument(
        tpot_s=times.tpot,
        ttft_s=times.ttft,
        compute_s=times.compute,
        tp_comm_s=times.tp_comm,
        pp_comm_s=times.pp_comm,
        ep_comm_s=times.ep_comm,
        fixed_s=times.fixed,
        prefill_compute_s=times.prefill_compute,
        prefill_comm_s=times.prefill_comm,
        queueing_s=times.queueing,
        overhead=times.overhead,
        efficiency=times.efficiency,
        latency_efficiency=times.latency_efficiency,
        bubble=times.bubble,
    )


def _tail(tail: TailFigures | None) -> TailDocument | None:
    return None if tail is None else TailDocument(percentile=tail.percentile, tpot_s=tail.tpot, ttft_s=tail.ttft)


def _bucket(served: Served) -> BucketDocument:
    part = served.part
    return BucketDocument(
        name=served.bucket.title,
        prompt_tokens=served.bucket.prompt_tokens,
        output_tokens=served.bucket.output_tokens,
        fraction=served.fraction,
        load=served.load,
        batch=part.batch,
        capacity=part.capacity,
        throughput_tokens_s=part.throughput,
        memory=_memory(part.memory),
        times=_times(part.times),
        tail=_tail(part.tail),
    )


def _ranks(placed: PlacedReplica) -> tuple[RankDocument, ...]:
    return tuple(
        RankDocument(
            rank=rank.rank,
            stage=rank.stage,
            tp_rank=rank.tp_rank,
            dp_rank=rank.dp_rank,
            ep_rank=rank.ep_rank,
            node=rank.node,
            gpu=rank.gpu,
            domain=rank.scope,
        )
        for rank in placed.ranks
    )


class _Figures(NamedTuple):
    """What a document says of every replica of one shape."""

    shape: ShapeDocument
    memory: MemoryDocument
    times: TimesDocument
    tail: TailDocument | None
    limits: LimitsDocument


class ReplicaDocuments:
    """Writes placed replicas as parts of a document; what replicas of one shape share is written once and stands in each of them."""

    def __init__(self, menu: Menu, gpu_names: Sequence[str]) -> None:
        self._menu, self._gpu_names = menu, gpu_names
        # A shape stays with what was written of it, so that no other can take its identity; equal shapes are written once each.
        self._written: dict[int, tuple[Shape, _Figures]] = {}
        self._per_token: dict[tuple[float, float], float] = {}

    def spare(self, placed: PlacedReplica, price: float | None) -> SpareDocument:
        """GPUs kept free for a lost replica; `price` is theirs [$/h]."""
        return SpareDocument(shape=self._figures(placed.shape).shape, ranks=_ranks(placed), price_per_hour=price)

    def replica(self, placed: PlacedReplica, mix: Mix | None, price: float | None, change: Change | None) -> ReplicaDocument:
        """A placed replica; `mix` is what it serves of the buckets where its load has them, `price` its own [$/h], `change` what becomes of it against a plan that runs."""
        shape = placed.shape if mix is None else mix.main
        capacity, throughput = (shape.capacity, shape.throughput) if mix is None else (mix.capacity, mix.throughput)
        figures = self._figures(shape)
        return ReplicaDocument(
            shape=figures.shape,
            ranks=_ranks(placed),
            memory=figures.memory,
            times=figures.times,
            capacity=capacity,
            price_per_hour=price,
            throughput_tokens_s=throughput,
            usd_per_million_output_tokens=None if price is None else self._token_price(price, throughput),
            tail=figures.tail,
            change=change,
            limits=figures.limits,
            buckets=() if mix is None else tuple(map(_bucket, mix.served)),
        )

    def _figures(self, shape: Shape) -> _Figures:
        known = self._written.get(id(shape))
        if known is None:
            figures = _Figures(
                shape_document(shape, self._gpu_names),
                _memory(shape.memory),
                _times(shape.times),
                _tail(shape.tail),
                limits_document(self._menu.setting_of(shape)),
            )
            known = self._written[id(shape)] = (shape, figures)
        return known[1]

    def _token_price(self, price: float, throughput: float) -> float:
        """Price of a million output tokens [$]."""
        key = (price, throughput)
        if key not in self._per_token:
            self._per_token[key] = float(per_million_tokens(price, throughput))
        return self._per_token[key]
