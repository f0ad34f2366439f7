"""Fabrics and shapes as the other rooms make them, small enough to reason about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.plan.shape import Degrees, MemoryFigures, Shape, TimeFigures
from planner.problem.documents import Problem
from planner.topology.build import build_fabric
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric

HGX: dict[str, Any] = {"gpu": "h100-sxm-80gb", "gpus": 8, "scale_up": "nvswitch", "nics": {"count": 8, "speed": "400Gb/s"}}


def fabric_of(nodes: Sequence[dict[str, Any]], **more: Any) -> Fabric:
    document = {"name": "test", "nodes": list(nodes), "fabric": {"kind": "infiniband", "oversubscription": 1}, **more}
    return build_fabric(TopologyDocument.model_validate(document))


def hgx_fabric(nodes: str = "h100-[01-02]", price: str = "$24/h", **more: Any) -> Fabric:
    return fabric_of([{"name": nodes, **HGX, "leaf": "leaf-1", "price": price, **more}])


def problem_of(objective: str = "cost", deployments: int = 1, **more: Any) -> Problem:
    return Problem.model_validate(
        {
            "name": "test",
            "topology": "topology.yaml",
            "objective": objective,
            "deployments": [
                {
                    "name": f"chat-{number}",
                    "model": "llama-3.1-405b",
                    "workload": {"prompt_tokens": 2048, "output_tokens": 512, "concurrency": 32},
                    **more.pop(f"deployment_{number}", {}),
                }
                for number in range(deployments)
            ],
            **more,
        }
    )


def shape_of(
    degrees: Degrees,
    capacity: float,
    price: float,
    locality: str = "domain",
    groups: int = 1,
    tpot: float = 0.03,
    comm: float = 1e-3,
    deployment: int = 0,
    pool: int = 0,
    group_level: str = "domain",
) -> Shape:
    memory = MemoryFigures(7e10, 5e10, 1e10, 5e9, 4e9, 6e9, 5e9, 64, 0)
    times = TimeFigures(tpot, 1.0, tpot - comm, comm, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1, 0.8, 0.8, 0.0)
    return Shape(
        deployment=deployment,
        pool=pool,
        degrees=degrees,
        batch=int(capacity),
        locality=locality,
        group_level=group_level,
        groups=groups,
        group_size=degrees.gpus // groups,
        capacity=capacity,
        price=price,
        comm_seconds=comm,
        throughput=capacity / tpot,
        memory=memory,
        times=times,
        partition=(126,) if degrees.pipeline_parallel == 1 else (63, 63),
        weights_dtype="fp8",
        kv_dtype="fp8",
    )
