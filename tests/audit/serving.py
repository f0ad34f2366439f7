"""What hand-made plans say so that they can be started, counted anew from the question and the topology."""

from __future__ import annotations

from planner.catalog.engines import engine
from planner.plan.serving import CheckpointDocument, LimitsDocument, NodeDocument


def startable(plan, problem, fabric, architectures):
    """The plan with limits, checkpoints, lengths of requests, and its nodes."""
    deployments = tuple(
        _deployment(answer, problem.deployments[number], fabric, architectures[number]) for number, answer in enumerate(plan.deployments)
    )
    names = {rank.node for answer in deployments for replica in answer.replicas for rank in replica.ranks}
    nodes = tuple(_node(fabric, name) for name in fabric.nodes if name in names)
    return plan.model_copy(update={"deployments": deployments, "nodes": nodes})


def _deployment(answer, asked, fabric, architecture):
    scheme = architecture.quantization
    checkpoint = CheckpointDocument(
        hugging_face=None,  # no model of the scenarios is the catalog's
        weights=scheme.weights if scheme else architecture.dtype,
        method=scheme.method if scheme else "",
        dtype=architecture.dtype,
        kv_cache=scheme.kv_cache if scheme else None,
        context=architecture.max_position,
        experts=max(kind.feed_forward.experts if kind.feed_forward else 0 for kind in architecture.layer_kinds),
    )
    tokens = asked.workload.prompt_tokens + asked.workload.output_tokens
    replicas = tuple(
        replica.model_copy(update={"limits": _limits(asked, tokens, fabric.pool(replica.ranks[0].node).gpu)}) for replica in answer.replicas
    )
    return answer.model_copy(update={"checkpoint": checkpoint, "request_tokens": tokens, "replicas": replicas})


def _limits(asked, tokens, gpu):
    rules = engine(asked.engine.name, asked.engine.version)
    own = asked.memory.model_dump() if asked.memory else {}
    length = own.get("max_model_len") or tokens
    return LimitsDocument(
        max_model_len=length,
        max_batched_tokens=own.get("max_batched_tokens") or rules.batched_tokens(gpu, length),
        max_num_seqs=own.get("max_num_seqs") or rules.sequences(gpu),
        gpu_memory_utilization=own.get("gpu_memory_utilization") or rules.gpu_memory_utilization,
    )


def _node(fabric, name):
    gpus = fabric.pool(name).gpus_per_node
    scope = next(number for number in range(len(fabric.scopes)) if name in fabric.scopes.nodes(number))
    return NodeDocument(
        name=name,
        gpu=fabric.pool(name).gpu.name,
        gpus=gpus,
        taken=tuple(number for number in range(gpus) if fabric.state((name, number)) != "free"),
        domain=fabric.scopes.name(scope),
        domain_nodes=len(fabric.scopes.nodes(scope)),
        leaf=fabric.leaf_name(int(fabric.inventory.leaf[fabric.inventory.index[name]])),
    )
