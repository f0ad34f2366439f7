"""`vllm serve` for every node of a replica.

A replica on one node is one command. Data-parallel ranks that each fit a node are spread with `--data-parallel-size-local`; one that does not is spread
with `--nnodes` and `--node-rank` over processes (`mp`), without Ray. Nodes but the first run `--headless`. `--max-num-seqs` and `--max-num-batched-tokens`
hold for one data-parallel rank.

DeepSeek-V4 wants pages of 256 tokens and its own tokenizer.

Source: vLLM 0.12 engine arguments, vLLM blog on DeepSeek-V4 (2026-04-24), docs/serving/data_parallel_deployment.md and docs/serving/parallelism_scaling.md.
"""

from __future__ import annotations

from planner.catalog.collectives import version_key
from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting, option
from planner.launch.directory import refusal
from planner.launch.replicas import Replica

KV_CACHES = {"fp8": "fp8"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
# Engine arguments of vLLM 0.12; in 0.11 several nodes without Ray had to be data-parallel ranks.
NODES_WITHOUT_RAY = version_key("0.12")


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
    return found


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
    found += [
        option("--max-model-len", limits.max_model_len),
        option("--max-num-seqs", replica.sequences_per_rank),
        option("--max-num-batched-tokens", limits.max_batched_tokens),
        option("--gpu-memory-utilization", f"{limits.gpu_memory_utilization:g}"),
    ]
    return found


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
