"""The same synthetic fleets as problem files: catalog GPUs and models, so that menu, placement and audit run on them too.

    python -m benchmarks.fleet_problem 10240 20 1 --out problem.json

Holes, leaves and the mix of GPU types are those of `fleets.fleet`; models, context lengths and targets are drawn anew, loads are log-normal shares of the
fleet. The figures of GPUs and models are the catalog's.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from benchmarks.fleets import GPUS, NODE_GPUS, Fleet, fleet

CATALOG = {"A100": "a100-sxm-80gb", "H100": "h100-sxm-80gb", "H200": "h200-sxm-141gb", "L40S": "l40s-48gb"}
MODELS = {
    # Output tokens/s that one GPU serves, to turn a share of the fleet into a load.
    "llama-3.1-8b": 2500.0,
    "deepseek-r1-distill-qwen-14b": 1300.0,
    "gemma-2-27b": 600.0,
    "llama-3.1-70b": 250.0,
    "llama-3.1-70b-fp8": 350.0,
    "llama-3.1-405b-fp8": 60.0,
    "gpt-oss-20b": 3000.0,
    "glm-4.5-air": 500.0,
}


def topology(where: Fleet) -> dict[str, Any]:
    """Topology document with one group of nodes per leaf and the GPUs that are in use."""
    nodes, taken = [], []
    first = 0
    while first < len(where.kind):
        leaf, kind = where.leaf[first], where.kind[first]
        size = sum(1 for other in where.leaf[first : first + 64] if other == leaf)
        name = f"{kind.lower()}-{leaf:05}"
        group = {
            "name": f"{name}-[00-{size - 1:02}]",
            "gpu": CATALOG[kind],
            "gpus": NODE_GPUS,
            "nics": {"count": 8 if kind != "L40S" else 1, "speed": "400Gb/s"},
            "leaf": f"leaf-{leaf:05}",
            "spine": f"spine-{leaf // 16:04}",
            "price": f"${GPUS[kind].cents * NODE_GPUS / 100:.2f}/h",
        }
        nodes.append({**group, "scale_up": "none"} if kind == "L40S" else group)
        for number in range(size):
            gone = sorted(set(range(NODE_GPUS)) - set(where.free[first + number]))
            taken += [f"{name}-{number:02}:{gpu}" for gpu in gone]
        first += size
    return {
        "name": f"fleet-{len(where.kind) * NODE_GPUS}",
        "nodes": nodes,
        "fabric": {"kind": "infiniband", "oversubscription": 1},
        "taken": taken,
    }


def problem(gpus: int, models: int, seed: int, filled: float = 1.0) -> dict[str, Any]:
    """Problem document whose loads are drawn for about `filled` of the free GPUs."""
    where = fleet(gpus, seed)
    draw = random.Random(seed * 15_485_863 + gpus * 31 + models)
    free = sum(where.room().values())
    weights = [draw.lognormvariate(0, 0.9) for _ in range(models)]
    deployments = []
    for number, weight in enumerate(weights):
        name = draw.choice(list(MODELS))
        output = draw.choice([128, 256, 512])
        rate = filled * free * weight / sum(weights) * MODELS[name] / output
        deployments.append(
            {
                "name": f"model-{number:03}",
                "model": name,
                "engine": {"name": "vllm"},
                "workload": {"prompt_tokens": draw.choice([512, 1024, 2048]), "output_tokens": output, "request_rate": f"{rate:.3f}/s"},
                "slo": {"tpot": draw.choice(["40ms", "60ms", "80ms"])},
            }
        )
    return {"name": f"fleet-{gpus}-{models}-{seed}", "topology": topology(where), "deployments": deployments, "objective": "cost"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpus", type=int)
    parser.add_argument("models", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.write_text(json.dumps(problem(arguments.gpus, arguments.models, arguments.seed)), encoding="utf-8")


if __name__ == "__main__":
    main()
