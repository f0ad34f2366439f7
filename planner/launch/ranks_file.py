"""`placement.yaml`: the GPU of every rank in the form that `planner validate` reads, whatever the target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from planner.catalog.engines import engine
from planner.launch.replicas import Replica
from planner.launch.yaml_text import yaml_text
from planner.plan.document import PlanDocument, RankDocument

RANKS_FILE: Final = "placement.yaml"


def ranks_file(plan: PlanDocument, replicas: Sequence[Replica]) -> str:
    """Text of the file; ranks stand in the plan's order (stage, data-parallel rank, tensor-parallel rank)."""
    documents = {deployment.name: deployment for deployment in plan.deployments}
    groups: list[dict[str, Any]] = []
    held: dict[tuple[Any, ...], dict[str, Any]] = {}
    for replica in replicas:
        settings = _settings(replica)
        key = (replica.deployment, *((name, str(value)) for name, value in settings.items()))
        if key not in held:
            held[key] = {"name": replica.deployment, **settings, "replicas": []}
            groups.append(held[key])
        held[key]["replicas"].append(_words(documents[replica.deployment].replicas[replica.number].ranks))
    head = "# The GPU of every rank: stage by stage, in a stage data-parallel rank by rank, in it tensor-parallel rank by rank.\n"
    return head + yaml_text({"deployments": groups})


def _settings(replica: Replica) -> dict[str, Any]:
    shape, limits = replica.shape, replica.limits
    found: dict[str, Any] = {"engine": replica.engine.name}
    if replica.engine.version != engine(replica.engine.name).version:
        found["version"] = replica.engine.version
    found |= {"tp": shape.tp, "pp": shape.pp, "ep": shape.ep, "dp": shape.dp, "batch": shape.batch}
    if shape.pp > 1 and shape.partition:
        found["partition"] = list(shape.partition)
    found |= {"weights": shape.weights_dtype, "kv_cache": shape.kv_dtype}
    found |= {"gpu_memory_utilization": limits.gpu_memory_utilization, "max_model_len": limits.max_model_len}
    return {**found, "max_batched_tokens": limits.max_batched_tokens}


def _words(ranks: Sequence[RankDocument]) -> list[str]:
    """GPUs of ranks, one word for each run on one node: `h100-01:[0,1,2,3]`."""
    ordered = sorted(ranks, key=lambda rank: (rank.stage, rank.dp_rank, rank.tp_rank))
    found = []
    for node, run in groupby(ordered, key=lambda rank: rank.node):
        gpus = [rank.gpu for rank in run]
        row = gpus == list(range(gpus[0], gpus[0] + len(gpus))) and len(gpus) > 1
        found.append(f"{node}:[{gpus[0]}-{gpus[-1]}]" if row else f"{node}:[{','.join(map(str, gpus))}]")
    return found
