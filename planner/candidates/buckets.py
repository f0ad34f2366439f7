"""Shapes of a workload in buckets: each layout as it serves every bucket alone, joined into one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from planner.candidates.columns import Found, Question
from planner.candidates.degrees import Layout
from planner.candidates.measured import evaluate_measured, not_measured
from planner.candidates.settings import PoolSetting
from planner.plan.shape import Degrees, Shape
from planner.problem.workload import WHOLE, measured_for

Evaluator = Callable[[Sequence[Question]], list[Found]]
Key = tuple[Degrees, str, str, int, int]


def questions_of(context: PoolSetting, grid: Sequence[Layout], price_per_gpu: float | None, every_batch: bool) -> list[Question]:
    """What an evaluator is asked about layouts: one question, or one a bucket; none where the deployment has figures of its own."""
    if context.measured:
        return []
    if not context.buckets:
        return [Question(context, grid, price_per_gpu, every_batch)]
    # Of a bucket each layout has one batch: slices are not told apart by it.
    return [Question(context.of_bucket(number), grid, price_per_gpu) for number in range(len(context.buckets))]


def shapes_of(context: PoolSetting, grid: Sequence[Layout], price_per_gpu: float | None, answers: Sequence[Found]) -> Found:
    """Shapes of layouts from the `answers` to `questions_of`, or from figures of the deployment's own; joined where the workload has buckets.

    A layout that may not serve some bucket stays on the menu for the others, with a rejection that names the bucket; one that serves none has left.
    """
    refused = not_measured(context, grid) if context.measured else []
    if not context.buckets:
        shapes, mine = evaluate_measured(context, grid, price_per_gpu, WHOLE) if context.measured else answers[0]
        return shapes, [*refused, *mine]
    found: list[dict[Key, Shape]] = []
    for number, bucket in enumerate(context.buckets):
        if context.measured:
            shapes, mine = evaluate_measured(context.of_bucket(number), grid, price_per_gpu, bucket.title)
        else:
            shapes, mine = answers[number]
        found.append({_key(shape): _part(context, shape, number) for shape in shapes})
        refused += [replace(item, message=f"bucket {bucket.title}: {item.message}", bucket=bucket.title) for item in mine]
    keys = dict.fromkeys(key for shapes_by_key in found for key in shapes_by_key)
    return [_joined(context, [shapes_by_key.get(key) for shapes_by_key in found]) for key in keys], refused


def _key(shape: Shape) -> Key:
    return shape.degrees, shape.locality, shape.group_level, shape.groups, shape.group_size


def _part(context: PoolSetting, shape: Shape, number: int) -> Shape:
    """A shape as it serves one bucket, its capacity in requests/s where a rate is offered."""
    if context.concurrency is not None:
        return replace(shape, bucket=number)
    if context.measured:
        degrees = (
            shape.degrees.tensor_parallel,
            shape.degrees.pipeline_parallel,
            shape.degrees.expert_parallel,
            shape.degrees.data_parallel,
        )
        entry = measured_for(context.measured, context.pool.gpu.name, degrees)
        return replace(shape, bucket=number, capacity=shape.capacity if entry is None else entry.figure(context.buckets[number].title))
    return replace(shape, bucket=number, capacity=shape.throughput / context.buckets[number].output_tokens)


def _joined(context: PoolSetting, parts: Sequence[Shape | None]) -> Shape:
    """One shape for all buckets it serves; the figures that are one are those of the bucket that takes most of a replica."""
    served = [
        (bucket.part / Fraction(part.capacity), part) for bucket, part in zip(context.buckets, parts, strict=True) if part is not None
    ]
    weight, share = (
        sum((taken for taken, _ in served), Fraction(0)),
        sum((context.buckets[part.bucket].part for _, part in served), Fraction(0)),
    )
    main = max(served, key=lambda pair: pair[0])[1]
    return replace(main, parts=tuple(parts), capacity=float(share / weight))
