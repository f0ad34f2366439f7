"""A plan with the GPUs that it keeps free as if lost replicas ran on them, for the checks of where replicas may stand and what GPUs cost."""

from __future__ import annotations

from planner.audit.case import Case
from planner.plan.document import DeploymentDocument, ReplicaDocument, SpareDocument


def with_spares(case: Case) -> Case:
    """Give the plan with a replica on every set of spare GPUs; the same case where there are none."""
    if not any(answer.spares for answer in case.plan.deployments):
        return case
    deployments = tuple(_filled(answer) for answer in case.plan.deployments)
    return Case(case.problem, case.fabric, case.architectures, case.plan.model_copy(update={"deployments": deployments}))


def _filled(answer: DeploymentDocument) -> DeploymentDocument:
    started = tuple(replica for spare in answer.spares for replica in _started(answer, spare))
    return answer.model_copy(update={"replicas": (*answer.replicas, *started)})


def _started(answer: DeploymentDocument, spare: SpareDocument) -> tuple[ReplicaDocument, ...]:
    """The replica that would start on spare GPUs, a copy of any of the deployment in all but its place; none where none runs."""
    like = next((replica for replica in answer.replicas if replica.shape == spare.shape), None) or next(iter(answer.replicas), None)
    if like is None:
        return ()
    return (like.model_copy(update={"shape": spare.shape, "ranks": spare.ranks, "price_per_hour": spare.price_per_hour}),)
