"""The objective asked for, as one minimisation or as a search over thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.plan.outcome import Status
from planner.solve.dominance import worth_keeping
from planner.solve.instance import Instance, IntArray
from planner.solve.model import Model, Rule, build
from planner.solve.options import SolveOptions
from planner.solve.result import Result
from planner.solve.search import Decision, Search, Stage, break_ties, expression


def decide(instance: Instance, options: SolveOptions, rules: Sequence[Rule]) -> Decision:
    """Choose the counts of an instance: its objective first, then the tie-breaking stages."""
    # A shape kept for the objective stays for the ties, whatever else the coarser mask drops.
    needed = worth_keeping(instance, ties=False)
    kept = worth_keeping(instance) | needed
    pruned = instance.keep(kept)
    served = set(pruned.shapes.deployment.tolist())
    if any(deployment not in served for deployment in range(instance.deployments)):
        return Decision(Status.INFEASIBLE)
    search = Search(pruned, options, rules)
    if instance.objective == "latency":
        return _latency(search)
    model = build(instance.keep(needed), rules)
    objective = expression(model, instance.objective)
    result = search.primary(instance.objective, model, objective)
    if result.values is None or result.objective is None:
        return Decision(result.status, stopped_by=result.stopped_by)
    decision = Decision(result.status, model, result.values, stopped_by=result.stopped_by)
    bound = result.bound
    if bound is None and model.share is not None:
        bound = -model.program.upper[model.share]
    decision.stages.append(Stage(instance.objective, result.objective, bound))
    model.program.add_row("fixed", objective, upper=result.objective)
    if int(kept.sum()) > int(needed.sum()):
        search.widen(decision, pruned, instance.objective, result.objective)
    break_ties(search, decision, {instance.objective: result.objective})
    return decision


@dataclass(frozen=True)
class _Threshold:
    """Least threshold found, the proved bound under it, and the model and solution at it."""

    value: int
    bound: int
    model: Model
    values: tuple[int, ...]


def _latency(search: Search) -> Decision:
    """Worst time per output token, then worst time to first token: the least thresholds under which the shapes left still suffice."""
    first = _least_threshold(search, search.instance, "latency", search.instance.shapes.tpot)
    if isinstance(first, Result):
        return Decision(first.status, stopped_by=None if first.closed else search.reason(first.stopped_by))
    stages = [Stage("latency", first.value, first.bound)]
    second = _least_threshold(search, first.model.instance, "first_token", first.model.instance.shapes.ttft)
    last = first
    if isinstance(second, _Threshold):
        last = second
        stages.append(Stage("first_token", second.value, second.bound))
    proved = first.bound == first.value
    why = None if proved else search.reason("effort")
    decision = Decision(Status.OPTIMAL if proved else Status.FEASIBLE, last.model, last.values, stages, why)
    break_ties(search, decision, {})
    return decision


def _least_threshold(search: Search, instance: Instance, name: str, times: IntArray) -> _Threshold | Result:
    """Bisect over the distinct times of the shapes; a result without a solution when even the largest threshold gives none."""
    # No plan can be faster than the fastest shape of its slowest deployment.
    least = max(int(times[instance.of_deployment(deployment)].min()) for deployment in range(instance.deployments))
    levels = sorted({int(time) for time in times.tolist() if time >= least})
    best: _Threshold | None = None
    low, high, proved = 0, len(levels) - 1, 0
    last = Result(Status.UNKNOWN)
    while low <= high:
        # The fastest is tried first: it usually suffices.
        middle = 0 if best is None and low == 0 and high == len(levels) - 1 else (low + high) // 2
        chosen = instance.keep(times <= levels[middle])
        model = build(chosen, search.rules)
        result = search.run(name, model.program, {}, 1.0)
        if result.status is Status.INFEASIBLE and middle == len(levels) - 1:
            result = search.confirmed(model, {})
        if result.values is not None:
            best, high = _Threshold(levels[middle], levels[middle], model, result.values), middle - 1
            continue
        last = result
        if result.status is Status.INFEASIBLE and proved == low:
            proved = middle + 1
        low = middle + 1
    if best is None:
        return last
    return replace(best, bound=min(best.value, levels[min(proved, len(levels) - 1)]))
