"""What a deployment serves beside its model, attached to the model: a draft for speculative decoding, room for adapters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from planner.catalog.architecture import Adapters, AttentionKind, Draft, LayerKind, ModelArchitecture, Speculation
from planner.catalog.engines import engine
from planner.catalog.versions import matches
from planner.diagnostics import Diagnostic, Place, Severity
from planner.problem.documents import Deployment, Problem
from planner.problem.documents import Speculation as SpeculationDocument
from planner.problem.references import Model, References

# Engines that sized the cache for the model alone, and where a share of the memory leaves the draft room.
SIZED_FOR_THE_MODEL_ALONE = "<0.8"
SHARE_WITH_A_DRAFT = 0.8


def served(architecture: ModelArchitecture, deployment: Deployment, draft: ModelArchitecture | None) -> ModelArchitecture:
    """The model with what is served beside it; a checkpoint without prediction layers has no draft of its own."""
    lora, asked, images = deployment.lora, deployment.speculative, deployment.workload.images
    if images is not None and architecture.looks_at_images:
        architecture = replace(architecture, layer_kinds=tuple(_with_images(kind, images) for kind in architecture.layer_kinds))
    adapters = None if lora is None else Adapters(lora.slots, lora.rank)
    found: Draft | None = None
    if asked is not None and draft is not None:
        found = Draft(draft, asked.tokens, alone=asked.tp == 1)
    elif asked is not None and _own_layers(asked) and architecture.nextn_layers:
        found = Draft(prediction_layers(architecture), asked.tokens, shares_ends=True)
    expected = None
    if asked is not None and asked.acceptance is not None and (found is not None or asked.method is not None):
        expected = Speculation(asked.tokens, asked.acceptance)
    if adapters is None and found is None and expected is None:
        return architecture
    return replace(architecture, draft=found, adapters=adapters, speculation=expected)


def _with_images(kind: LayerKind, images: int) -> LayerKind:
    """The layer as it serves requests of so many images."""
    seen = kind.attention
    return kind if seen is None or seen.kind is not AttentionKind.CROSS else replace(kind, attention=replace(seen, images=images))


def _own_layers(asked: SpeculationDocument) -> bool:
    """Whether the checkpoint's own layers are to propose tokens."""
    return asked.model is None and asked.method is None


def prediction_layers(architecture: ModelArchitecture) -> ModelArchitecture:
    """Multi-token-prediction layers of a checkpoint as a model of their own: each is like the last layer, or of the kind that the architecture gives."""
    name, count = f"prediction layers of {architecture.name}", architecture.nextn_layers
    if architecture.prediction_layer is not None:
        return replace(architecture, name=name, layer_kinds=(architecture.prediction_layer,), layer_sequence=(0,) * count, vision=None)
    return replace(architecture, name=name, layer_sequence=(architecture.layer_sequence[-1],) * count, vision=None)


def with_companions(problem: Problem | None, references: References) -> list[Model | None]:
    """Models of the deployments with what is served beside them; as they are where the problem could not be read."""
    if problem is None or len(references.models) != len(problem.deployments):
        return references.models
    found: list[Model | None] = []
    for model, draft, asked in zip(references.models, references.drafts, problem.deployments, strict=True):
        if model is None:
            found.append(None)
            continue
        architecture = served(model.architecture, asked, None if draft is None else draft.architecture)
        found.append(Model(architecture, model.contents if draft is None else [model.contents, draft.contents]))
    return found


def without_silent_companions(written: dict[str, Any]) -> None:
    """Leave out what a deployment does not ask for, so that it keeps the digest it had before it could be asked."""
    for name in ("speculative", "lora"):
        if written[name] is None:
            del written[name]
    for name in ("method", "acceptance"):
        if written.get("speculative", {}).get(name, "") is None:
            del written["speculative"][name]
    if written["workload"]["images"] is None:
        del written["workload"]["images"]
    memory = written["memory"]
    if memory is not None and memory["max_num_seqs"] is None:
        del memory["max_num_seqs"]


def companion_findings(problem: Problem, models: Sequence[Model | None]) -> Iterator[Diagnostic]:
    """Notes about the memory of drafts and adapters, and the fault of a checkpoint without prediction layers."""
    for index, (deployment, model) in enumerate(zip(problem.deployments, models, strict=False)):
        if model is not None:
            yield from _findings(model.architecture, deployment, index)
            yield from _image_findings(model.architecture, deployment, index)


def _findings(architecture: ModelArchitecture, deployment: Deployment, index: int) -> Iterator[Diagnostic]:
    asked, lora = deployment.speculative, deployment.lora
    here = Place(path=f"deployments.{index}.speculative")
    if asked is not None and architecture.draft is None and _own_layers(asked):
        message = f"{architecture.name} has no layers that predict further tokens"
        yield Diagnostic("NO_PREDICTION_LAYERS", message, "name a draft: `speculative: {model: ..., tokens: 5}`", Severity.ERROR, here)
    if architecture.draft is not None:
        yield _draft_note(architecture.draft, deployment, here)
        yield from _draft_of_this_version(architecture.draft, deployment, here)
    if asked is not None and (architecture.draft is not None or asked.method is not None):
        yield _times_note(architecture, asked, here)
    if lora is not None:
        message = f"room for {lora.slots} adapters of rank {lora.rank} is counted in every layer, and every request is taken to use one"
        yield Diagnostic(
            "ADAPTER_MEMORY", message, "fewer slots or a lower rank take less", Severity.NOTE, Place(path=f"deployments.{index}.lora")
        )


def _image_findings(architecture: ModelArchitecture, deployment: Deployment, index: int) -> Iterator[Diagnostic]:
    """What is counted of images, and the fault of giving them apart where they are part of the prompt."""
    here = Place(path=f"deployments.{index}.workload.images")
    if architecture.looks_at_images:
        layers = [architecture.layer(number).attention for number in range(architecture.layers)]
        seeing = [one for one in layers if one is not None and one.kind is AttentionKind.CROSS]
        count, tokens = seeing[0].images, seeing[0].image_tokens
        held = f"{count} image{'s' if count != 1 else ''} a request, {tokens:,} tokens each in the cache of {len(seeing)} cross-attention layers"
        message = (
            f"{held}; encoding them is not in the times" if count else f"no images: the {len(seeing)} cross-attention layers are passed by"
        )
        yield Diagnostic("IMAGE_TOKENS", message, "say how many with `images` of the workload", Severity.NOTE, here)
    elif deployment.workload.images is not None:
        message = f"{architecture.name} has no cross-attention: what it sees of images is part of the prompt, or nothing"
        yield Diagnostic("IMAGES_IN_PROMPT", message, "count their tokens in `prompt_tokens` and leave `images` out", Severity.ERROR, here)


def _draft_note(draft: Draft, deployment: Deployment, here: Place) -> Diagnostic:
    rules = engine(deployment.engine.name, deployment.engine.version)
    asked = deployment.memory.gpu_memory_utilization if deployment.memory is not None else None
    share = rules.gpu_memory_utilization if asked is None else asked
    where = "whole on every rank" if draft.alone else "cut like the model"
    message = f"{draft.architecture.name} is counted beside the model, weights and KV cache, {where}"
    if rules.name == "vllm" and matches(rules.version, SIZED_FOR_THE_MODEL_ALONE) and share > SHARE_WITH_A_DRAFT:
        message += f". {rules.title} {rules.version} sizes the cache for the model alone and runs out of memory at a share of {share:.0%}"
        hint = f"set gpu_memory_utilization to {SHARE_WITH_A_DRAFT}"
        return Diagnostic("DRAFT_MODEL_MEMORY", message, hint, Severity.WARNING, here)
    return Diagnostic("DRAFT_MODEL_MEMORY", message, "a smaller draft leaves more room for sequences", Severity.NOTE, here)


def _draft_of_this_version(draft: Draft, deployment: Deployment, here: Place) -> Iterator[Diagnostic]:
    """Draft models that the engine's version does not speculate with; EAGLE heads, which it does, are told by their name."""
    rules = engine(deployment.engine.name, deployment.engine.version)
    rule = rules.rule("speculation", "draft_model")
    if draft.shares_ends or rule is None or rule.effect != "error" or _is_head(deployment):
        return
    message = f"{rules.title} {rules.version} does not speculate with a draft model of its own, as {draft.architecture.name} is"
    hint = f'name a version that does: `engine: {{name: {rules.name}, version: "0.15"}}` (rule: {rule.source})'
    yield Diagnostic("SPECULATION_NOT_SUPPORTED", message, hint, Severity.WARNING, here)


def _is_head(deployment: Deployment) -> bool:
    asked = deployment.speculative
    return asked is not None and asked.model is not None and "eagle" in asked.model.lower()


def _times_note(architecture: ModelArchitecture, asked: SpeculationDocument, here: Place) -> Diagnostic:
    """What the times assume of proposed tokens."""
    expected = architecture.speculation
    if expected is None:
        message = "times are those without speculation: how many of the proposed tokens are accepted is not given"
        return Diagnostic("SPECULATION_TIMES", message, "give it from a run of your own: `acceptance: 70%`", Severity.NOTE, here)
    made = "one proposed token" if expected.tokens == 1 else f"each of {expected.tokens} proposed tokens"
    message = f"times assume that {made} is accepted with {expected.acceptance:.0%}: {expected.yielded:.2f} tokens a step"
    if asked.method is not None:
        message += ", proposed at no cost"
    hint = "the engine reports its acceptance; compare it with the one given"
    return Diagnostic("SPECULATION_TIMES", message, hint, Severity.NOTE, here)
