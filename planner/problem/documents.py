"""The problem as its author writes it: deployments, workload, targets, objective, and the topology they name.

Frozen documents; unknown keys are refused. They check the form and what keys ask of each other; whether a model, GPU or engine of
that name exists is checked by `load`, so that every fault of all files is reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag

from planner.problem.fault import Fault
from planner.problem.faults import (
    budget_faults,
    deployment_faults,
    parallelism_faults,
    problem_faults,
    replicas_faults,
    slo_faults,
    speculation_faults,
)
from planner.problem.parts import Entry, Flag, Kind, Name, ProblemPart
from planner.problem.rule_documents import MOST_PRIORITY, MOST_REPLICAS, Current, Resilience, Spread, all_or_nothing, lose_any, spread_over
from planner.problem.workload import MOST_SEQUENCES, MOST_TOKENS, Degree, Measured, Workload
from planner.quantities import Fraction, MoneyPerHour, Seconds
from planner.topology.document import TopologyDocument

Objective = Literal["cost", "gpus", "latency", "throughput"]
WeightsDtype = Literal["any", "bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]
KvDtype = Literal["any", "bf16", "fp16", "fp8", "int8"]

LARGEST_SEED = 2**31 - 1

# Tags of the two forms of `topology`; they show up in validation errors and are no keys of the file.
PATH_TAG = "<path>"
INLINE_TAG = "<inline>"


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


def _any_precision(value: Any) -> Any:
    return {"weights": "any", "kv_cache": "any"} if value == "any" else value


GpuList = Annotated[tuple[Entry, ...], Field(min_length=1), BeforeValidator(_one_or_many, json_schema_input_type=Entry | list[Entry])]
Degrees = Annotated[tuple[Degree, ...], BeforeValidator(_one_or_many, json_schema_input_type=Degree | list[Degree])]


class PrecisionChoice(ProblemPart):
    """Number formats asked for; absent = the checkpoint's own weights and the engine's default KV cache, `any` = the planner chooses."""

    weights: WeightsDtype | None = Field(default=None, description="Format of the linear weights; absent = as the checkpoint stores them")
    kv_cache: KvDtype | None = Field(default=None, description="Format of the KV cache; absent = the engine's default")


class EngineChoice(ProblemPart):
    """Serving engine whose rules, constants and defaults apply."""

    name: str = Field(min_length=1, max_length=100, description="Engine by its catalog name: vllm, sglang, tensorrt-llm")
    version: str | None = Field(default=None, min_length=1, max_length=50, description="Version, in quotes; absent = the newest known")


class Slo(ProblemPart):
    """Latency targets."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    tpot: Annotated[Seconds, Field(gt=0, le=60)] | None = Field(default=None, description="Longest time per output token, 60ms for example")
    ttft: Annotated[Seconds, Field(gt=0, le=3600)] | None = Field(default=None, description="Longest time to first token, 3s for example")
    percentile: Annotated[float, Field(ge=50, le=99.9)] | None = Field(
        default=None, description="Share of requests, in per cent, that must meet the targets; absent = the mean"
    )

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """At least one target is given."""
        return slo_faults(given)


class Parallelism(ProblemPart):
    """Allowed degrees: one number fixes a degree, a list leaves the choice among them, absent leaves it to the planner."""

    tp: Degrees | None = Field(default=None, description="Tensor parallel degrees allowed")
    pp: Degrees | None = Field(default=None, description="Pipeline parallel degrees allowed")
    ep: Degrees | None = Field(default=None, description="Expert parallel degrees allowed")
    dp: Degrees | None = Field(default=None, description="Data-parallel attention ranks allowed inside one replica")

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """Every list of degrees allows something, once."""
        return parallelism_faults(given)


class Replicas(ProblemPart):
    """How many replicas a deployment may have, and whether all must be alike."""

    min: Annotated[int, Field(strict=True, ge=1, le=MOST_REPLICAS)] | None = Field(default=None, description="At least so many replicas")
    max: Annotated[int, Field(strict=True, ge=1, le=MOST_REPLICAS)] | None = Field(default=None, description="At most so many replicas")
    one_shape: Flag = Field(default=False, description="All replicas of the deployment have the same shape")

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """`min` is not above `max`."""
        return replicas_faults(given)


class Memory(ProblemPart):
    """Engine settings that decide how much context a GPU holds."""

    gpu_memory_utilization: Annotated[Fraction, Field(gt=0)] | None = Field(
        default=None, description="Share of the GPU's memory the engine may use; absent = the engine's default"
    )
    max_model_len: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = Field(
        default=None, description="Longest context the engine is started for [tokens]; absent = prompt and output tokens"
    )
    max_batched_tokens: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = Field(
        default=None, description="Most tokens of one prefill step [tokens]; absent = the engine's default"
    )
    max_num_seqs: Annotated[int, Field(strict=True, ge=1, le=MOST_SEQUENCES)] | None = Field(
        default=None, description="Most sequences the engine runs at once on one data-parallel rank; absent = the engine's default"
    )
    prefix_cache_hit_rate: Annotated[Fraction, Field(lt=1)] = Field(
        default=0.0, description="Share of prompt tokens found in the prefix cache and not computed again"
    )


class Speculation(ProblemPart):
    """Speculative decoding: what proposes tokens, and how many are accepted. Memory is counted; times are those without it unless `acceptance` is given."""

    method: Literal["ngram"] | None = Field(default=None, description="ngram = looked up in the prompt, without a draft; absent = a draft")
    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Draft model by catalog name or config.json; absent = the checkpoint's own layers",
    )
    tokens: Annotated[int, Field(strict=True, ge=1, le=64)] = Field(default=1, description="Tokens proposed at once")
    tp: Literal[1] | None = Field(default=None, description="1 = the whole draft on every rank; absent = cut like the model")
    acceptance: Fraction | None = Field(
        default=None, description="Chance that a proposed token is accepted when those before it were; absent = times without speculation"
    )

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """N-grams have no draft."""
        return speculation_faults(given)


class Lora(ProblemPart):
    """Room for low-rank adapters, which an engine allocates when it starts."""

    slots: Annotated[int, Field(strict=True, ge=1, le=10_000)] = Field(description="Adapters held at once (max_loras)")
    rank: Annotated[int, Field(strict=True, ge=1, le=4096)] = Field(default=16, description="Largest rank of an adapter (max_lora_rank)")


class Deployment(ProblemPart):
    """One model to be served."""

    name: Name = Field(description="Name of the deployment: letters, digits, `.`, `-` and `_`")
    model: str = Field(min_length=1, max_length=1000, description="Model by catalog name, or the path of a Hugging Face config.json")
    precision: Annotated[
        PrecisionChoice | None,
        BeforeValidator(_any_precision, json_schema_input_type=PrecisionChoice | Literal["any"] | None),
    ] = Field(default=None, description="Number formats; absent = the checkpoint's own, `any` lets the planner choose")
    engine: Annotated[EngineChoice, BeforeValidator(_named, json_schema_input_type=EngineChoice | str)] = Field(
        default=EngineChoice(name="vllm"), description="Serving engine: a name, or name and version"
    )
    workload: Workload = Field(description="Lengths of a request, or buckets of them, and the load")
    slo: Slo | None = Field(default=None, description="Latency targets")
    min_efficiency: Annotated[Fraction, Field(gt=0)] | None = Field(
        default=None, description="Least throughput per GPU, as a share of what one such GPU would reach"
    )
    parallelism: Parallelism | None = Field(default=None, description="Allowed degrees; absent = all that are legal")
    replicas: Replicas | None = Field(default=None, description="Bounds on the number of replicas")
    memory: Memory | None = Field(default=None, description="Engine settings about memory")
    speculative: Speculation | None = Field(default=None, description="Speculative decoding: a draft model, or the checkpoint's own layers")
    lora: Lora | None = Field(default=None, description="Room for low-rank adapters")
    headroom: Fraction = Field(default=0.0, description="Capacity to keep beyond the load, as a share of it")
    require_nvlink: Flag = Field(default=False, description="Every tensor-parallel and every expert group stays inside one NVLink domain")
    spread: Annotated[Spread | None, BeforeValidator(spread_over, json_schema_input_type=Spread | Kind | None)] = Field(
        default=None, description="Keep replicas apart: a kind of failure domain, each with one replica at most, or kind and number"
    )
    resilience: Annotated[Resilience | None, BeforeValidator(lose_any, json_schema_input_type=Resilience | Kind | None)] = Field(
        default=None, description="What must still be served after the loss of any one failure domain"
    )

    pin: GpuList | None = Field(default=None, description="Nodes or GPUs, h100-01 or h100-[02-03]:[0-3]; the deployment uses no others")
    forbid: GpuList | None = Field(default=None, description="Nodes or GPUs that the deployment does not use")
    priority: Annotated[int, Field(strict=True, ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = Field(
        default=0, description="Importance where load may go unserved: deployments of a higher number are served first"
    )
    may_go_unserved: Annotated[Fraction, BeforeValidator(all_or_nothing, json_schema_input_type=Fraction | bool)] = Field(
        default=0.0, description="Share of the load that may go unserved, or true for all of it"
    )
    spares: Annotated[int, Field(strict=True, ge=0, le=MOST_REPLICAS)] = Field(
        default=0, description="Lost replicas of a shape that find GPUs kept free for them at once: 1 for N+1"
    )
    throughput: tuple[Measured, ...] | None = Field(
        default=None, min_length=1, max_length=1000, description="Figures of one's own by GPU type and shape, in place of the model's"
    )

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """The context asked for holds a request."""
        return deployment_faults(given)


class Budget(ProblemPart):
    """What the plan may use at most."""

    per_hour: Annotated[MoneyPerHour, Field(gt=0)] | None = Field(default=None, description="Most money per hour, $100/h for example")
    gpus: dict[str, Annotated[int, Field(strict=True, ge=0)]] | None = Field(default=None, description="Most GPUs by type")

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """At least one limit is given."""
        return budget_faults(given)


def _topology_form(value: Any) -> str:
    return PATH_TAG if isinstance(value, str) else INLINE_TAG


class Problem(ProblemPart):
    """A whole question: which deployments, on which topology, for what."""

    name: str = Field(min_length=1, max_length=200, description="Name of the problem")
    description: str = Field(default="", max_length=10_000, description="Free text")
    topology: Annotated[
        Annotated[Annotated[str, Field(min_length=1, max_length=4096)], Tag(PATH_TAG)] | Annotated[TopologyDocument, Tag(INLINE_TAG)],
        Discriminator(_topology_form),
    ] = Field(description="Path of the topology file, relative to this file, or the topology itself")
    deployments: tuple[Deployment, ...] = Field(min_length=1, max_length=1000, description="Models to be served")
    objective: Objective = Field(default="cost", description="What to make best: cost, gpus, latency or throughput")
    budget: Budget | None = Field(default=None, description="What the plan may use at most")
    current: Current | None = Field(default=None, description="A plan that runs already, and what moving away from it costs")
    profile: str = Field(
        default="calibrated",
        min_length=1,
        max_length=4096,
        description="Physics: calibrated (on measurements), hockney (the textbook alpha-beta model), or the path of a profile file of one's own",
        examples=["calibrated", "hockney", "../profiles/cluster.yaml"],
    )
    seed: Annotated[int, Field(strict=True, ge=0, le=LARGEST_SEED)] = Field(default=0, description="Seed of everything random")

    @classmethod
    def faults(cls, given: Mapping[str, Any]) -> Iterator[Fault]:
        """Names of deployments are unique."""
        return problem_faults(given)
