"""Builds the question of one layout's memory for the cases that report it."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import engine
from planner.catalog.facts import Fact
from planner.catalog.gpus import Gpu, gpu
from planner.cost.memory import MemoryTable, memory
from planner.cost.memory_detail import one_shape
from planner.cost.setting import Precision, Setting
from planner.plan.shape import Degrees

GIB = 2.0**30


def card(name: str, gib: float | None = None) -> Gpu:
    """A GPU of the catalog, with the memory that the report's log printed [GiB]."""
    known = gpu(name)
    return known if gib is None else replace(known, memory=Fact(gib * GIB, "measured", "log of the report"))


def setting_of(
    architecture: ModelArchitecture,
    gpu_name: Gpu,
    engine_name: str = "vllm",
    utilization: float | None = None,
    prompt: int = 2048,
    output: int = 0,
    kv_cache: str | None = None,
    batched: int | None = None,
    model_len: int | None = None,
) -> Setting:
    """A setting with the engine's own defaults where the report says nothing."""
    facts = engine(engine_name)
    scheme = architecture.quantization
    weights = scheme.weights if scheme is not None else architecture.dtype
    return Setting(
        architecture=architecture,
        precision=Precision(weights, kv_cache or facts.kv_cache_dtype(architecture), architecture.dtype, scheme),
        engine=engine_name,
        gpu=gpu_name,
        paths=(),
        prompt_tokens=float(prompt),
        output_tokens=float(output),
        max_batched_tokens=batched or facts.batched_tokens(gpu_name, model_len or prompt + output),
        max_model_len=model_len or prompt + output,
        gpu_memory_utilization=facts.gpu_memory_utilization if utilization is None else utilization,
    )


def memory_of(setting: Setting, degrees: Degrees, batch: int = 1, partition: tuple[int, ...] | None = None) -> MemoryTable:
    """Memory of one layout."""
    return memory(setting, one_shape(degrees, batch), None if partition is None else [partition])


def room(table: MemoryTable) -> float:
    """Memory that the KV cache of the fullest rank may take [GiB]."""
    return float((table.budget - table.weights - table.other)[0]) / GIB
