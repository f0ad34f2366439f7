"""Shapes of a workload in buckets: each layout as it serves every bucket alone, joined into one shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from planner.candidates.degrees import Layout
from planner.candidates.measured import evaluate_measured, not_measured
from planner.candidates.settings import PoolSetting
from planner.plan.shape import Degrees, Rejection, Shape
from planner.problem.workload import WHOLE, measured_for

Evaluator = Callable[[PoolSetting, Sequence[Layout], float | None, bool], tuple[list[Shape], list[Rejection]]]
Key = tuple[Degrees, str, str, int, int]


def shapes_of(
    context: PoolSetting, grid: Sequence[Layout], price_per_gpu: float | None, every_batch: bool, evaluator: Evaluator
) -> tuple[list[Shape], list[Rejection]]:
    """Evaluate layouts: by `evaluator`, or from figures of the deployment's own; bucket by bucket where the workload has them.

    A layout that may not serve some bucket stays on the menu for the others, with a rejection that names the bucket; one that serves none has left.
    """

    def evaluated(question: PoolSetting, bucket: str) -> tuple[list[Shape], list[Rejection]]:
        if question.measured:
            return evaluate_measured(question, grid, price_per_gpu, bucket)
        # Of a bucket each layout has one batch: slices are not told apart by it.
        return evaluator(question, grid, price_per_gpu, every_batch and not context.buckets)

    refused = not_measured(context, grid) if context.measured else []
    if not context.buckets:
        shapes, mine = evaluated(context, WHOLE)
        return shapes, [*refused, *mine]
    found: list[dict[Key, Shape]] = []
    for number, bucket in enumerate(context.buckets):
        shapes, mine = evaluated(context.of_bucket(number), bucket.title)
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
