"""Names of GPU types in a problem, as the catalog writes them."""

from __future__ import annotations

from planner.catalog.gpus import gpu
from planner.problem.documents import Problem


def with_catalog_names(problem: Problem) -> Problem:
    """GPU types that the budget and the deployments' own figures name, as the catalog names them."""
    budget, deployments = problem.budget, problem.deployments
    if budget is not None and budget.gpus:
        budget = budget.model_copy(update={"gpus": {gpu(name).name: count for name, count in budget.gpus.items()}})
    if any(deployment.throughput for deployment in deployments):
        deployments = tuple(
            deployment.model_copy(
                update={"throughput": tuple(entry.model_copy(update={"gpu": gpu(entry.gpu).name}) for entry in deployment.throughput)}
            )
            if deployment.throughput
            else deployment
            for deployment in deployments
        )
    return problem.model_copy(update={"budget": budget, "deployments": deployments})
