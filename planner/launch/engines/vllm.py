"""`vllm serve` for every node of a replica.

A replica on one node is one command. Data-parallel ranks that each fit a node are spread with `--data-parallel-size-local`; one that does not is spread
with `--nnodes` and `--node-rank` over processes (`mp`), without Ray. Nodes but the first run `--headless`. `--max-num-seqs` and `--max-num-batched-tokens`
hold for one data-parallel rank.

Speculation is one JSON document; what a version speculates with is in the catalog. Ranks of adapters are those of a list.

DeepSeek-V4 wants pages of 256 tokens and its own tokenizer.

Source: vLLM 0.12 engine arguments, vLLM blog on DeepSeek-V4 (2026-04-24), docs/serving/data_parallel_deployment.md and docs/serving/parallelism_scaling.md; speculation:
config/speculative.py; adapters: config/lora.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from planner.catalog.collectives import version_key
from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting, option
from planner.launch.companions import Speculation, cannot, speculation_faults
from planner.launch.directory import refusal
from planner.launch.replicas import Replica

KV_CACHES = {"fp8": "fp8"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
# Engine arguments of vLLM 0.12; in 0.11 several nodes without Ray had to be data-parallel ranks.
NODES_WITHOUT_RAY = version_key("0.12")
SPECULATION_AS_JSON = version_key("0.8")
ONE_NAME_OF_PREDICTION = version_key("0.11")  # `mtp` for all models; `deepseek_mtp` before
ADAPTER_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


def faults(replica: Replica) -> list[Diagnostic]:
    """What vLLM cannot be told of a replica."""
    found = []
    where = f"deployments.{replica.deployment}.replicas.{replica.number}"
    if spread_over_processes(replica):
        if not replica.even:
            sizes = ", ".join(f"{share.node.name}: {len(share.gpus)}" for share in replica.shares)
            hint = "every node runs as many ranks with --nnodes: choose other degrees, or launch it with --for ray"
            found.append(refusal("UNEVEN_NODES", f"the ranks are not spread evenly ({sizes})", hint, where))
        if version_key(replica.engine.version) < NODES_WITHOUT_RAY:
            hint = "plan for vLLM 0.12 or later, or launch it with --for ray"
            found.append(refusal("VERSION_TOO_OLD", f"vLLM {replica.engine.version} has no --nnodes", hint, where))
    return [*found, *companion_faults(replica)]


def companion_faults(replica: Replica) -> Iterator[Diagnostic]:
    """Speculation and adapters that the planned version cannot be told of."""
    where = replica.path
    asked, version = replica.speculation, version_key(replica.engine.version)
    if asked is not None and version < SPECULATION_AS_JSON:
        yield cannot(f"vLLM {replica.engine.version} has no --speculative-config", "plan for vLLM 0.8 or later", where)
    yield from speculation_faults(asked, replica.engine, replica.shape, where)
    if replica.adapters is not None and replica.adapters.rank not in ADAPTER_RANKS:
        above = next((rank for rank in ADAPTER_RANKS if rank >= replica.adapters.rank), None)
        hint = (
            "adapters of a higher rank are not served" if above is None else f"write `rank: {above}` and solve again: it takes that memory"
        )
        yield cannot(f"vLLM has no --max-lora-rank {replica.adapters.rank}, only {', '.join(map(str, ADAPTER_RANKS))}", hint, where)


def spread_over_processes(replica: Replica) -> bool:
    """Whether one data-parallel rank is on several nodes."""
    inside = replica.shape.tp * replica.shape.pp
    return any(len(share.gpus) % inside for share in replica.shares)


def command(replica: Replica, number: int, meeting: Meeting, *, ray: bool = False, positional: bool = True) -> Command:
    """Command of share `number` of a replica.

    Parameters
    ----------
    replica
        The replica.
    number
        Which share of it, from 0.
    meeting
        Where its ranks meet.
    ray
        Ray spreads the ranks; only share 0 is started then.
    positional
        The model as the first word (`vllm serve MODEL`); else as `--model`.
    """
    options = [*settings(replica, head=number == 0, positional=positional)]
    if ray:
        options.append(option("--distributed-executor-backend", "ray"))
        if replica.shape.dp > 1:
            options.append(option("--data-parallel-backend", "ray"))
    elif len(replica.shares) > 1:
        options += _nodes(replica, number, meeting)
    environment = {}
    if own_partition(replica):
        environment["VLLM_PP_LAYER_PARTITION"] = ",".join(map(str, replica.shape.partition))
    return Command(("vllm", "serve", replica.checkpoint.model) if positional else (), tuple(options), environment)


def own_partition(replica: Replica) -> bool:
    """Whether the layers per stage are to be told: always where there are stages, since engines of another version split otherwise."""
    return replica.shape.pp > 1 and len(replica.shape.partition) == replica.shape.pp


def settings(replica: Replica, *, head: bool, positional: bool) -> list[tuple[str, ...]]:
    """Options that every node of a replica gets alike; those of the server for the first only."""
    shape, limits, checkpoint = replica.shape, replica.limits, replica.checkpoint
    found: list[tuple[str, ...]] = [] if positional else [option("--model", checkpoint.model)]
    found.append(option("--served-model-name", replica.deployment))
    if head and positional:
        found += [option("--host", "0.0.0.0"), option("--port", replica.port)]  # noqa: S104 - a server for others
    found.append(option("--tensor-parallel-size", shape.tp))
    if shape.pp > 1:
        found.append(option("--pipeline-parallel-size", shape.pp))
    if shape.dp > 1:
        found.append(option("--data-parallel-size", shape.dp))
    if shape.ep > 1:
        found.append(("--enable-expert-parallel",))
    if checkpoint.dtype is not None:
        found.append(option("--dtype", DTYPES[checkpoint.dtype]))
    if checkpoint.quantization is not None:
        found.append(option("--quantization", checkpoint.quantization))
    if checkpoint.kv_cache is not None:
        found.append(option("--kv-cache-dtype", KV_CACHES[checkpoint.kv_cache]))
    if checkpoint.compressed:
        found += [option("--block-size", 256), option("--tokenizer-mode", "deepseek_v4"), ("--trust-remote-code",)]
    if replica.speculation is not None:
        found.append(option("--speculative-config", json.dumps(_speculation(replica, replica.speculation))))
    if replica.adapters is not None:
        found += [("--enable-lora",), option("--max-loras", replica.adapters.slots), option("--max-lora-rank", replica.adapters.rank)]
    found += [
        option("--max-model-len", limits.max_model_len),
        option("--max-num-seqs", replica.sequences_per_rank),
        option("--max-num-batched-tokens", limits.max_batched_tokens),
        option("--gpu-memory-utilization", f"{limits.gpu_memory_utilization:g}"),
    ]
    return found


def _speculation(replica: Replica, asked: Speculation) -> dict[str, Any]:
    """Document of `--speculative-config`; n-grams are matched with the engine's own lengths."""
    if asked.method == "ngram":
        return {"method": "ngram", "num_speculative_tokens": asked.tokens}
    if asked.method == "own-layers":
        name = "mtp" if version_key(replica.engine.version) >= ONE_NAME_OF_PREDICTION else "deepseek_mtp"
        return {"method": name, "num_speculative_tokens": asked.tokens}
    ranks = 1 if asked.alone else replica.shape.tp
    method = "draft_model" if asked.method == "draft" else asked.method
    return {"method": method, "model": asked.model, "num_speculative_tokens": asked.tokens, "draft_tensor_parallel_size": ranks}


def _nodes(replica: Replica, number: int, meeting: Meeting) -> list[tuple[str, ...]]:
    """Options that spread a replica over its shares."""
    found: list[tuple[str, ...]] = []
    port = replica.rendezvous_port
    inside = replica.shape.tp * replica.shape.pp
    if spread_over_processes(replica):
        found += [
            option("--distributed-executor-backend", "mp"),
            option("--nnodes", len(replica.shares)),
            option("--node-rank", number),
            option("--master-addr", meeting.address),
            option("--master-port", port),
        ]
        if replica.shape.dp > 1:
            found += [option("--data-parallel-address", meeting.address), option("--data-parallel-rpc-port", port + 1)]
    else:
        share = replica.shares[number]
        found.append(option("--data-parallel-size-local", len(share.gpus) // inside))
        if number:
            found.append(option("--data-parallel-start-rank", share.first_rank // inside))
        found += [option("--data-parallel-address", meeting.address), option("--data-parallel-rpc-port", port)]
    if number:
        found.append(("--headless",))
    return found
