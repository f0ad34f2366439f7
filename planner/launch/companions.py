"""What is started beside a model: what proposes tokens in speculative decoding, and room for adapters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from planner.catalog.engines import Engine
from planner.diagnostics import Diagnostic, PlannerError
from planner.launch.directory import caution, refusal
from planner.plan.document import DeploymentDocument, ShapeDocument
from planner.plan.serving import AdaptersDocument

Method = Literal["draft", "eagle", "eagle3", "own-layers", "ngram"]

# How a server is told which adapters it has, by engine; they can only be named when it is started or while it runs.
_NAMED_BY: Final = {
    "vllm": "add --lora-modules NAME=PATH to the command",
    "sglang": "add --lora-paths NAME=PATH to the command, or load them at /load_lora_adapter",
    "tensorrt-llm": "name the path in each request: lora_request",
}


@dataclass(frozen=True, slots=True)
class Speculation:
    """What proposes tokens: `method`, `tokens` at once, and the draft's weights ("" = none of its own); a draft that stands `alone` is whole on every rank."""

    method: Method
    model: str
    tokens: int
    alone: bool


def speculation_of(deployment: DeploymentDocument, given: str | None) -> tuple[Speculation | None, list[Diagnostic]]:
    """Speculation of a deployment with the weights of its draft, and what is to be known about it.

    An EAGLE head is told from a draft model by its name, as engines do: `eagle3` or `eagle` in the Hugging Face id or path.

    Parameters
    ----------
    deployment
        Deployment of the plan.
    given
        Path or id of the draft that the user names; None = the published one.

    Raises
    ------
    PlannerError
        MODEL_PATH_NEEDED where nothing says where the draft's weights are, COMPANION_NOT_PLANNED where a draft is given and the plan has none.
    """
    asked, where = deployment.speculation, f"deployments.{deployment.name}"
    if asked is None or asked.method != "draft":
        if given is not None:
            message = f"the plan of {deployment.name} has no draft model, and --draft-path names one"
            hint = "leave it out, or write `speculative: {model: ..., tokens: 5}` into the problem and solve again"
            raise PlannerError([refusal("COMPANION_NOT_PLANNED", message, hint, where)])
        return (None if asked is None else Speculation(asked.method, "", asked.tokens, alone=False)), []
    weights = given or asked.hugging_face
    if weights is None:
        message = f"the draft {asked.model} of {deployment.name} is a config file, and nothing says where its weights are"
        raise PlannerError([refusal("MODEL_PATH_NEEDED", message, f"say where they are: --draft-path {deployment.name}=PATH", where)])
    lower = weights.lower()
    method: Method = "eagle3" if "eagle3" in lower else "eagle" if "eagle" in lower else "draft"
    told = []
    if method == "draft" and asked.hugging_face is None:
        message = f"the draft {weights} of {deployment.name} is started as a model of its own"
        hint = "an EAGLE head is told by `eagle` or `eagle3` in its path"
        told.append(caution("DRAFT_ASSUMED", message, hint, where))
    return Speculation(method, weights, asked.tokens, asked.alone), told


def companion_cautions(
    deployment: str, engine: str, speculation: Speculation | None, adapters: AdaptersDocument | None
) -> list[Diagnostic]:
    """What a plan does not say of adapters, and the two together."""
    found, where = [], f"deployments.{deployment}"
    if adapters is not None:
        message = f"{deployment} is started with room for {adapters.slots} adapters of rank {adapters.rank}; which ones is not in the plan"
        found.append(caution("ADAPTERS_NOT_NAMED", message, _NAMED_BY[engine], where))
    if adapters is not None and speculation is not None:
        message = f"{deployment} has adapters and speculative decoding, which not every version of an engine runs together"
        found.append(caution("COMPANIONS_TOGETHER", message, "look whether it starts before you count on the times", where))
    return found


def cannot(message: str, hint: str, where: str) -> Diagnostic:
    """A companion that an engine or its version cannot be told of."""
    return refusal("COMPANION_NOT_EXPRESSIBLE", message, hint, where)


def speculation_faults(asked: Speculation | None, rules: Engine, shape: ShapeDocument, where: str) -> Iterator[Diagnostic]:
    """What the version of an engine refuses of the speculation of a replica, by the rules of the catalog."""
    if asked is None:
        return
    title = f"{rules.title} {rules.version}"
    if asked.method == "draft" and _refuses(rules, "speculation", "draft_model"):
        hint = "plan for vLLM 0.15 or later, for an EAGLE head, for `method: ngram`, or for another engine"
        yield cannot(f"{title} does not speculate with a draft model of its own, as {asked.model} is", hint, where)
    if shape.pp > 1 and _refuses(rules, "speculation_stages"):
        yield cannot(f"{title} does not speculate over {shape.pp} stages", "write `parallelism: {pp: 1}` and solve again", where)
    if shape.dp > 1 and asked.method != "own-layers" and _refuses(rules, "speculation", "attention_dp"):
        hint = "write `parallelism: {dp: 1}`, or use the checkpoint's own layers, and solve again"
        yield cannot(f"{title} does not speculate with {asked.model or 'n-grams'} beside {shape.dp} attention ranks", hint, where)
    if asked.alone and shape.tp > 1 and _refuses(rules, "speculation", "whole_draft"):
        message = f"{title} cuts a draft like the model it serves, the plan has it whole on each of {shape.tp} ranks"
        yield cannot(message, "leave `tp: 1` of `speculative` out and solve again", where)


def _refuses(rules: Engine, rule: str, part: str | None = None) -> bool:
    found = rules.rule(rule, part)
    return found is not None and found.effect == "error"
