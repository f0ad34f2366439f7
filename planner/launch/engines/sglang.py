"""`python3 -m sglang.launch_server` for every node of a replica.

The tensor-parallel group of SGLang holds the data-parallel attention ranks too, and with them it divides `--max-running-requests` and
`--chunked-prefill-size` among the ranks, so both are given for all of them together. `--mem-fraction-static` is the share of the memory that is free at the start
which weights and KV cache take together.

Source: SGLang 0.5.5 server arguments (server_args.py: the chunk is divided by dp_size with enable_dp_attention; managers/tp_worker.py: so are the requests).
"""

from __future__ import annotations

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting, option
from planner.launch.directory import refusal
from planner.launch.replicas import Replica

KV_CACHES = {"fp8": "fp8_e4m3", "bf16": "bf16"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}


def faults(replica: Replica) -> list[Diagnostic]:
    """What SGLang cannot be told of a replica."""
    found = []
    where = f"deployments.{replica.deployment}.replicas.{replica.number}"
    if not replica.even:
        sizes = ", ".join(f"{share.node.name}: {len(share.gpus)}" for share in replica.shares)
        hint = "every node runs as many ranks with --nnodes: choose other degrees"
        found.append(refusal("UNEVEN_NODES", f"the ranks are not spread evenly ({sizes})", hint, where))
    return found


def command(
    replica: Replica, number: int, meeting: Meeting, *, program: tuple[str, ...] = ("python3", "-m", "sglang.launch_server")
) -> Command:
    """Command of share `number` of a replica; `program` is what takes the options (`dynamo.sglang` takes the same)."""
    options = settings(replica, server=program[-1] == "sglang.launch_server")
    if len(replica.shares) > 1 and meeting.address:
        options += [
            option("--dist-init-addr", f"{meeting.address}:{replica.rendezvous_port}"),
            option("--nnodes", len(replica.shares)),
            option("--node-rank", number),
        ]
    environment = {}
    if replica.shape.pp > 1 and len(replica.shape.partition) == replica.shape.pp:
        environment["SGLANG_PP_LAYER_PARTITION"] = ",".join(map(str, replica.shape.partition))
    return Command(program, tuple(options), environment)


def settings(replica: Replica, *, server: bool) -> list[tuple[str, ...]]:
    """Options that every node of a replica gets alike."""
    shape, limits, checkpoint = replica.shape, replica.limits, replica.checkpoint
    found: list[tuple[str, ...]] = [option("--model-path", checkpoint.model), option("--served-model-name", replica.deployment)]
    if server:
        found += [option("--host", "0.0.0.0"), option("--port", replica.port)]  # noqa: S104 - a server for others
    found.append(option("--tp-size", shape.tp * shape.dp))
    if shape.pp > 1:
        found.append(option("--pp-size", shape.pp))
    if shape.dp > 1:
        found += [option("--dp-size", shape.dp), ("--enable-dp-attention",)]
    if shape.ep > 1:
        found.append(option("--ep-size", shape.ep))
    if checkpoint.dtype is not None:
        found.append(option("--dtype", DTYPES[checkpoint.dtype]))
    if checkpoint.quantization is not None:
        found.append(option("--quantization", checkpoint.quantization))
    if checkpoint.kv_cache is not None:
        found.append(option("--kv-cache-dtype", KV_CACHES[checkpoint.kv_cache]))
    if checkpoint.compressed:
        found.append(("--trust-remote-code",))
    found += [
        option("--context-length", limits.max_model_len),
        option("--max-running-requests", replica.sequences_per_rank * shape.dp),
        option("--chunked-prefill-size", limits.max_batched_tokens * shape.dp),
        option("--mem-fraction-static", f"{limits.gpu_memory_utilization:g}"),
    ]
    return found
