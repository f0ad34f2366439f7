"""A placement as given, written down as a plan document with its predicted memory, times and cost, so that it can be audited and compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from planner import __version__
from planner.candidates.menu import TOKENS, load_of
from planner.candidates.serving import (
    adapters_document,
    checkpoint_document,
    limits_document,
    node_documents,
    request_tokens,
    speculation_document,
)
from planner.catalog.digest import catalog_sha256
from planner.cost.memory_detail import StageMemory
from planner.cost.money import per_million_tokens
from planner.cost.setting import TimesTable
from planner.placement.figures import CONTEXT_TERMS, WEIGHT_TERMS, Replica
from planner.placement.gpu_words import gpus_of_node
from planner.placement.proposal import ProposedReplica
from planner.plan.document import (
    DeploymentDocument,
    EngineDocument,
    MemoryDocument,
    PlanDocument,
    ProvenanceDocument,
    RankDocument,
    ReplicaDocument,
    ShapeDocument,
    TimesDocument,
)
from planner.problem.load import LoadedProblem
from planner.topology.fabric import Fabric

GIB = 2.0**30


@dataclass
class Placed:
    """One replica as given with what is predicted of it: its kind, the batch it runs at, and its times there (None where none can be told)."""

    index: int
    given: ProposedReplica
    replica: Replica
    path: str
    batch: int = 0
    times: TimesTable | None = None


def given_plan(loaded: LoadedProblem, placed: Sequence[Placed]) -> PlanDocument:
    """Plan document of the replicas, in the problem's order of deployments."""
    fabric = loaded.fabric
    on_node = Counter(gpu.node for one in placed for gpu in one.given.gpus)
    deployments = []
    for index in range(len(loaded.problem.deployments)):
        own = [one for one in placed if one.index == index]
        if own:
            deployments.append(_deployment(loaded, index, own, on_node))
    prices = [item.price_per_hour for item in deployments]
    return PlanDocument(
        problem=loaded.problem.name,
        status="feasible",
        stopped_by=None,
        objective=None,
        cost_per_hour=None if None in prices or not prices else math.fsum(price or 0.0 for price in prices),
        currency=fabric.currency,
        gpus_used=sum(len(one.given.gpus) for one in placed),
        gpus_total=sum(pool.nodes * pool.gpus_per_node for pool in fabric.pools),
        deployments=tuple(deployments),
        alternatives=(),
        rejected=(),
        binding=(),
        checks=(),
        nodes=node_documents(fabric, on_node),
        diagnostics=(),
        provenance=ProvenanceDocument(
            problem_sha256=loaded.sha256,
            planner=__version__,
            ortools="",
            catalog_sha256=catalog_sha256(),
            profile=loaded.profile.name,
            seed=loaded.problem.seed,
        ),
    )


def _deployment(loaded: LoadedProblem, index: int, placed: Sequence[Placed], on_node: Counter[str]) -> DeploymentDocument:
    asked = loaded.problem.deployments[index]
    replicas = tuple(_replica(loaded.fabric, one, on_node) for one in placed)
    load, unit = load_of(loaded, index)
    capacity = math.fsum(replica.capacity for replica in replicas)
    tokens = math.fsum(replica.throughput_tokens_s for replica in replicas)
    served = min(load, tokens) if unit == TOKENS else tokens * min(1.0, load / capacity) if capacity > 0 else 0.0
    prices = [replica.price_per_hour for replica in replicas]
    price = None if None in prices else math.fsum(value or 0.0 for value in prices)
    engine = placed[0].replica.running.loaded.problem.deployments[index].engine
    return DeploymentDocument(
        name=asked.name,
        model=asked.model,
        engine=EngineDocument(name=engine.name, version=engine.version),
        load=load,
        load_unit=unit,
        capacity=capacity,
        price_per_hour=price,
        usd_per_million_output_tokens=_per_million(price, served),
        replicas=replicas,
        checkpoint=checkpoint_document(placed[0].replica.running.loaded, index),
        request_tokens=request_tokens(loaded, index),
        speculation=speculation_document(placed[0].replica.running.loaded, index),
        adapters=adapters_document(placed[0].replica.running.loaded, index),
    )


def _per_million(price: float | None, tokens: float) -> float | None:
    return None if price is None or not tokens > 0 else float(per_million_tokens(price, tokens))


def _replica(fabric: Fabric, placed: Placed, on_node: Counter[str]) -> ReplicaDocument:
    replica, degrees, times = placed.replica, placed.replica.degrees, placed.times
    precision = replica.setting.precision
    price = _price(fabric, placed, on_node)
    throughput = 0.0 if times is None else _finite(times.throughput[0])
    capacity = throughput if replica.context.concurrency is None else float(placed.batch)
    return ReplicaDocument(
        shape=ShapeDocument(
            gpu=replica.pool.gpu.name,
            tp=degrees.tensor_parallel,
            pp=degrees.pipeline_parallel,
            ep=degrees.expert_parallel,
            dp=degrees.data_parallel,
            batch=max(placed.batch, 1),
            locality=replica.pool.levels[replica.distances.replica],
            partition=replica.partition,
            weights_dtype=precision.weights,
            kv_dtype=precision.kv_cache,
        ),
        ranks=_ranks(fabric, placed),
        memory=_memory(placed),
        times=_times(times),
        capacity=capacity if times is not None else 0.0,
        price_per_hour=price,
        throughput_tokens_s=throughput,
        usd_per_million_output_tokens=_per_million(price, throughput),
        limits=limits_document(replica.context),
    )


def _ranks(fabric: Fabric, placed: Placed) -> tuple[RankDocument, ...]:
    """Ranks numbered as engines number them: stage by stage, in a stage dp rank by dp rank, in it tp rank by tp rank."""
    degrees = placed.replica.degrees
    tensor, stage, expert = degrees.tensor_parallel, degrees.stage_gpus, degrees.expert_parallel
    together = max(stage // expert, 1)
    found = []
    for rank, gpu in enumerate(placed.given.gpus):
        inside = rank % stage
        known = gpus_of_node(fabric, gpu.node) > 0
        found.append(
            RankDocument(
                rank=rank,
                stage=rank // stage,
                tp_rank=inside % tensor,
                dp_rank=inside // tensor,
                ep_rank=inside // together if expert > 1 else 0,
                node=gpu.node,
                gpu=gpu.gpu,
                domain=fabric.scopes.name(fabric.scope_of(gpu.node)) if known else "",
            )
        )
    return tuple(found)


def _price(fabric: Fabric, placed: Placed, on_node: Counter[str]) -> float | None:
    """Price of a replica per hour: its GPUs, or its share of nodes billed whole; None where a node is unknown or has no price."""
    total = 0.0
    for gpu in placed.given.gpus:
        if not gpus_of_node(fabric, gpu.node):
            return None
        pool = fabric.pool(gpu.node)
        if pool.billing == "node" and pool.price_per_node is not None:
            total += pool.price_per_node / on_node[gpu.node]
        elif pool.price_per_gpu is not None:
            total += pool.price_per_gpu
        else:
            return None
    return total if placed.given.gpus else None


def _finite(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0


def _memory(placed: Placed) -> MemoryDocument:
    replica = placed.replica
    budget = replica.setting.gpu_memory_utilization * replica.setting.gpu.memory.value / GIB
    if not replica.sound:
        return MemoryDocument(
            budget_gib=budget,
            weights_gib=0.0,
            kv_gib=0.0,
            other_gib=0.0,
            other_low_gib=0.0,
            other_high_gib=0.0,
            free_gib=0.0,
            max_sequences=0,
            stage=0,
        )
    if replica.mixed:
        return _fullest(min(replica.by_stage(max(placed.batch, 1)), key=lambda stage: stage.free), replica.room)
    held = replica.held(max(placed.batch, 1))
    return MemoryDocument(
        budget_gib=budget,
        weights_gib=float(held.weights[0]) / GIB,
        kv_gib=float(held.kv[0]) / GIB,
        other_gib=float(held.other[0]) / GIB,
        other_low_gib=float(held.other_low[0]) / GIB,
        other_high_gib=float(held.other_high[0]) / GIB,
        free_gib=float(held.free[0]) / GIB,
        max_sequences=int(held.max_sequences[0]),
        stage=int(held.stage[0]),
    )


def _fullest(stage: StageMemory, room: int) -> MemoryDocument:
    """Memory of the fullest stage of a replica whose stages are on unlike GPUs."""
    weights = math.fsum(term.expected for term in stage.terms if term.name in WEIGHT_TERMS)
    context = math.fsum(term.expected for term in stage.terms if term.name in CONTEXT_TERMS)
    others = [term for term in stage.terms if term.name not in WEIGHT_TERMS | CONTEXT_TERMS]
    return MemoryDocument(
        budget_gib=stage.budget / GIB,
        weights_gib=weights / GIB,
        kv_gib=context / GIB,
        other_gib=math.fsum(term.expected for term in others) / GIB,
        other_low_gib=math.fsum(term.low for term in others) / GIB,
        other_high_gib=math.fsum(term.high for term in others) / GIB,
        free_gib=stage.free / GIB,
        max_sequences=room,
        stage=stage.stage,
    )


def _times(times: TimesTable | None) -> TimesDocument:
    """Times of a replica; zeros where none can be told."""
    names = {name: name.removesuffix("_s") for name in TimesDocument.model_fields}
    return TimesDocument(**{name: 0.0 if times is None else _finite(getattr(times, column)[0]) for name, column in names.items()})
