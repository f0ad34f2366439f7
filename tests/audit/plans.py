"""A tiny naive planner: given shapes are laid on free GPUs in order. It shares nothing with the formulation.

Memory and times come from the cost model, so a plan that passes also shows that the auditor's arithmetic agrees with it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from planner.catalog.engines import engine
from planner.cost.evaluation import evaluate
from planner.cost.memory import memory
from planner.cost.setting import Setting, ShapeArrays
from planner.plan.document import (
    DeploymentDocument,
    EngineDocument,
    MemoryDocument,
    ObjectiveDocument,
    PlanDocument,
    ProvenanceDocument,
    RankDocument,
    ReplicaDocument,
    ShapeDocument,
    TimesDocument,
)
from planner.plan.shape import Degrees
from planner.problem.documents import Problem
from planner.problem.precision import resolve_precisions
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from tests.audit.serving import startable

GIB = 2.0**30


@dataclass(frozen=True)
class Wish:
    """Replicas of one shape: which deployment, on which pool, at which degrees, batch and locality."""

    deployment: int
    pool: int
    degrees: Degrees
    batch: int
    locality: str
    replicas: int = 1
    stage_scopes: int = 1
    weights: str | None = None


@dataclass(frozen=True)
class Scenario:
    """A question with the answer to be written down for it."""

    name: str
    problem: dict
    topology: dict
    architectures: tuple
    wishes: tuple[Wish, ...]
    tags: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Case:
    """A question, its fabric and models, and a right plan."""

    name: str
    problem: Problem
    fabric: object
    architectures: tuple
    plan: PlanDocument
    tags: tuple[str, ...]


def build(scenario: Scenario) -> Case:
    """Answer a scenario with its own wishes."""
    problem = Problem.model_validate({"name": scenario.name, **scenario.problem, "topology": scenario.topology})
    fabric = build_fabric(TopologyDocument.model_validate(scenario.topology))
    plan = startable(_plan(problem, fabric, scenario.architectures, scenario.wishes), problem, fabric, scenario.architectures)
    return Case(scenario.name, problem, fabric, scenario.architectures, plan, scenario.tags)


class _Shelf:
    """Free GPUs of every scope, handed out in order."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.free = {scope: list(fabric.scopes.free_gpus(scope)) for scope in range(len(fabric.scopes))}

    def groups(self, pool, size, count, within_part):
        """`count` groups of `size` GPUs, each from one scope (or from one pair of it)."""
        found = []
        for scope in np.flatnonzero(self.fabric.scopes.pool == pool.index).tolist():
            parts = self.fabric.scopes.sub_scopes(scope) if within_part else (tuple(self.free[scope]),)
            for part in parts:
                left = [gpu for gpu in part if gpu in self.free[scope]]
                while len(left) >= size and len(found) < count:
                    taken, left = left[:size], left[size:]
                    found.append((scope, taken))
                    self.free[scope] = [gpu for gpu in self.free[scope] if gpu not in taken]
        assert len(found) == count, "the scenario asks for more GPUs than are free"
        return found


def _setting(problem, index, architecture, pool, wish):
    asked = problem.deployments[index]
    rules = engine(asked.engine.name, asked.engine.version)
    precision = next(
        precision
        for precision in resolve_precisions(asked, architecture, rules, pool.gpu)
        if wish.weights is None or precision.weights == wish.weights
    )
    own = asked.memory
    return Setting(
        architecture=architecture,
        precision=precision,
        engine=rules.name if asked.engine.version is None else f"{rules.name} {asked.engine.version}",
        gpu=pool.gpu,
        paths=pool.paths,
        prompt_tokens=float(asked.workload.prompt_tokens),
        output_tokens=float(asked.workload.output_tokens),
        max_batched_tokens=own.max_batched_tokens if own and own.max_batched_tokens else rules.batched_tokens(pool.gpu),
        max_model_len=own.max_model_len if own and own.max_model_len else asked.workload.prompt_tokens + asked.workload.output_tokens,
        gpu_memory_utilization=own.gpu_memory_utilization if own and own.gpu_memory_utilization else rules.gpu_memory_utilization,
        prefix_cache_hit_rate=own.prefix_cache_hit_rate if own else 0.0,
        profile=problem.profile,
    )


def _arrays(pool, wish):
    degrees = wish.degrees
    whole, inside = pool.levels.index(wish.locality), pool.levels.index(pool.scale_up_level)
    near = min(whole, inside)
    stage = whole if wish.stage_scopes > 1 else (near if degrees.stage_gpus > 1 else 0)
    columns = (
        degrees.tensor_parallel,
        degrees.pipeline_parallel,
        degrees.expert_parallel,
        degrees.data_parallel,
        wish.batch,
        near if degrees.tensor_parallel > 1 else 0,
        stage,
        wish.stage_scopes,
        whole,
    )
    return ShapeArrays(*(np.array([value], dtype=np.int64) for value in columns))


def _ranks(fabric, degrees, groups):
    tensor, stage_gpus = degrees.tensor_parallel, degrees.stage_gpus
    together = max(stage_gpus // degrees.expert_parallel, 1)
    ranks = []
    for scope, gpus in groups:
        for gpu in gpus:
            number = len(ranks)
            inside = number % stage_gpus
            ranks.append(
                RankDocument(
                    rank=number,
                    stage=number // stage_gpus,
                    tp_rank=inside % tensor,
                    dp_rank=inside // tensor,
                    ep_rank=inside // together if degrees.expert_parallel > 1 else 0,
                    node=gpu.node,
                    gpu=gpu.gpu,
                    domain=fabric.scopes.name(scope),
                )
            )
    return tuple(ranks)


def _replicas(problem, fabric, architectures, shelf, wish):
    pool = fabric.pools[wish.pool]
    setting = _setting(problem, wish.deployment, architectures[wish.deployment], pool, wish)
    shapes = _arrays(pool, wish)
    held, times = memory(setting, shapes), evaluate(setting, shapes)
    degrees = wish.degrees
    inside = pool.levels.index(wish.locality) <= pool.levels.index(pool.scale_up_level)
    within_part = wish.locality in {"pair", "mesh"}
    size = degrees.gpus if inside else degrees.stage_gpus // wish.stage_scopes
    closed = problem.deployments[wish.deployment].workload.concurrency is not None
    for _ in range(wish.replicas):
        yield ReplicaDocument(
            shape=ShapeDocument(
                gpu=pool.gpu.name,
                tp=degrees.tensor_parallel,
                pp=degrees.pipeline_parallel,
                ep=degrees.expert_parallel,
                dp=degrees.data_parallel,
                batch=wish.batch,
                locality=wish.locality,
                partition=held.partitions[0],
                weights_dtype=setting.precision.weights,
                kv_dtype=setting.precision.kv_cache,
            ),
            ranks=_ranks(fabric, degrees, shelf.groups(pool, size, degrees.gpus // size, within_part)),
            memory=MemoryDocument(
                budget_gib=float(held.budget[0]) / GIB,
                weights_gib=float(held.weights[0]) / GIB,
                kv_gib=float(held.kv[0]) / GIB,
                other_gib=float(held.other[0]) / GIB,
                other_low_gib=float(held.other_low[0]) / GIB,
                other_high_gib=float(held.other_high[0]) / GIB,
                free_gib=float(held.free[0]) / GIB,
                max_sequences=int(held.max_sequences[0]),
                stage=int(held.stage[0]),
            ),
            times=TimesDocument(**{name: float(getattr(times, name.removesuffix("_s"))[0]) for name in TimesDocument.model_fields}),
            capacity=float(wish.batch) if closed else float(times.throughput[0]),
            price_per_hour=None,
            throughput_tokens_s=float(times.throughput[0]),
            usd_per_million_output_tokens=None,
        )


def _plan(problem, fabric, architectures, wishes):
    shelf = _Shelf(fabric)
    placed = defaultdict(list)
    for wish in wishes:
        placed[wish.deployment].extend(_replicas(problem, fabric, architectures, shelf, wish))
    on_node = defaultdict(int)
    for replicas in placed.values():
        for replica in replicas:
            for rank in replica.ranks:
                on_node[rank.node] += 1
    deployments = []
    for index, asked in enumerate(problem.deployments):
        replicas = tuple(_priced(fabric, on_node, replica) for replica in placed[index])
        load, unit = _load(asked)
        capacity = math.fsum(replica.capacity for replica in replicas)
        tokens = math.fsum(replica.throughput_tokens_s for replica in replicas)
        served = min(load, tokens) if unit == "output tokens/s" else tokens * min(1.0, load / capacity)
        price = math.fsum(replica.price_per_hour for replica in replicas)
        deployments.append(
            DeploymentDocument(
                name=asked.name,
                model=asked.model,
                engine=EngineDocument(name=asked.engine.name, version=asked.engine.version),
                load=load,
                load_unit=unit,
                capacity=capacity,
                price_per_hour=price,
                usd_per_million_output_tokens=price / served / 3600 * 1e6,
                replicas=replicas,
            )
        )
    return _document(problem, fabric, tuple(deployments))


def _load(asked):
    if asked.workload.concurrency is not None:
        return float(math.ceil(asked.workload.concurrency * (1 + asked.headroom))), "concurrent sequences"
    return asked.workload.request_rate * asked.workload.output_tokens * (1 + asked.headroom), "output tokens/s"


def _priced(fabric, on_node, replica):
    price = 0.0
    for rank in replica.ranks:
        pool = fabric.pool(rank.node)
        price += pool.price_per_node / on_node[rank.node] if pool.billing == "node" else pool.price_per_gpu
    per_million = price / replica.throughput_tokens_s / 3600 * 1e6
    return replica.model_copy(update={"price_per_hour": price, "usd_per_million_output_tokens": per_million})


def _document(problem, fabric, deployments):
    cost = math.fsum(deployment.price_per_hour for deployment in deployments)
    replicas = [replica for deployment in deployments for replica in deployment.replicas]
    gpus = sum(len(replica.ranks) for replica in replicas)
    value = {
        "cost": cost,
        "gpus": float(gpus),
        "latency": max(replica.times.tpot_s for replica in replicas),
        "throughput": min(deployment.capacity / deployment.load for deployment in deployments),
    }[problem.objective]
    unit = {"cost": "$/h", "gpus": "GPUs", "latency": "s", "throughput": "share"}[problem.objective]
    return PlanDocument(
        problem=problem.name,
        status="optimal",
        stopped_by=None,
        objective=ObjectiveDocument(name=problem.objective, value=value, bound=value, gap=0.0, unit=unit),
        cost_per_hour=cost,
        currency=fabric.currency,
        gpus_used=gpus,
        gpus_total=sum(pool.nodes * pool.gpus_per_node for pool in fabric.pools),
        deployments=deployments,
        alternatives=(),
        rejected=(),
        binding=(),
        checks=(),
        diagnostics=(),
        provenance=ProvenanceDocument(
            problem_sha256="0" * 64, planner="0", ortools="0", catalog_sha256="0" * 64, profile=problem.profile, seed=problem.seed
        ),
    )
