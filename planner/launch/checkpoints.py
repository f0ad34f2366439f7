"""Which checkpoint a replica loads, and with which options it comes out in the formats of the plan."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.engines import Engine
from planner.catalog.models import checkpoint_in_format, model
from planner.diagnostics import Diagnostic, PlannerError
from planner.launch.directory import caution, refusal
from planner.plan.document import DeploymentDocument, ReplicaDocument
from planner.plan.serving import CheckpointDocument
from planner.problem.precision import SIXTEEN_BITS

FORMATS = {"vllm": frozenset({"fp8"}), "sglang": frozenset({"fp8", "bf16"}), "tensorrt-llm": frozenset({"fp8"})}
"""Formats of the KV cache that an option of each engine asks for, besides the model's own."""
QUANTIZED_WHILE_LOADING = frozenset({"vllm", "sglang"})
"""Engines that quantize 16-bit weights to FP8 while they load them (`--quantization fp8`); they hold the 16-bit weights first."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is loaded: `model` is a Hugging Face id or a path, `dtype` 16 bits other than the checkpoint's own, `quantization` what the engine makes of it.

    `kv_cache` is the plan's format of the KV cache, None where it is what the engine takes by itself. `compressed` = its layers are over compressed tokens.
    """

    model: str
    dtype: str | None = None
    quantization: str | None = None
    kv_cache: str | None = None
    compressed: bool = False


def over_compressed_tokens(name: str) -> bool:
    """Tell whether a model of the catalog attends to compressed tokens; a model given as a config file is none of it."""
    try:
        return model(name).compressed
    except PlannerError:
        return False


def checkpoint_of(
    deployment: DeploymentDocument, replica: ReplicaDocument, rules: Engine, given: str | None
) -> tuple[Checkpoint, list[Diagnostic]]:
    """Checkpoint of a replica, and what is to be known about it.

    Parameters
    ----------
    deployment
        Deployment of the plan; its checkpoint is known.
    replica
        Replica with the formats that the plan counts with.
    rules
        The engine.
    given
        Path or id that the user names; None = the published one.

    Raises
    ------
    PlannerError
        MODEL_PATH_NEEDED, CHECKPOINT_NEEDED, FORMAT_NOT_EXPRESSIBLE.
    """
    stored, wanted = deployment.checkpoint, replica.shape.weights_dtype
    assert stored is not None
    where = f"deployments.{deployment.name}"
    ask = f"say where it is: --model-path {deployment.name}=PATH"
    kv_cache = _kv_cache(stored, stored.kv_cache, replica.shape.kv_dtype, rules, where)
    same = wanted in {"", stored.weights}
    sixteen = wanted in SIXTEEN_BITS and stored.weights in SIXTEEN_BITS
    if given is not None:
        if same or sixteen:
            return Checkpoint(given, wanted if sixteen and not same else None, None, kv_cache), []
        message = f"{given} is taken to be {deployment.model} in {wanted}"
        hint = "the engine reads the format from its config.json; check the weights it reports"
        return Checkpoint(given, None, None, kv_cache), [caution("CHECKPOINT_ASSUMED", message, hint, where)]
    if same or sixteen:
        if stored.hugging_face is None:
            message = f"{deployment.model} is a config file, and nothing says where its weights are"
            raise PlannerError([refusal("MODEL_PATH_NEEDED", message, ask, where)])
        return Checkpoint(stored.hugging_face, wanted if not same else None, None, kv_cache), []
    other = checkpoint_in_format(deployment.model, wanted) if stored.hugging_face is not None else None
    if other is not None:
        message = f"{wanted} weights of {deployment.model} are taken from {other[1]}, whose own scheme may keep some tensors in more bits"
        hint = f"write `model: {other[0]}` into the problem and solve again, or give your own with --model-path {deployment.name}=PATH"
        scheme = model(other[0]).quantization
        kv_cache = _kv_cache(stored, None if scheme is None else scheme.kv_cache, replica.shape.kv_dtype, rules, where)
        return Checkpoint(other[1], None, None, kv_cache), [caution("CHECKPOINT_SUBSTITUTED", message, hint, where)]
    if wanted == "fp8" and rules.name in QUANTIZED_WHILE_LOADING and stored.weights in SIXTEEN_BITS and stored.hugging_face is not None:
        if 2.0 * replica.memory.weights_gib <= replica.memory.budget_gib:
            message = f"{rules.title} quantizes {stored.hugging_face} to FP8 while it loads, holding {2 * replica.memory.weights_gib:.0f} GiB a GPU first"
            hint = f"a checkpoint quantized before loads faster: --model-path {deployment.name}=PATH"
            return Checkpoint(stored.hugging_face, None, "fp8", kv_cache), [caution("QUANTIZED_WHILE_LOADING", message, hint, where)]
        message = (
            f"no {wanted} checkpoint of {deployment.model} is known, and its 16-bit weights do not fit the GPUs while they are quantized"
        )
        raise PlannerError([refusal("CHECKPOINT_NEEDED", message, ask, where)])
    message = f"the plan serves {deployment.model} in {wanted}, its checkpoint stores {stored.weights}, and no other is known"
    raise PlannerError(
        [refusal("CHECKPOINT_NEEDED", message, f"name a checkpoint in {wanted}: --model-path {deployment.name}=PATH", where)]
    )


def _kv_cache(stored: CheckpointDocument, scales: str | None, wanted: str, rules: Engine, where: str) -> str | None:
    """Format of the KV cache to ask for; None where the engine takes it by itself.

    That is the model's own 16 bits, unless the checkpoint has `scales` for fewer and the engine follows it. vLLM follows the model whatever the checkpoint has
    (its attention backends of 0.12 take `auto` and FP8 only).

    Raises
    ------
    PlannerError
        FORMAT_NOT_EXPRESSIBLE.
    """
    own = stored.dtype if stored.dtype in SIXTEEN_BITS else "bf16"
    if wanted in {"", own} and (scales is None or rules.name == "vllm"):
        return None
    if wanted in FORMATS[rules.name]:
        return wanted
    hint = f"ask for {own} or {' or '.join(sorted(FORMATS[rules.name] - {own}))} as kv_cache and solve again"
    raise PlannerError(
        [refusal("FORMAT_NOT_EXPRESSIBLE", f"{rules.title} has no option for a {wanted} KV cache of {stored.dtype} weights", hint, where)]
    )
