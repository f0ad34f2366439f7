"""What a problem and the things it names ask of each other: lengths and the model's context, budgets and the fleet, currencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.catalog.gpus import gpu
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity
from planner.problem.documents import Deployment, Problem
from planner.problem.domains_known import failure_domains_known
from planner.problem.figures_known import figures_known
from planner.problem.named_gpus import gpus_known
from planner.problem.precision import precision_notes
from planner.problem.references import Model
from planner.topology.fabric import Fabric


def agreement(
    problem: Problem, fabric: Fabric, models: Sequence[Model | None], currencies: Mapping[str, str | None]
) -> Iterator[Diagnostic]:
    """Yield what does not agree, each with the path in the problem as its place.

    A model that is None has been reported already. `currencies` are those that prices of the problem are written in by their path, None where one names none.
    """
    for deployment, model in zip(problem.deployments, models, strict=True):
        if model is not None:
            yield from _context(deployment, model)
            yield from precision_notes(deployment, model.architecture)
        yield from figures_known(deployment, fabric)
        yield from failure_domains_known(deployment, fabric)
        yield from gpus_known(deployment, fabric)
        yield from _priority(deployment)
    yield from _budget(problem, fabric)
    for path, words in (("budget.per_hour", "the budget"), ("current.price_per_move", "the price of a move")):
        currency = currencies.get(path)
        if currency is not None and currency != fabric.currency:
            message = f"{words} is in {currency}, the prices of the topology in {fabric.currency}"
            yield Diagnostic("CURRENCY_MIXED", message, f"write {words} in {fabric.currency}", place=Place(path=path))


def _priority(deployment: Deployment) -> Iterator[Diagnostic]:
    """A priority says who goes short last, so it says nothing of a load that must be served in full."""
    if deployment.priority and not deployment.may_go_unserved:
        message = f"priority {deployment.priority} has no effect: all of this load must be served, whatever is left for others"
        hint = "add `may_go_unserved` to the deployments that may go short, or leave `priority` out"
        place = Place(path=f"deployments.{deployment.name}.priority")
        yield Diagnostic("PRIORITY_WITHOUT_EFFECT", message, hint, Severity.WARNING, place)


def _context(deployment: Deployment, model: Model) -> Iterator[Diagnostic]:
    """A request, and the context asked for, fit the positions the model was made for."""
    longest = model.architecture.max_position
    asked = deployment.memory.max_model_len if deployment.memory is not None else None
    path = f"deployments.{deployment.name}"
    if longest <= 0:
        return
    if asked is not None and asked > longest:
        message = f"max_model_len {asked:,} is more than the {longest:,} positions of {model.architecture.name}"
        yield Diagnostic("CONTEXT_TOO_LONG", message, f"write at most {longest}", place=Place(path=f"{path}.memory.max_model_len"))
        return
    for index, (prompt, output) in enumerate(deployment.workload.lengths):
        if prompt + output > longest:
            message = f"a request of {prompt + output:,} tokens is longer than the {longest:,} positions of {model.architecture.name}"
            hint = f"prompt_tokens and output_tokens may add up to {longest}"
            where = f"workload.{named_bucket(deployment, index)}prompt_tokens"
            yield Diagnostic("CONTEXT_TOO_LONG", message, hint, place=Place(path=f"{path}.{where}"))


def named_bucket(deployment: Deployment, index: int) -> str:
    """Part of a path that leads to a bucket, by its name or position; nothing where lengths are given once."""
    buckets = deployment.workload.buckets
    return f"buckets.{buckets[index].name or index}." if buckets else ""


def _budget(problem: Problem, fabric: Fabric) -> Iterator[Diagnostic]:
    """The budget names each GPU type once, and types that the fleet has."""
    if problem.budget is None:
        return
    there = {pool.gpu.name for pool in fabric.pools}
    first: dict[str, str] = {}
    for name in problem.budget.gpus or {}:
        place = Place(path=f"budget.gpus.{name}")
        try:
            known = gpu(name).name
        except PlannerError:
            continue  # reported where names are looked up
        if known in first:
            message = f"`{name}` and `{first[known]}` are the same GPU type, {known}"
            yield Diagnostic("DUPLICATE_NAME", message, "keep one of them", place=place)
        elif known not in there:
            message = f"no node of the topology has {known}"
            yield Diagnostic("BUDGET_WITHOUT_GPUS", message, f"the topology has {', '.join(sorted(there))}", Severity.WARNING, place)
        first.setdefault(known, name)
