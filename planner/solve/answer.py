"""From the problem to the outcome: read, decide, place, number the ranks, and say how sure the answer is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.diagnostics import Diagnostic
from planner.plan.outcome import Objective, Outcome, PlacedReplica, Status
from planner.plan.shape import Shape
from planner.solve.asker import Asker, fewer_shapes, loads_alone, without_deployment
from planner.solve.model import Model
from planner.solve.no_plan import plan_found, repair_limits, why_no_plan
from planner.solve.objectives import decide
from planner.solve.options import SolveOptions
from planner.solve.placement import Placed, place, touched_whole_scopes
from planner.solve.program import evaluate
from planner.solve.ranks import number_ranks
from planner.solve.reader import read
from planner.solve.rules import RULES
from planner.solve.running import all_shapes, scope_gpus
from planner.solve.scaling import MONEY, STAGE_UNITS
from planner.solve.search import Decision, Stage
from planner.solve.work import Work

if TYPE_CHECKING:
    from planner.problem.documents import Problem
    from planner.topology.fabric import Fabric


def solve(
    problem: Problem,
    fabric: Fabric,
    shapes: Sequence[Shape],
    loads: Sequence[float],
    options: SolveOptions,
    running: Sequence[PlacedReplica] = (),
) -> Outcome:
    """Choose which shapes run how often and on which GPUs.

    Parameters
    ----------
    problem
        Deployments with their limits, the objective and the budget.
    fabric
        The free GPUs, by pool and scale-up scope.
    shapes
        The menu: every shape is legal, fits in memory and meets its targets.
    loads
        What each deployment must serve, in the unit of its shapes' `capacity`.
    options
        Effort, limits, seed and progress.
    running
        Replicas of the current plan that may stay where they are, on free GPUs, with their shapes as the menu would have them there.

    Returns
    -------
    Outcome
        Status, objective with its proved bound, tie-breaking objectives in order, and replicas on concrete GPUs.

    Raises
    ------
    RuntimeError
        If a solution breaks a row or cannot be placed: a fault of the formulation, never of the input.
    """
    instance = read(problem, fabric, shapes, loads, running)
    decision = decide(instance, options, RULES)
    if decision.model is None:
        explained = options.explain and decision.status is Status.INFEASIBLE
        reasons = why_no_plan(instance, fabric, options, [deployment.name for deployment in problem.deployments]) if explained else ()
        return Outcome(decision.status, None, (), decision.stopped_by, diagnostics=reasons)
    return outcome_of(decision, fabric, shapes, running)


def smallest_repairs(
    problem: Problem, fabric: Fabric, shapes: Sequence[Shape], loads: Sequence[float], options: SolveOptions, work: Work | None = None
) -> tuple[Diagnostic, ...]:
    """Smallest changes that would make a plan possible, of a problem that has none; `shapes` may need room that is not there yet."""
    names = [deployment.name for deployment in problem.deployments]
    return why_no_plan(read(problem, fabric, shapes, loads), fabric, options, names, work)


def has_plan(
    problem: Problem, fabric: Fabric, shapes: Sequence[Shape], loads: Sequence[float], options: SolveOptions, work: Work | None = None
) -> bool:
    """Whether a small search finds any plan."""
    return plan_found(read(problem, fabric, shapes, loads), options, work)


def alone_in_the_way(
    problem: Problem, fabric: Fabric, shapes: Sequence[Shape], loads: Sequence[float], options: SolveOptions, work: Work
) -> tuple[int, ...]:
    """Deployments without which there may be a plan; whatever one of the others asked, there would be none."""
    instance = fewer_shapes(read(problem, fabric, shapes, loads).without_seats())
    if instance.objective != "throughput":
        instance = replace(instance, objective="cost")
    asker = Asker(RULES, repair_limits(options), work)

    def may(number: int) -> bool:
        # The linear program of loads and room tells at once of most that there is nothing to be had.
        return asker.bound(asker.build(loads_alone(without_deployment(instance, number))).program, {}) is not None

    return tuple(number for number in range(instance.deployments) if may(number))


def outcome_of(decision: Decision, fabric: Fabric, shapes: Sequence[Shape], running: Sequence[PlacedReplica] = ()) -> Outcome:
    """Place what was decided on concrete GPUs, number the ranks, and state the objectives in the user's units."""
    assert decision.model is not None
    placed = place(decision.model, decision.values) if decision.placed is None else decision.placed
    chosen = decision.model.instance
    replicas, stays, spares = _replicas(decision, fabric, placed, all_shapes(shapes, running), running)
    unit = "$/h" if fabric.currency == "USD" else f"{fabric.currency}/h"
    objectives = told(_recognised(decision, sum(stays)), touched_whole_scopes(chosen, placed), unit)
    return Outcome(
        decision.status,
        objectives[0],
        replicas,
        decision.stopped_by,
        objectives[1:],
        interrupted=decision.interrupted,
        stays=stays,
        spares=spares,
    )


def _replicas(
    decision: Decision, fabric: Fabric, placed: Sequence[Placed], shapes: Sequence[Shape], running: Sequence[PlacedReplica]
) -> tuple[tuple[PlacedReplica, ...], tuple[bool, ...], tuple[PlacedReplica, ...]]:
    """Replicas on their GPUs, which of them stay as they run, and the GPUs that are kept free for lost ones."""
    assert decision.model is not None
    instance = decision.model.instance
    gpus = scope_gpus(fabric, instance, placed)
    found, stays, spares = [], [], []
    known = {_running_as(replica) for replica in running}
    sitting = {(replica.shape, frozenset((rank.node, rank.gpu) for rank in replica.ranks)): replica for replica in running}
    for replica in placed:
        spare_of = -1 if instance.shapes.spare_of is None else int(instance.shapes.spare_of[replica.shape])
        shape = shapes[spare_of if spare_of >= 0 else int(instance.source[replica.shape])]
        pool = int(instance.shapes.pool[replica.shape])
        groups = [gpus[pool, group.scope].rank_places(group.positions) for group in replica.groups]
        if spare_of >= 0:
            spares.append(PlacedReplica(shape, number_ranks(shape.degrees, groups)))
            continue
        if replica.stays is None:
            served = portions(decision.model, decision.values, replica.shape)
            shape = as_served(decision.model, decision.values, replica.shape, shape)
            one = PlacedReplica(shape, number_ranks(shape.degrees, groups), served)
        else:
            one = sitting[shape, frozenset((node, gpu) for group in groups for node, gpu, _ in group)]
        found.append(one)
        # A search that ended early may start anew, on the very same GPUs, what runs there: nothing has to move for it.
        stays.append(_running_as(one) in known)
    return tuple(found), tuple(stays), tuple(spares)


def _running_as(replica: PlacedReplica) -> tuple[object, ...]:
    """What must be the same for a replica to go on running: everything but its batch and what is computed from it."""
    shape = replica.shape
    ranks = tuple((rank.node, rank.gpu) for rank in replica.ranks)
    return (shape.deployment, shape.degrees, shape.weights_dtype, shape.kv_dtype, shape.partition, ranks)


def _recognised(decision: Decision, stays: int) -> Decision:
    """Take back the price of moves that turned out to be none."""
    model = decision.model
    if model is None or model.instance.move_price is None:
        return decision
    counted = evaluate(model.moves(), decision.values)
    spared = counted - (sum(decision.counts) - stays)
    lower = {"cost": spared * model.instance.move_price, "moves": spared}
    stages = [
        stage if not lower.get(stage.name) else replace(stage, value=stage.value - lower[stage.name], bound=_not_above(stage, lower))
        for stage in decision.stages
    ]
    return replace(decision, stages=stages)


def _not_above(stage: Stage, lower: Mapping[str, int]) -> int | None:
    return None if stage.bound is None else min(stage.bound, stage.value - lower[stage.name])


def portions(model: Model, values: Sequence[int], shape: int) -> tuple[float, ...]:
    """Shares of the buckets that one replica of a shape serves, its even part of the slices that go to the shape; empty without buckets."""
    instance = model.instance
    slicing = instance.slicing_of(int(instance.shapes.deployment[shape]))
    if slicing is None:
        return ()
    replicas = slicing.slices * values[model.count[shape]]
    taken = (model.slices.get((shape, bucket)) for bucket in slicing.buckets)
    return tuple(0.0 if variable is None else values[variable] / replicas for variable in taken)


def as_served(model: Model, values: Sequence[int], number: int, shape: Shape) -> Shape:
    """A chosen shape; where it serves buckets, with the figures of the one that takes most of it."""
    taken = {
        bucket: use * values[model.slices[number, bucket]]
        for bucket, use in model.instance.served_buckets(number).items()
        if (number, bucket) in model.slices
    }
    main = shape.parts[max(taken, key=lambda bucket: taken[bucket])] if any(taken.values()) else None
    return shape if main is None else replace(main, parts=shape.parts, capacity=shape.capacity)


def told(decision: Decision, touched: int, money_unit: str) -> tuple[Objective, ...]:
    """Stages as objectives in the user's units, the asked one first; the canonical order is no objective of anybody."""
    stages = [stage for stage in decision.stages if stage.name != "order"]
    counted = next((stage for stage in stages if stage.name == "whole_scopes"), None)
    found = [_objective(stage, money_unit) for stage in stages if stage.name != "whole_scopes"]
    # The placement has the last word on whole scopes: pinned replicas may touch more than the rows count.
    bound = None if counted is None else counted.bound
    found.append(_objective(Stage("whole_scopes", touched, min(bound or 0, touched)), money_unit))
    return tuple(found)


def _objective(stage: Stage, money_unit: str) -> Objective:
    scale, unit = STAGE_UNITS[stage.name]
    unit = money_unit if unit == MONEY else unit
    value = stage.value / scale
    # Without a proved bound only the sign is known: money, GPUs and times are not negative.
    bound = 0.0 if stage.bound is None else stage.bound / scale
    gap = 0.0 if value == bound else abs(value - bound) / abs(value)
    return Objective(stage.name, value, bound, gap, unit)
