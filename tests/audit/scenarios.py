"""Questions with a right answer each: dense, MoE with expert parallelism, MLA, pipelines across nodes, pairs, mixed fleets, NVL72."""

from __future__ import annotations

from functools import cache

from planner.plan.shape import Degrees
from tests.audit.models import DEEPSEEK_V3, GPT_OSS_20B, HYBRID, LLAMA_8B, LLAMA_70B, QWEN_4B, QWEN_235B
from tests.audit.plans import Case, Scenario, Wish, build

INFINIBAND = {"count": 8, "speed": "400Gb/s"}


def hgx(name, gpu="h100-sxm-80gb", leaf="leaf-1", **more):
    """HGX nodes of eight GPUs with one interface each."""
    return {"name": name, "gpu": gpu, "gpus": 8, "scale_up": "nvswitch", "nics": INFINIBAND, "leaf": leaf, "price": "$24/h", **more}


def cluster(name, *nodes, **more):
    """Nodes on one InfiniBand fabric."""
    return {"name": name, "nodes": list(nodes), "fabric": {"kind": "infiniband", "oversubscription": 1}, **more}


def deployment(name, model, concurrency=None, prompt=1024, output=256, **more):
    """A deployment with a closed loop, or with the workload given."""
    workload = {"prompt_tokens": prompt, "output_tokens": output}
    if concurrency is not None:
        workload["concurrency"] = concurrency
    return {"name": name, "model": model, "engine": {"name": "vllm"}, "workload": {**workload, **more.pop("load", {})}, **more}


SCENARIOS = (
    Scenario(
        "dense-one-domain",
        {
            "deployments": [deployment("chat", "llama-70b", 64, slo={"tpot": "200ms", "ttft": "60s"}, replicas={"min": 1, "max": 3})],
            "budget": {"per_hour": "$30/h", "gpus": {"h100-sxm-80gb": 8}},
        },
        cluster("two-nodes", hgx("h100-[01-02]"), taken=["h100-02:6"], failed=["h100-02:7"]),
        (LLAMA_70B,),
        (Wish(0, 0, Degrees(4), 32, "domain", replicas=2),),
        ("slo",),
    ),
    Scenario(
        "dense-pipeline-across-nodes",
        {
            "deployments": [deployment("chat", "llama-70b", 16, require_nvlink=True, parallelism={"tp": [4, 8], "pp": 2})],
            "objective": "gpus",
        },
        cluster("two-nodes", hgx("h100-[01-02]"), taken=["h100-[01-02]:[0-3]"]),
        (LLAMA_70B,),
        (Wish(0, 0, Degrees(4, 2), 16, "leaf"),),
    ),
    Scenario(
        "moe-expert-parallel",
        {"deployments": [deployment("reasoning", "qwen-235b", 64, headroom="10%")], "objective": "latency"},
        cluster("one-node", hgx("h200-1", gpu="h200-sxm-141gb", price="$64/h"), hgx("h200-2", gpu="h200-sxm-141gb", price="$64/h")),
        (QWEN_235B,),
        (Wish(0, 0, Degrees(8, 1, 8, 1), 71, "domain"),),
    ),
    Scenario(
        "latent-attention-data-parallel",
        {"deployments": [{**deployment("reasoning", "deepseek-v3-like", 256), "engine": {"name": "sglang"}}]},
        cluster("four-nodes", hgx("h200-[1-4]", gpu="h200-sxm-141gb", price="$64/h")),
        (DEEPSEEK_V3,),
        (Wish(0, 0, Degrees(1, 1, 16, 16), 128, "leaf", stage_scopes=2), Wish(0, 0, Degrees(4, 1, 8, 2), 128, "domain")),
    ),
    Scenario(
        "bridged-pairs",
        {"deployments": [deployment("desk", "llama-8b", 24), deployment("tools", "qwen-4b", 8)], "objective": "cost"},
        {
            "name": "workstations",
            "currency": "EUR",
            "nodes": [
                {
                    "name": "ws-[1-2]",
                    "gpu": "a6000-48gb",
                    "gpus": 4,
                    "scale_up": "nvlink-pairs",
                    "pairs": [[0, 1], [2, 3]],
                    "gpu_price": "0.8",
                    "nics": {"count": 1, "speed": "100Gb/s"},
                    "leaf": "leaf-1",
                }
            ],
            "fabric": {"kind": "ethernet"},
        },
        (LLAMA_8B, QWEN_4B),
        (
            Wish(0, 0, Degrees(2), 8, "pair"),
            Wish(0, 0, Degrees(4), 16, "host"),
            Wish(1, 0, Degrees(1), 8, "gpu"),
        ),
    ),
    Scenario(
        "mixed-fleet",
        {
            "deployments": [
                deployment("chat", "llama-70b", 40, precision={"weights": "any"}),
                deployment("code", "llama-8b", load={"request_rate": "2/s"}),
                {**deployment("open", "gpt-oss-like", 64), "memory": {"gpu_memory_utilization": "85%", "max_batched_tokens": 4096}},
            ],
        },
        cluster(
            "mixed",
            hgx("h100-[1-2]"),
            hgx("a100-[1-2]", gpu="a100-sxm-80gb", leaf="leaf-2", price="$16/h", billing="node"),
            {"name": "l40s-[1-2]", "gpu": "l40s-48gb", "gpus": 4, "nics": {"count": 1, "speed": "100Gb/s"}, "leaf": "leaf-2"},
            taken=["h100-1:[0-1]", "a100-2:5"],
            failed=["l40s-2:3"],
        ),
        (LLAMA_70B, LLAMA_8B, GPT_OSS_20B),
        (
            Wish(0, 0, Degrees(4), 24, "domain", weights="bf16"),
            Wish(0, 0, Degrees(2), 16, "domain", weights="fp8"),
            Wish(1, 1, Degrees(1), 8, "gpu", replicas=3),
            Wish(1, 2, Degrees(2), 8, "host"),
            Wish(2, 0, Degrees(1), 64, "gpu"),
        ),
        ("node-billing",),
    ),
    Scenario(
        "nvl72-rack",
        {"deployments": [{**deployment("reasoning", "deepseek-v3-like", 512), "engine": {"name": "tensorrt-llm"}}]},
        cluster(
            "rack",
            {
                "name": "tray-[01-18]",
                "gpu": "gb200-186gb",
                "gpus": 4,
                "nvlink_domain": "rack-1",
                "nics": {"count": 4, "speed": "400Gb/s"},
                "leaf": "leaf-1",
            },
            failed=["tray-03:2"],
        ),
        (DEEPSEEK_V3,),
        (Wish(0, 0, Degrees(1, 1, 32, 32), 512, "domain"), Wish(0, 0, Degrees(8), 16, "domain")),
    ),
    Scenario(
        "throughput-of-a-hybrid",
        {"deployments": [deployment("summaries", "hybrid-8b", 4096, prompt=4096)], "objective": "throughput"},
        cluster("one-node", hgx("h100-1")),
        (HYBRID,),
        (Wish(0, 0, Degrees(2), 128, "domain", replicas=2), Wish(0, 0, Degrees(4, 1), 128, "domain")),
    ),
)


@cache
def cases() -> tuple[Case, ...]:
    """Every scenario with its plan."""
    return tuple(build(scenario) for scenario in SCENARIOS)
