"""A plan with buckets as if every bucket were a deployment of its own, for the checks that look at one length of requests at a time."""

from __future__ import annotations

from planner.audit.case import Case
from planner.audit.measured import BUCKET_MARK
from planner.plan.document import BucketDocument, DeploymentDocument, PlanDocument, ReplicaDocument
from planner.problem.documents import Deployment, Memory
from planner.problem.workload import Bucket, Workload


def unfolded(case: Case) -> Case:
    """Give the plan and the problem bucket by bucket, each replica under every bucket that it says it serves; the same case where there are none."""
    if not any(asked.workload.buckets for asked in case.problem.deployments):
        return case
    questions: list[Deployment] = []
    architectures = []
    answers: list[DeploymentDocument] = []
    by_name = {answer.name: answer for answer in case.plan.deployments}
    for asked, architecture in zip(case.problem.deployments, case.architectures, strict=True):
        answer = by_name.get(asked.name)
        buckets = asked.workload.buckets or ()
        for bucket in buckets:
            questions.append(bucket_question(asked, bucket))
            architectures.append(architecture)
            if answer is not None:
                answers.append(_of_bucket(answer, bucket))
        if not buckets:
            questions.append(asked)
            architectures.append(architecture)
            answers += [] if answer is None else [answer]
    problem = case.problem.model_copy(update={"deployments": tuple(questions)})
    plan: PlanDocument = case.plan.model_copy(update={"deployments": tuple(answers)})
    return Case(problem, case.fabric, tuple(architectures), plan)


def bucket_question(asked: Deployment, bucket: Bucket) -> Deployment:
    """What a deployment asks for the requests of one bucket; its engine is started for the longest request of all."""
    load = asked.workload
    workload = Workload(
        prompt_tokens=bucket.prompt_tokens,
        output_tokens=bucket.output_tokens,
        concurrency=load.concurrency,
        request_rate=load.request_rate,
    )
    memory = asked.memory if asked.memory is not None else Memory()
    if memory.max_model_len is None:
        memory = memory.model_copy(update={"max_model_len": load.longest})
    return asked.model_copy(update={"name": f"{asked.name}{BUCKET_MARK}{bucket.title}", "workload": workload, "memory": memory})


def _of_bucket(answer: DeploymentDocument, bucket: Bucket) -> DeploymentDocument:
    replicas = [_replica(replica, item) for replica in answer.replicas for item in replica.buckets if item.name == bucket.title]
    return answer.model_copy(update={"name": f"{answer.name}{BUCKET_MARK}{bucket.title}", "replicas": tuple(replicas)})


def _replica(replica: ReplicaDocument, item: BucketDocument) -> ReplicaDocument:
    figures = {"memory": item.memory, "times": item.times, "tail": item.tail, "capacity": item.capacity, "buckets": ()}
    shape = replica.shape.model_copy(update={"batch": item.batch})
    return replica.model_copy(update={**figures, "shape": shape, "throughput_tokens_s": item.throughput_tokens_s})
