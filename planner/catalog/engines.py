"""Serving engines by version: what they reserve, how they lay a model out, and which layouts they refuse.

`engine("vllm")`, `engine("vllm", "0.7.2")` and `engine("vllm 0.7.2")` give the facts of one version; without a version the one that
the constants were measured on. Everything is data in `data/engines.toml`, with its public source.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal

from planner.catalog.architecture import ModelArchitecture, Quantization
from planner.catalog.gpus import Gpu
from planner.catalog.nearest import plain, unknown_name
from planner.catalog.read import DATA
from planner.catalog.versions import matches, version_key

Effect = Literal["error", "warning", "none"]
LowExpectedHigh = tuple[float, float, float]

GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True)
class EngineRule:
    """One legality rule as an engine version has it: `effect` when it is broken, a hint of the engine's own, and the public source."""

    rule: str
    effect: Effect
    source: str
    hint: str = ""
    part: str | None = None  # restricts the rule to one family of tensors (expert, shared_expert, ...)


@dataclass(frozen=True, slots=True)
class FormatSupport:
    """How an engine runs weights that the GPU does not multiply natively.

    From compute capability `expanded_from` on it expands them to 16 bits in the kernel; None = native arithmetic only. `amd` = on CDNA too.
    """

    name: str
    expanded_from: float | None
    amd: bool
    source: str


@dataclass(frozen=True, slots=True)
class KernelPadding:
    """Multiples to which a kernel pads every expert's matrices; 1 = as they are.

    `expert_width` pads the width of an expert on one rank, `expert_inputs` the size of the tokens it takes in and gives out, and `contracted` whichever of the two a
    matrix sums over. `capability` names the GPUs (bounds on the compute capability) that run this kernel, "" = all; `unpadded` the methods of checkpoints
    whose experts are loaded as they are stored.
    """

    expert_width: int
    expert_inputs: int
    source: str
    contracted: int = 1
    capability: str = ""
    unpadded: tuple[str, ...] = ()


NO_PADDING: Final = KernelPadding(1, 1, "")


@dataclass(frozen=True)
class Engine:
    """Facts of one engine version. Terms of memory are (low, expected, high) [B].

    `sampler_bytes` is the peak of sampling per sequence and vocabulary entry [B]: it is what an engine's start-up profile finds for small models,
    since logits are not divided by tensor parallelism. `sampler_rank` says whether every rank of the last stage samples or the first one alone. `hidden_buffers` is how many
    buffers of a whole step, as wide as the model, live at the peak of a layer, `pipeline_buffers` how many more between stages. `expert_workspace` tells whether the buffers of
    the experts are `freed` after each layer or `kept` beside the sampler's (but for the formats of `workspace_freed_for`). `position_table_bytes` is what an entry of the
    table of rotary positions takes; `rounds_allocations` tells whether weights are held by PyTorch's allocator; `latent_products` tells whether latent attention of FP8 checkpoints keeps its up projections multiplied into those of the query and the output.
    Models over compressed tokens run from version `compressed_attention_from` on. Prompts up to `whole_prompts_up_to` tokens run in one step, longer contexts in steps of `long_prompt_chunk`; 0 = steps of max_num_batched_tokens throughout.
    `graphs_inside_budget` and `activations_inside_budget` tell whether the engine takes that memory out of its own budget, or leaves it to
    what the budget does not claim.
    """

    name: str
    title: str
    version: str
    source: str
    gpu_memory_utilization: float
    budget: str
    max_num_seqs: int
    max_num_batched_tokens: int
    large_gpu_bytes: float
    large_gpu_except: str
    large_max_num_seqs: int
    large_max_num_batched_tokens: int
    block_size: int
    kv_cache: str
    vocabulary_padding: int
    sliding_window: str
    pipeline_split: str
    pipeline_override: str
    expert_parallel: str
    attention_dp: str
    vision: str
    absorbs_latent_up_projection: bool
    sampler_bytes: float
    sampler_rank: str
    activation_low: float
    activation_high: float
    graphs: LowExpectedHigh
    context: LowExpectedHigh
    communicator: LowExpectedHigh
    pcie_communicator: LowExpectedHigh
    pipeline_communicator: LowExpectedHigh
    hidden_buffers: float
    pipeline_buffers: float
    expert_workspace: str
    workspace_freed_for: tuple[str, ...]
    position_table_bytes: float
    latent_products: bool
    whole_prompts_up_to: int
    long_prompt_chunk: int
    compressed_attention_from: str
    rounds_allocations: bool
    graphs_inside_budget: bool
    activations_inside_budget: bool
    constants_source: str
    rules: tuple[EngineRule, ...]
    formats: tuple[FormatSupport, ...]
    padding: tuple[tuple[str, KernelPadding], ...]
    sources: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    def rule(self, name: str, part: str | None = None) -> EngineRule | None:
        """First rule called `name` that holds for this version and this family of tensors."""
        return next((rule for rule in self.rules if rule.rule == name and rule.part in (None, part)), None)

    def format(self, name: str) -> FormatSupport | None:
        """How weights of this format run where the GPU does not multiply them natively."""
        return next((support for support in self.formats if support.name == name), None)

    def kernel_padding(self, weights: str, scheme: Quantization | None) -> KernelPadding:
        """Padding of the experts' matrices for a weights dtype, stored as `scheme` says; the kernels for its method may have some of their own."""
        names = (weights,) if scheme is None else (f"{weights} of {scheme.method}", weights)
        padding = next((padding for wanted in names for name, padding in self.padding if name == wanted), NO_PADDING)
        return NO_PADDING if scheme is not None and scheme.method in padding.unpadded else padding

    def is_large(self, gpu: Gpu) -> bool:
        """Tell whether the engine treats `gpu` as a large one, with higher defaults."""
        if self.large_gpu_except and self.large_gpu_except in gpu.name:
            return False
        return gpu.memory.value > self.large_gpu_bytes

    def sequences(self, gpu: Gpu) -> int:
        """Default largest number of running sequences (the engine's own cap, e.g. max_num_seqs)."""
        return self.large_max_num_seqs if self.is_large(gpu) else self.max_num_seqs

    def batched_tokens(self, gpu: Gpu, max_model_len: int = 0) -> int:
        """Default largest number of tokens of one step (chunk of prefill), for an engine started for `max_model_len` tokens."""
        if self.whole_prompts_up_to:
            if max_model_len > self.whole_prompts_up_to:
                return self.long_prompt_chunk
            return max(max_model_len, self.max_num_batched_tokens)
        return self.large_max_num_batched_tokens if self.is_large(gpu) else self.max_num_batched_tokens

    def on(self, gpu: Gpu) -> Engine:
        """The same engine with what it picks on `gpu`: kernels by the compute capability, communicators by the links between GPUs."""
        communicator = self.communicator if gpu.scale_up_domain > 2 else self.pcie_communicator
        capability = "0" if gpu.compute_capability is None else str(gpu.compute_capability)
        kernels = tuple((name, padding) for name, padding in self.padding if matches(capability, padding.capability))
        return replace(self, padding=kernels, communicator=communicator)

    def kv_cache_dtype(self, architecture: ModelArchitecture) -> str:
        """Number format of the KV cache when nobody asks for one: the model's own, or the checkpoint's where the engine follows it.

        Compressed tokens are kept in 8 bits: vLLM refuses anything else at first (deepseek_v4 attention, pull request 40860), SGLang stored nothing else
        until 16 bits were added as an option (pull request 28033).
        """
        scheme = architecture.quantization
        if architecture.compressed:
            return "fp8"
        if self.kv_cache == "checkpoint" and scheme is not None and scheme.kv_cache is not None:
            return scheme.kv_cache
        return architecture.dtype


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "engines.toml").read_text(encoding="utf-8"))


def engine_names() -> tuple[str, ...]:
    """Names of all engines of the catalog."""
    return tuple(_tables())


def engine(name: str, version: str | None = None) -> Engine:
    """Look an engine up by name and version; a name may carry its version ("vllm 0.7.2", "vllm==0.7.2").

    Raises
    ------
    PlannerError
        UNKNOWN_ENGINE with the nearest names.
    """
    return _engine(*parted(name, version))


def parted(name: str, version: str | None) -> tuple[str, str | None]:
    """Name and version of an engine whose name may carry its version."""
    words = re.split(r"[\s@=]+", name.strip(), maxsplit=1)
    if version is None and len(words) == 2 and version_key(words[1]):
        return words[0], words[1]
    return name, version


@cache
def _engine(name: str, version: str | None) -> Engine:
    tables = _tables()
    wanted = plain(name)
    found = next((key for key, row in tables.items() if wanted in {plain(known) for known in (key, row["title"], *row["aliases"])}), None)
    if found is None:
        raise unknown_name("UNKNOWN_ENGINE", "engine", name, engine_names(), "planner catalog engines")
    return _read(found, tables[found], version or tables[found]["default_version"])


def engines() -> tuple[Engine, ...]:
    """All engines, each in its default version."""
    return tuple(engine(name) for name in engine_names())


def _read(name: str, row: Mapping[str, Any], version: str) -> Engine:
    values = dict(row)
    sources = [row["source"]]
    for change in row.get("changes", ()):
        if matches(version, change["versions"]):
            values.update({key: value for key, value in change.items() if key not in ("versions", "source")})
            sources.append(change["source"])
    held = {
        key: [entry for entry in row.get(key, ()) if matches(version, entry.get("versions", ""))] for key in ("rules", "formats", "padding")
    }
    return Engine(
        name=name,
        version=version,
        large_gpu_bytes=values["large_gpu_gib"] * GIB,
        sampler_bytes=values["sampler_bytes_per_logit"],
        graphs=_bytes(values["graph_gib"]),
        context=_bytes(values["context_gib"]),
        communicator=_bytes(values["communicator_gib"]),
        pcie_communicator=_bytes(values.get("pcie_communicator_gib", values["communicator_gib"])),
        pipeline_communicator=_bytes(values["pipeline_communicator_gib"]),
        workspace_freed_for=tuple(values["workspace_freed_for"]),
        activations_inside_budget=values.get("activations_inside_budget", True),
        rules=tuple(EngineRule(e["rule"], e["effect"], e["source"], e.get("hint", ""), e.get("part")) for e in held["rules"]),
        formats=tuple(FormatSupport(e["name"], e.get("expanded_from"), e.get("amd", False), e["source"]) for e in held["formats"]),
        padding=tuple((entry["format"], _padding(entry)) for entry in held["padding"]),
        sources=tuple(dict.fromkeys(sources)),
        **{key: values[key] for key in _PLAIN},
    )


_PLAIN: Final = (
    "title",
    "source",
    "gpu_memory_utilization",
    "budget",
    "max_num_seqs",
    "max_num_batched_tokens",
    "large_gpu_except",
    "large_max_num_seqs",
    "large_max_num_batched_tokens",
    "block_size",
    "kv_cache",
    "vocabulary_padding",
    "sliding_window",
    "pipeline_split",
    "pipeline_override",
    "expert_parallel",
    "attention_dp",
    "vision",
    "absorbs_latent_up_projection",
    "sampler_rank",
    "activation_low",
    "activation_high",
    "graphs_inside_budget",
    "hidden_buffers",
    "pipeline_buffers",
    "expert_workspace",
    "position_table_bytes",
    "latent_products",
    "whole_prompts_up_to",
    "long_prompt_chunk",
    "compressed_attention_from",
    "rounds_allocations",
    "constants_source",
)


def _padding(entry: Mapping[str, Any]) -> KernelPadding:
    multiples = entry["expert_width"], entry["expert_inputs"]
    return KernelPadding(
        *multiples, entry["source"], entry.get("contracted", 1), entry.get("capability", ""), tuple(entry.get("unpadded", ()))
    )


def _bytes(gib: list[float]) -> LowExpectedHigh:
    low, expected, high = gib
    return low * GIB, expected * GIB, high * GIB
