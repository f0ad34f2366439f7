"""Write an outcome down as a plan document, in a stable order and without wall times."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib import metadata

from planner import __version__
from planner.answer.binding import binding_limits
from planner.answer.changes import Change, changes, current_document
from planner.answer.fabric import asked_document, fabric_document
from planner.answer.losses import unserved
from planner.answer.mix import mix_of
from planner.answer.replica_document import ReplicaDocuments, shape_document
from planner.answer.sources import plan_sources
from planner.candidates.alternatives import ranked_alternatives
from planner.candidates.checklist import checklist
from planner.candidates.menu import TOKENS, Menu
from planner.candidates.serving import adapters_document, checkpoint_document, node_documents, request_tokens, speculation_document
from planner.catalog.digest import catalog_sha256
from planner.collector import uncollected
from planner.cost.money import per_million_tokens
from planner.diagnostics import Diagnostic
from planner.plan.document import (
    AlternativeDocument,
    CheckDocument,
    DeploymentDocument,
    DiagnosticDocument,
    EngineDocument,
    ObjectiveDocument,
    PlanDocument,
    ProvenanceDocument,
    RejectedDocument,
    ReplicaDocument,
    ShapeDocument,
    SpareDocument,
)
from planner.plan.outcome import Objective, Outcome
from planner.plan.shape import Degrees, Rejection
from planner.problem.load import LoadedProblem
from planner.topology.pool_names import nodes_of_pools

MOST_REJECTED = 200  # of each deployment; the nearest misses come first


@uncollected
def plan_document(loaded: LoadedProblem, menu: Menu, outcome: Outcome, warnings: Sequence[Diagnostic]) -> PlanDocument:
    """The plan as it is printed, stored and audited."""
    fabric, problem = loaded.fabric, loaded.problem
    names = [deployment.name for deployment in problem.deployments]
    gpu_names = [pool.gpu.name for pool in fabric.pools]
    priced = _prices_known(menu, outcome)
    free = [int(fabric.scopes.free[fabric.scopes.pool == pool.index].sum()) for pool in fabric.pools]
    chosen = [replica.shape for replica in outcome.replicas]
    keeps = [0.0 if deployment.resilience is None else deployment.resilience.keep for deployment in problem.deployments]
    of_nodes = nodes_of_pools(fabric)
    others = ranked_alternatives(menu, chosen, problem.objective, free, priced=priced, keeps=keeps)
    changed = changes(loaded, outcome)
    deployments = _deployments(loaded, menu, outcome, gpu_names, priced, changed)
    cost = math.fsum(item.price_per_hour or 0.0 for item in deployments) if priced and outcome.replicas else None
    return PlanDocument(
        problem=problem.name,
        status=outcome.status.value,
        stopped_by=outcome.stopped_by,
        objective=None if outcome.objective is None else _objective(outcome.objective),
        secondary=tuple(map(_objective, outcome.secondary)),
        cost_per_hour=cost,
        currency=fabric.currency,
        gpus_used=sum(len(replica.ranks) for replica in outcome.replicas),
        gpus_total=sum(pool.nodes * pool.gpus_per_node for pool in fabric.pools),
        deployments=deployments,
        alternatives=tuple(
            AlternativeDocument(
                deployment=names[other.shape.deployment],
                shape=shape_document(other.shape, gpu_names).model_copy(update={"nodes": of_nodes[other.shape.pool]}),
                replicas=other.replicas,
                gpus=other.gpus,
                price_per_hour=other.price,
                tpot_s=other.shape.times.tpot,
                ttft_s=other.shape.times.ttft,
                reason=other.reason,
            )
            for other in others
        ),
        rejected=tuple(_rejected(menu.rejected, names, gpu_names, of_nodes)),
        binding=binding_limits(loaded, menu, outcome) if outcome.has_plan else (),
        checks=_checks(menu, outcome, names),
        sources=plan_sources(menu, outcome, names),
        current=current_document(loaded, menu, outcome, changed),
        # What would help where there is no plan; each of it also stands among the diagnostics.
        repairs=() if outcome.has_plan else tuple(_diagnostic(item) for item in outcome.diagnostics if item.code != "NO_SHAPE"),
        diagnostics=tuple(map(_diagnostic, warnings)),
        fabric=fabric_document(fabric, loaded.profile.name),
        nodes=node_documents(fabric, (rank.node for replica in outcome.replicas for rank in replica.ranks)),
        provenance=ProvenanceDocument(
            problem_sha256=loaded.sha256,
            planner=__version__,
            ortools=metadata.version("ortools"),
            catalog_sha256=catalog_sha256(),
            profile=loaded.profile.name,
            seed=problem.seed,
        ),
    )


def _prices_known(menu: Menu, outcome: Outcome) -> bool:
    """Tell whether every shape has a price; a menu without any shape has none to show."""
    shapes = [replica.shape for replica in outcome.replicas] or list(menu.shapes)
    return bool(shapes) and all(math.isfinite(shape.price) and shape.price > 0 for shape in shapes)


def _objective(objective: Objective) -> ObjectiveDocument:
    return ObjectiveDocument(name=objective.name, value=objective.value, bound=objective.bound, gap=objective.gap, unit=objective.unit)


def _diagnostic(item: Diagnostic) -> DiagnosticDocument:
    place = "" if item.place is None else item.place.path
    return DiagnosticDocument(code=item.code, severity=item.severity.value, message=item.message, hint=item.hint, place=place)


def _deployments(
    loaded: LoadedProblem, menu: Menu, outcome: Outcome, gpu_names: Sequence[str], priced: bool, changed: Sequence[Change | None]
) -> tuple[DeploymentDocument, ...]:
    running = len(outcome.replicas)
    prices = replica_prices(loaded, outcome) if priced else [None] * (running + len(outcome.spares))
    write = ReplicaDocuments(menu, gpu_names)
    spares: dict[int, list[SpareDocument]] = defaultdict(list)
    for spare, price in zip(outcome.spares, prices[running:], strict=True):
        spares[spare.shape.deployment].append(write.spare(spare, price))
    placed: dict[int, list[ReplicaDocument]] = defaultdict(list)
    for replica, price, change in zip(outcome.replicas, prices[:running], changed, strict=True):
        placed[replica.shape.deployment].append(write.replica(replica, mix_of(loaded, menu, replica), price, change))
    answer = []
    for index, deployment in enumerate(loaded.problem.deployments):
        replicas = placed.get(index, [])
        if not replicas and (not deployment.may_go_unserved or not outcome.has_plan):
            continue
        capacity = math.fsum(replica.capacity for replica in replicas)
        tokens = math.fsum(replica.throughput_tokens_s for replica in replicas)
        # At the stated load the replicas run below their full batch; tokens are counted in proportion, which is a little pessimistic.
        full = tokens * min(1.0, menu.loads[index] / capacity) if capacity else 0.0
        served = menu.loads[index] if menu.load_units[index] == TOKENS else full
        if deployment.workload.buckets:
            served = math.fsum(item.fraction * item.throughput_tokens_s for replica in replicas for item in replica.buckets)
        paid = [*(item.price_per_hour for item in replicas), *(item.price_per_hour for item in spares[index])]
        price = math.fsum(item or 0.0 for item in paid) if priced else None
        answer.append(
            DeploymentDocument(
                name=deployment.name,
                model=deployment.model,
                engine=EngineDocument(name=deployment.engine.name, version=deployment.engine.version),
                load=menu.loads[index],
                load_unit=menu.load_units[index],
                capacity=capacity,
                price_per_hour=price,
                usd_per_million_output_tokens=None
                if price is None or not min(served, tokens)
                else float(per_million_tokens(price, min(served, tokens))),
                replicas=tuple(replicas),
                unserved=unserved(loaded, menu, outcome, index),
                spares=tuple(spares[index]),
                asked=asked_document(deployment),
                checkpoint=checkpoint_document(loaded, index),
                request_tokens=request_tokens(loaded, index),
                speculation=speculation_document(loaded, index),
                adapters=adapters_document(loaded, index),
            )
        )
    return tuple(answer)


def replica_prices(loaded: LoadedProblem, outcome: Outcome) -> list[float]:
    """Price of each replica, then of each set of spare GPUs [$/h]: its GPUs, or its share of the nodes it opens where whole nodes are billed.

    A node billed whole is shared between its replicas by the GPUs each uses, so the shares add up to the bill.
    """
    used: dict[str, int] = defaultdict(int)
    paid = (*outcome.replicas, *outcome.spares)
    for replica in paid:
        for rank in replica.ranks:
            used[rank.node] += 1
    prices = []
    for replica in paid:
        pool = loaded.fabric.pools[replica.shape.pool]
        if pool.billing == "node" and pool.price_per_node is not None:
            prices.append(math.fsum(pool.price_per_node / used[rank.node] for rank in replica.ranks))
        else:
            prices.append(replica.shape.price)
    return prices


def _rejected(
    rejected: Iterable[Rejection], names: Sequence[str], gpu_names: Sequence[str], of_nodes: Sequence[str]
) -> Iterable[RejectedDocument]:
    """Rejections of each deployment, nearest misses first, one for each set of degrees, pool and code."""
    for deployment, name in enumerate(names):
        seen: set[tuple[int, Degrees, str, str]] = set()
        own = [item for item in rejected if item.deployment == deployment]
        for item in sorted(own, key=nearness):
            key = (item.pool, item.degrees, item.code, item.bucket)
            if key in seen or len(seen) >= MOST_REJECTED:
                continue
            seen.add(key)
            degrees = item.degrees
            yield RejectedDocument(
                deployment=name,
                shape=ShapeDocument(
                    gpu=gpu_names[item.pool],
                    tp=degrees.tensor_parallel,
                    pp=degrees.pipeline_parallel,
                    ep=degrees.expert_parallel,
                    dp=degrees.data_parallel,
                    batch=0,
                    locality=item.locality,
                    weights_dtype=item.weights_dtype,
                    kv_dtype=item.kv_dtype,
                    nodes=of_nodes[item.pool],
                ),
                code=item.code,
                message=item.message,
                shortfall=item.shortfall,
                bucket=item.bucket,
            )


def nearness(item: Rejection) -> tuple[float, ...]:
    """Sort key of rejections: how far from possible, then the simplest and narrowest first."""
    degrees = item.degrees
    far = math.inf if item.shortfall is None else item.shortfall
    simple = (degrees.pipeline_parallel, degrees.data_parallel, degrees.expert_parallel, degrees.tensor_parallel)
    return (far, *simple, item.pool)


def _checks(menu: Menu, outcome: Outcome, names: Sequence[str]) -> tuple[CheckDocument, ...]:
    """The checklist of the first replica of every deployment."""
    answer: list[CheckDocument] = []
    seen: set[int] = set()
    for replica in outcome.replicas:
        shape = replica.shape
        if shape.deployment not in seen:
            seen.add(shape.deployment)
            answer.extend(checklist(names[shape.deployment], menu.setting_of(shape), shape))
    return tuple(answer)
