"""The objective asked for, as one minimisation or as a search over thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.plan.outcome import Status
from planner.solve.decomposition.proof import MANY
from planner.solve.dominance import worth_keeping
from planner.solve.fewest import fewest
from planner.solve.instance import Instance, IntArray
from planner.solve.model import Model, Rule
from planner.solve.options import SolveOptions
from planner.solve.program import evaluate
from planner.solve.result import NOTHING, Result, better
from planner.solve.rules import RULES
from planner.solve.rules.priority import levels
from planner.solve.search import ANY, Decision, Search, Stage
from planner.solve.served import most_served
from planner.solve.shares import at_share, by_shares
from planner.solve.spreading.question import far_apart
from planner.solve.spreading.search import decide_apart
from planner.solve.stages import expression
from planner.solve.survival.question import covered
from planner.solve.surviving import large, told, try_survival, unproved
from planner.solve.ties import break_ties

MONEY_PART = {"latency": 0.25, "throughput": 0.08, "gpus": 0.15}
"""Part of the effort for the least money of what is decided already: it only breaks ties."""


UNSERVED_PART = 0.25
"""Part of the effort for what goes unserved at each level of importance."""


def decide(instance: Instance, options: SolveOptions, rules: Sequence[Rule], *, counted: bool = False) -> Decision:
    """Choose the counts of an instance: its objective first, then the tie-breaking stages; with `counted` by the program that counts every place, however many."""
    pruned = instance.keep(worth_keeping(instance))
    if hopeless(pruned):
        return Decision(Status.INFEASIBLE)
    if not counted and _every(rules) and far_apart(pruned):
        return decide_apart(instance, options, rules, decide)
    search = Search(pruned, options, rules)
    # What the ties do not need the objective does not need either: the second look is at those that are left.
    needed = pruned.keep(worth_keeping(pruned, ties=False))
    short = serve_most(search, needed)
    if short is not None and short.values is None:
        return Decision(short.status, stopped_by=short.stopped_by)
    if search.instance.objective == "latency":
        decision = _latency(search)
    elif search.instance.objective == "throughput" and by_shares(search.instance):
        decision = _throughput(search)
    else:
        decision = _gpus(search, needed) or _minimise(search, needed, search.serving or None)
    if short is not None and decision.status is Status.OPTIMAL:
        # The order of importance comes first: without its proof the rest proves nothing about the whole.
        decision.status, decision.stopped_by = Status.FEASIBLE, short.stopped_by
        decision.stages = [replace(stage, bound=None) for stage in decision.stages]
    return decision


def _every(rules: Sequence[Rule]) -> bool:
    """Whether no rule is left out, as some checks do."""
    return {rule.name for rule in rules} >= {rule.name for rule in RULES}


def hopeless(instance: Instance) -> bool:
    """Whether a deployment that must be served has no shape at all."""
    served = set(instance.shapes.deployment.tolist())
    return any(deployment not in served and instance.must_serve(deployment) for deployment in range(instance.deployments))


def serve_most(search: Search, instance: Instance) -> Result | None:
    """Leave as little load unserved as can be, the most important first, and fix that; an unfinished level is given back, else None."""
    unfinished: Result | None = None
    if not any(instance.rules_of(deployment).may_go_unserved for deployment in range(instance.deployments)):
        return None
    while True:
        model = search.build(instance)
        left = levels(model)[len(search.promised) :]
        if not left:
            return unfinished
        search.part = UNSERVED_PART
        result = search.primary("unserved", model, left[0])
        search.part = None
        if result.values is None or result.objective is None:
            return result
        if not result.closed:
            unfinished = result
        search.promised.append(result.objective)
        counts = (result.values[variable] for variable in model.count)
        search.serving = dict(zip(model.instance.source.tolist(), counts, strict=True))


def _minimise(search: Search, instance: Instance, known: Mapping[int, int] | None = None) -> Decision:
    """Minimise cost, GPUs or the negated share over the shapes that it needs, then break ties over all that were kept.

    Where losses must be survived and places are many, counts come first and places after; the program that counts every place is asked where
    that finds no plan, and where it is small. `known` are the counts of a plan by source of the shape.
    """
    survivable = _every(search.rules) and covered(instance)
    counts_first = survivable and large(instance)
    first = try_survival(search, instance) if counts_first else None
    if (counts_first and search.over) or (first is not None and not unproved(first)):
        return Decision(Status.UNKNOWN, stopped_by=search.reason(None)) if first is None else told(search, first)
    model = search.build(instance)
    start = None if known is None else search.complete(model, [known.get(shape, 0) for shape in instance.source.tolist()])
    objective = expression(model, instance.objective)
    found = NOTHING if start is None else Result(Status.FEASIBLE, start, evaluate(objective, start), None, "effort")
    result = search.primary(instance.objective, model, objective, found)
    if survivable and not result.closed and not search.over:
        other = first or try_survival(search, instance)
        if other is not None:
            result = better(result, replace(other.result, status=Status.UNKNOWN, values=None, objective=None))
            if other.result.objective is not None and (result.objective is None or other.result.objective < result.objective):
                return told(search, replace(other, result=replace(other.result, bound=result.bound)))
    return finish(search, model, result)


def finish(search: Search, model: Model, result: Result) -> Decision:
    """Break the ties of a solution of the objective asked for, over all shapes that the search kept."""
    if result.values is None or result.objective is None:
        return Decision(result.status, stopped_by=result.stopped_by)
    instance = model.instance
    objective = expression(model, instance.objective)
    decision = Decision(result.status, model, result.values, stopped_by=result.stopped_by)
    bound = result.bound
    if bound is None and model.share is not None:
        bound = -model.program.upper[model.share]
    decision.stages.append(Stage(instance.objective, result.objective, bound))
    search.widen(decision, objective, result)
    assert decision.model is not None
    least = result.objective if result.status is Status.OPTIMAL else None
    decision.model.program.add_row("fixed", expression(decision.model, instance.objective), least, result.objective)
    break_ties(search, decision, {instance.objective: result.objective})
    return decision


@dataclass(frozen=True)
class Threshold:
    """Least threshold found, the proved bound under it, the question of the shapes within it, and the model and solution at it."""

    value: int
    bound: int
    within: Instance
    model: Model
    values: tuple[int, ...]

    @property
    def counts(self) -> dict[int, int]:
        """Replicas by source of the shape."""
        return dict(zip(self.model.instance.source.tolist(), (self.values[variable] for variable in self.model.count), strict=True))


def _latency(search: Search) -> Decision:
    """Worst time per output token, then worst time to first token: the least thresholds under which the shapes left still suffice; then money."""
    first = least_threshold(search, search.instance, "latency", search.instance.shapes.tpot)
    if isinstance(first, Result):
        return Decision(first.status, stopped_by=None if first.closed else search.reason(first.stopped_by))
    stages = [Stage("latency", first.value, first.bound)]
    second = least_threshold(search, first.within, "first_token", first.within.shapes.ttft, first)
    last = first
    if isinstance(second, Threshold):
        last = second
        stages.append(Stage("first_token", second.value, second.bound))
    proved = first.bound == first.value
    why = None if proved else search.reason("effort")
    within = Decision(Status.OPTIMAL if proved else Status.FEASIBLE, last.model, last.values, stages, why)
    cheapest = _cheapest(search, by_money(last.within), last.counts, within)
    if cheapest is None:
        break_ties(search, within, {})
    return cheapest or within


def by_money(instance: Instance) -> Instance:
    """Give the same question with the least money as its objective, or the fewest GPUs where prices are unknown."""
    return replace(instance, objective="cost" if instance.priced else "gpus")


def _throughput(search: Search) -> Decision:
    """Greatest share of all loads, then the least money that serves it."""
    found = most_served(search)
    if isinstance(found, Result):
        return Decision(found.status, stopped_by=None if found.closed else search.reason(found.stopped_by))
    question = at_share(search.instance, found.share)
    model = search.build(question)
    values = search.complete(model, [found.counts.get(shape, 0) for shape in question.source.tolist()])
    assert values is not None
    proved = found.share == found.bound
    why = None if proved else search.reason("effort")
    stages = [Stage("throughput", -found.share, -found.bound)]
    within = Decision(Status.OPTIMAL if proved else Status.FEASIBLE, model, values, stages, why)
    cheapest = _cheapest(search, question, found.counts, within)
    if cheapest is None:
        break_ties(search, within, {})
    return cheapest or within


def _gpus(search: Search, needed: Instance) -> Decision | None:
    """Fewest GPUs of many deployments, then the least money of so many; None where that is another question, or left to the program as a whole."""
    instance = search.instance
    if instance.objective != "gpus" or not instance.priced or instance.deployments < MANY or not by_shares(instance):
        return None
    found = fewest(search, needed)
    if found is None:
        return None
    search.most_gpus = found.gpus
    model = search.build(needed)
    values = search.complete(model, [found.counts[shape] for shape in needed.source.tolist()])
    assert values is not None
    proved = found.gpus == found.bound
    why = None if proved else search.reason("effort")
    within = Decision(Status.OPTIMAL if proved else Status.FEASIBLE, model, values, [Stage("gpus", found.gpus, found.bound)], why)
    cheapest = _cheapest(search, by_money(instance), found.counts, within)
    if cheapest is None:
        break_ties(search, within, {"gpus": found.gpus})
    return cheapest or within


def _cheapest(search: Search, question: Instance, counts: Mapping[int, int], within: Decision) -> Decision | None:
    """Least money for what is decided already, which `question` asks, and the ties after it; None where the search ends without it.

    `within` is the plan that decided it, by `counts` of its shapes.
    """
    if search.over:
        return None
    used = np.isin(question.source, [shape for shape, count in counts.items() if count])
    wide = question.keep(worth_keeping(question) | used)
    inner = search.after(wide, MONEY_PART[search.instance.objective])
    inner.most_gpus = search.most_gpus
    needed = wide.keep(worth_keeping(wide, ties=False) | np.isin(wide.source, question.source[used]))
    found = _minimise(inner, needed, counts)
    search.interrupted = search.interrupted or inner.interrupted
    if found.model is None:
        return None
    found.stages = [*within.stages, *found.stages]
    found.status, found.stopped_by = within.status, within.stopped_by
    return found


def least_threshold(search: Search, instance: Instance, name: str, times: IntArray, known: Threshold | None = None) -> Threshold | Result:
    """Bisect over the distinct times of the shapes; a result without a solution when even the largest threshold gives none.

    A plan that is `known` already tells the largest threshold worth asking about.
    """
    # No plan can be faster than the fastest shape of its slowest deployment.
    asked = [deployment for deployment in range(instance.deployments) if instance.must_serve(deployment)]
    least = max((int(times[instance.serving(deployment)].min()) for deployment in asked), default=0)
    thresholds = sorted({int(time) for time in times.tolist() if time >= least})
    best: Threshold | None = None
    low, high, proved = 0, len(thresholds) - 1, 0
    if known is not None:
        time_of = dict(zip(instance.source.tolist(), times.tolist(), strict=True))
        worst = max([least, *(time_of[source] for source, count in known.counts.items() if count)])
        if worst in thresholds:
            best = replace(known, value=worst, within=instance.keep(times <= worst))
            high = thresholds.index(worst) - 1
    last = Result(Status.UNKNOWN)
    while low <= high:
        # The fastest is tried first: it usually suffices.
        middle = 0 if best is None and low == 0 and high == len(thresholds) - 1 else (low + high) // 2
        chosen = by_money(instance.keep(times <= thresholds[middle]))
        model = search.build(chosen.keep(worth_keeping(chosen, ties=False)))
        # Money leads the way to a plan; the first one will do.
        result = search.run(name, model.program, expression(model, chosen.objective), 1.0, gap=ANY)
        if result.status is Status.INFEASIBLE and middle == len(thresholds) - 1:
            result = search.confirmed(model, {})
        if result.values is not None:
            within = instance.keep(times <= thresholds[middle])
            best, high = Threshold(thresholds[middle], thresholds[middle], within, model, result.values), middle - 1
            continue
        last = result
        if result.status is Status.INFEASIBLE and proved == low:
            proved = middle + 1
        low = middle + 1
    if best is None:
        return last
    return replace(best, bound=min(best.value, thresholds[min(proved, len(thresholds) - 1)]))
