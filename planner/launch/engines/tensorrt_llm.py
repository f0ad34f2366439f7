"""`trtllm-serve` with its LLM API configuration, one MPI rank a GPU.

`max_batch_size` and `max_num_tokens` hold for one attention data-parallel rank. `free_gpu_memory_fraction` is the share of what weights and buffers leave
free, so the plan's budget is turned into it:

    fraction = (budget - weights - other) / (memory - weights - other)

Speculation and adapters are parts of the configuration. A draft model and n-grams propose outside the model's own graph, without the overlap scheduler; the matrices
that take adapters are named one by one.

Source: NVIDIA/TensorRT-LLM docs/source/features/speculative-decoding.md and lora.md; commands/serve.py and llmapi/llm_args.py (KvCacheConfig, enable_attention_dp, pp_partition), examples/llm-api/llm_mgmn_trtllm_serve.sh.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, option
from planner.launch.companions import Speculation, cannot, speculation_faults
from planner.launch.directory import refusal
from planner.launch.replicas import Replica

KV_CACHES = {"fp8": "fp8"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
DECODING = {"draft": "DraftTarget", "eagle3": "Eagle", "own-layers": "MTP", "ngram": "NGram"}
ADAPTED = ("attn_q", "attn_k", "attn_v", "attn_dense", "mlp_h_to_4h", "mlp_gate", "mlp_4h_to_h")
LAUNCHER = "trtllm-llmapi-launch"
"""Runs in every MPI rank of a replica on several nodes; rank 0 serves, the others work."""


def faults(replica: Replica) -> list[Diagnostic]:
    """What TensorRT-LLM cannot be told of a replica."""
    found = [*option_faults(replica)]
    if not replica.even or len(replica.nodes) != len(replica.shares):
        sizes = ", ".join(f"{share.node.name}: {len(share.gpus)}" for share in replica.shares)
        hint = "every node runs as many ranks: choose other degrees"
        found.append(refusal("UNEVEN_NODES", f"the ranks are not spread evenly ({sizes})", hint, replica.path))
    return found


def option_faults(replica: Replica) -> Iterator[Diagnostic]:
    """Degrees and speculation that its options have no words for, however it is started."""
    shape, asked, where = replica.shape, replica.speculation, replica.path
    if shape.dp > 1 and shape.tp > 1:
        hint = "plan for tp 1 with dp, or for sglang or vllm"
        message = f"attention data parallelism puts every rank on its own requests; TP {shape.tp} x DP {shape.dp} mixes both"
        yield refusal("ATTENTION_DP_LAYOUT", message, hint, where)
    if asked is not None and asked.method not in DECODING:
        yield cannot(f"the PyTorch backend has no EAGLE heads but EAGLE 3, which {asked.model} is not", "name an EAGLE 3 head", where)
    yield from speculation_faults(asked, replica.engine, shape, where)


def command(replica: Replica, config: str) -> Command:
    """Command of a replica, the same on every rank; `config` is the path of its LLM API configuration."""
    shape, limits = replica.shape, replica.limits
    found: list[tuple[str, ...]] = [
        option("--backend", "pytorch"),
        option("--host", "0.0.0.0"),  # noqa: S104 - a server for others
        option("--port", replica.port),
        option("--tp_size", shape.tp * shape.dp),
    ]
    if shape.pp > 1:
        found.append(option("--pp_size", shape.pp))
    if shape.ep > 1:
        found.append(option("--ep_size", shape.ep))
    found += [
        option("--gpus_per_node", len(replica.shares[0].gpus)),
        option("--max_batch_size", replica.sequences_per_rank),
        option("--max_num_tokens", limits.max_batched_tokens),
        option("--max_seq_len", limits.max_model_len),
        option("--extra_llm_api_options", config),
    ]
    return Command(("trtllm-serve", replica.checkpoint.model), tuple(found))


def configuration(replica: Replica) -> dict[str, Any]:
    """LLM API options that the command line has no flag for."""
    found: dict[str, Any] = {"enable_chunked_prefill": True}
    if replica.checkpoint.dtype is not None:
        found["dtype"] = DTYPES[replica.checkpoint.dtype]
    if replica.shape.dp > 1:
        found["enable_attention_dp"] = True
    if replica.shape.pp > 1 and len(replica.shape.partition) == replica.shape.pp:
        found["pp_partition"] = list(replica.shape.partition)
    kv_cache: dict[str, Any] = {"free_gpu_memory_fraction": free_fraction(replica)}
    if replica.checkpoint.kv_cache is not None:
        kv_cache["dtype"] = KV_CACHES[replica.checkpoint.kv_cache]
    found["kv_cache_config"] = kv_cache
    if replica.speculation is not None:
        found |= _speculation(replica.speculation)
    if replica.adapters is not None:
        slots, rank = replica.adapters.slots, replica.adapters.rank
        found["lora_config"] = {"max_lora_rank": rank, "max_loras": slots, "max_cpu_loras": slots, "lora_target_modules": list(ADAPTED)}
    return found


def _speculation(asked: Speculation) -> dict[str, Any]:
    """Options of speculative decoding."""
    found: dict[str, Any] = {"decoding_type": DECODING[asked.method], "max_draft_len": asked.tokens}
    if asked.method == "own-layers":
        found["num_nextn_predict_layers"] = asked.tokens
    if asked.model:
        found["speculative_model_dir"] = asked.model
    outside = {"disable_overlap_scheduler": True} if asked.method in {"draft", "ngram"} else {}
    return {"speculative_config": found, **outside}


def free_fraction(replica: Replica) -> float:
    """Share of the memory free after loading that the KV cache may take, so that it takes what the plan counts with; rounded down to hundredths."""
    memory, share = replica.memory, replica.limits.gpu_memory_utilization
    held = memory.weights_gib + memory.other_gib
    free = memory.budget_gib / share - held
    wanted = memory.budget_gib - held
    if not (math.isfinite(free) and math.isfinite(wanted)) or free <= 0 or wanted <= 0:
        return 0.01
    return max(math.floor(100.0 * min(wanted / free, 1.0) + 1e-9) / 100.0, 0.01)
