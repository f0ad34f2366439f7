"""The LLM API configuration that a TensorRT-LLM command names: degrees, limits and formats that its command line does not say.

Source: NVIDIA/TensorRT-LLM llmapi/llm_args.py; what the file says wins over the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from planner.diagnostics import PlannerError
from planner.placement.engine_command import EngineCommand
from planner.placement.inquiry import Inquiry
from planner.placement.proposal import LARGEST_DEGREE, MOST_SEQUENCES, MOST_TOKENS, warning
from planner.problem.source_text import STDIN_NAME, read_source
from planner.problem.yaml_source import read_yaml

_WHOLE: Final[Mapping[str, tuple[str, int]]] = {
    "tensor_parallel_size": ("tp", LARGEST_DEGREE),
    "pipeline_parallel_size": ("pp", LARGEST_DEGREE),
    "moe_expert_parallel_size": ("ep", LARGEST_DEGREE),
    "gpus_per_node": ("gpus_per_node", LARGEST_DEGREE),
    "max_batch_size": ("max_num_seqs", MOST_SEQUENCES),
    "max_num_tokens": ("max_batched_tokens", MOST_TOKENS),
    "max_seq_len": ("max_model_len", MOST_TOKENS),
}


def read_configuration(request: Inquiry, command: EngineCommand) -> None:
    """Take what the configuration of a command says; a warning where it cannot be read."""
    named = command.options.text("config_file")
    if named is None or command.engine != "tensorrt-llm":
        return
    place = command.options.places["config_file"]
    data = _mapping(request, named)
    if data is None:
        hint = "put it beside the file that names it; its degrees and limits are not judged without it"
        command.faults.append(warning("ENGINE_CONFIG_NOT_READ", f"the configuration {named[:80]} is not read", hint, place))
        return
    take_configuration(command, data)


def take_configuration(command: EngineCommand, data: Mapping[str, Any]) -> None:
    """Take degrees, limits and formats from the data of a configuration."""
    options = command.options
    for key, (setting, most) in _WHOLE.items():
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            options.values[setting] = value
    if isinstance(data.get("enable_attention_dp"), bool):
        options.values["attention_dp"] = data["enable_attention_dp"]
    layers = data.get("pp_partition")
    if isinstance(layers, list) and layers and all(isinstance(count, int) and 0 < count <= MOST_TOKENS for count in layers):
        command.partition = tuple(layers)
    cache = data.get("kv_cache_config")
    if isinstance(cache, dict) and isinstance(cache.get("dtype"), str):
        options.values["kv_cache"] = cache["dtype"]
    if isinstance(data.get("speculative_config"), dict):
        options.values["speculative_config"] = json.dumps(data["speculative_config"], default=str)
    adapters = data.get("lora_config")
    if isinstance(adapters, dict):
        options.values["lora"] = True
        for key, setting in (("max_loras", "lora_slots"), ("max_lora_rank", "lora_rank")):
            if isinstance(adapters.get(key), int) and not isinstance(adapters[key], bool) and 1 <= adapters[key] <= LARGEST_DEGREE:
                options.values[setting] = adapters[key]
    if isinstance(data.get("dtype"), str):
        options.values["dtype"] = data["dtype"]


def _mapping(request: Inquiry, named: str) -> Mapping[str, Any] | None:
    """Keys of the configuration file beside the placement; None where there is none or it is no mapping."""
    if request.file in {"", STDIN_NAME} or "\x00" in named:
        return None
    path = PurePosixPath(named)
    if ".." in path.parts:
        return None
    beside = path if path.is_absolute() else PurePosixPath(request.file).parent / path
    try:
        data = read_yaml(read_source(str(beside)), str(beside)).data
    except PlannerError:
        return None
    return data if isinstance(data, dict) else None
