"""`python3 -m sglang.launch_server` for every node of a replica.

The tensor-parallel group of SGLang holds the data-parallel attention ranks too, and with them it divides `--max-running-requests` and
`--chunked-prefill-size` among the ranks, so both are given for all of them together. `--mem-fraction-static` is the share of the memory that is free at the start
which weights and KV cache take together.

Proposals are one chain: a tree of one branch, whose k tokens are verified with the one before them, k + 1 in all. A draft model is cut like the model it serves; it
and n-grams run without data-parallel attention, and nothing speculates over stages. Room for adapters is made on every matrix that takes one.

Source: SGLang 0.5.5 server arguments (server_args.py: the chunk is divided by dp_size with enable_dp_attention, _handle_speculative_decoding, check_server_args,
check_lora_server_args; managers/tp_worker.py: so are the requests; speculative/cpp_ngram/param.h: the token before the proposals is one of them).
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.diagnostics import Diagnostic
from planner.launch.commands import Command, Meeting, option
from planner.launch.companions import Speculation, speculation_faults
from planner.launch.directory import refusal
from planner.launch.replicas import Replica

KV_CACHES = {"fp8": "fp8_e4m3", "bf16": "bf16"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
ALGORITHMS = {"draft": "STANDALONE", "eagle": "EAGLE", "eagle3": "EAGLE3", "own-layers": "EAGLE", "ngram": "NGRAM"}
# The longest run of tokens that n-grams are kept of, unless it is set.
NGRAM_BRANCH = 18


def faults(replica: Replica) -> list[Diagnostic]:
    """What SGLang cannot be told of a replica."""
    found = []
    where = f"deployments.{replica.deployment}.replicas.{replica.number}"
    if not replica.even:
        sizes = ", ".join(f"{share.node.name}: {len(share.gpus)}" for share in replica.shares)
        hint = "every node runs as many ranks with --nnodes: choose other degrees"
        found.append(refusal("UNEVEN_NODES", f"the ranks are not spread evenly ({sizes})", hint, where))
    return [*found, *companion_faults(replica)]


def companion_faults(replica: Replica) -> Iterator[Diagnostic]:
    """Speculation that SGLang cannot be told of beside the degrees of a replica."""
    return speculation_faults(replica.speculation, replica.engine, replica.shape, replica.path)


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
    if replica.speculation is not None:
        found += _speculation(replica, replica.speculation)
    if replica.adapters is not None:
        slots, rank = option("--max-loras-per-batch", replica.adapters.slots), option("--max-lora-rank", replica.adapters.rank)
        found += [("--enable-lora",), slots, rank, option("--lora-target-modules", "all")]
    found += [
        option("--context-length", limits.max_model_len),
        option("--max-running-requests", replica.sequences_per_rank * shape.dp),
        option("--chunked-prefill-size", limits.max_batched_tokens * shape.dp),
        option("--mem-fraction-static", f"{limits.gpu_memory_utilization:g}"),
    ]
    return found


def _speculation(replica: Replica, asked: Speculation) -> list[tuple[str, ...]]:
    """Options of one chain of proposals."""
    found = [option("--speculative-algorithm", ALGORITHMS[asked.method]), option("--speculative-num-draft-tokens", asked.tokens + 1)]
    if asked.method == "ngram":
        found.append(option("--speculative-ngram-max-bfs-breadth", 1))
        if asked.tokens >= NGRAM_BRANCH:
            found.append(option("--speculative-ngram-branch-length", asked.tokens + 1))
        return found
    weights = asked.model or replica.checkpoint.model
    steps = option("--speculative-num-steps", asked.tokens)
    return [*found, steps, option("--speculative-eagle-topk", 1), option("--speculative-draft-model-path", weights)]
