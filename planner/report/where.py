"""What a shape would run on, in words that no other shape of the same answer has."""

from __future__ import annotations

from planner.plan.document import PlanDocument, ShapeDocument


def where_words(plan: PlanDocument, deployment: str, shape: ShapeDocument) -> str:
    """GPU type of a shape, with its nodes where others have the same GPUs, and its number formats where those of the deployment differ."""
    of = f" of {shape.nodes}" if shape.nodes else ""
    shapes = [replica.shape for item in plan.deployments if item.name == deployment for replica in item.replicas]
    shapes += [item.shape for item in plan.alternatives if item.deployment == deployment]
    shapes += [item.shape for item in plan.rejected if item.deployment == deployment]
    several = len({(one.weights_dtype, one.kv_dtype) for one in shapes if one.weights_dtype}) > 1
    formats = f" ({shape.weights_dtype} weights, {shape.kv_dtype} KV)" if several and shape.weights_dtype else ""
    return f"{shape.gpu}{of}{formats}"
