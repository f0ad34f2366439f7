"""Plans to launch: what the shipped problems answer, written as ranks on GPUs so that no solver is asked, and layouts they do not have."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from planner.placement.judge import judge
from planner.placement.kinds import read_placement_text
from planner.plan.document import PlanDocument
from planner.problem.load import load_problem
from planner.problem.loaded import LoadedProblem

ROOT = Path(__file__).parents[2]

# What `planner solve` answers for each shipped problem that has a plan.
SHIPPED = {
    "two_node_h100": 'tp: 8\nbatch: 32\nranks: ["h100-01:[0-7]"]\n',
    "405b_bf16_four_nodes": 'tp: 8\npp: 2\npartition: [65, 61]\nbatch: 16\nranks: ["h100-01:[0-7]", "h100-02:[0-7]"]\n',
    "one_node_70b_efficiency": 'tp: 2\nbatch: 64\nranks: ["h100-01:[0-1]"]\n',
    "six_a6000": 'tp: 4\nbatch: 1\nranks: ["workstation:[0-3]"]\n',
    "deepseek_v3_h200": 'tp: 2\nep: 8\ndp: 4\nbatch: 128\nranks: ["h200-01:[0-7]"]\n',
    "nvl72_rack": 'tp: 1\nep: 8\ndp: 8\nbatch: 512\nranks: ["rack-01-[01-02]:[0-3]"]\n',
    "four_gpu_nodes": (
        "deployments:\n"
        '  - {name: long-context, tp: 4, batch: 24, ranks: ["a100-1:[0-3]"]}\n'
        '  - {name: autocomplete, tp: 4, batch: 96, ranks: ["a100-2:[0-3]"]}\n'
    ),
    "mixed_fleet": (
        "deployments:\n"
        '  - {name: chat, tp: 4, batch: 128, weights: fp8, ranks: ["h100-03:[2-5]"]}\n'
        '  - {name: code, tp: 2, batch: 64, ranks: ["h100-03:[6-7]"]}\n'
        '  - {name: tags, tp: 1, batch: 80, ranks: ["l40s-01:[0]"]}\n'
    ),
}

# Layouts that the shipped problems do not answer with: (problem, changes, ranks).
OTHERS = {
    "several-nodes": ("405b_bf16_four_nodes", (), 'tp: 4\npp: 4\nbatch: 16\nranks: ["h100-[01-04]:[0-3]"]\n'),
    "replicas-on-a-node": (
        "one_node_70b_efficiency",
        (),
        'tp: 2\nbatch: 64\nreplicas: [["h100-01:[4-5]"], ["h100-01:[1,0]"], ["h100-01:[2-3]"], ["h100-01:[6-7]"]]\n',
    ),
    "experts-over-nodes": (
        "deepseek_v3_h200",
        ("deployments.reasoning.engine=vllm",),
        'tp: 1\nep: 16\ndp: 16\nbatch: 128\nranks: ["h200-[01-02]:[0-7]"]\n',
    ),
    "experts-in-stages": (
        "deepseek_v3_h200",
        ("deployments.reasoning.engine=vllm",),
        'tp: 4\npp: 2\nep: 8\ndp: 2\nbatch: 128\nranks: ["h200-[01-02]:[0-7]"]\n',
    ),
    "attention-over-nodes": ("deepseek_v3_h200", (), 'tp: 2\nep: 16\ndp: 8\nbatch: 128\nranks: ["h200-[01-02]:[0-7]"]\n'),
    "tensor-over-trays": (
        "nvl72_rack",
        ("deployments.reasoning.engine=vllm",),
        'tp: 8\nep: 8\nbatch: 64\nranks: ["rack-01-[03-04]:[0-3]"]\n',
    ),
    "one-card": ("nvl72_rack", (), 'tp: 1\nep: 4\ndp: 4\nbatch: 64\nranks: ["rack-01-05:[0-3]"]\n'),
    "stages-of-sglang": (
        "405b_bf16_four_nodes",
        ("deployments.chat.engine=sglang",),
        'tp: 8\npp: 3\npartition: [43, 42, 41]\nbatch: 16\nranks: ["h100-[01-03]:[0-7]"]\n',
    ),
}


@cache
def loaded(name: str) -> LoadedProblem:
    """Problem of a shipped plan or of one of the others."""
    problem, changes, _ = OTHERS.get(name, (name, (), ""))
    return load_problem(str(ROOT / "problems" / f"{problem}.yaml"), changes)


@cache
def plan_of(name: str) -> PlanDocument:
    """Plan document of those ranks, with the figures predicted for them."""
    text = OTHERS[name][2] if name in OTHERS else SHIPPED[name]
    return judge(loaded(name), read_placement_text(text, "ranks.yaml", loaded(name))).plan


def placed(plan: PlanDocument) -> dict[str, list[tuple[object, ...]]]:
    """Replicas of every deployment: degrees, formats, layers per stage, and the GPU of every rank."""
    return {
        deployment.name: [
            (
                *(replica.shape.tp, replica.shape.pp, replica.shape.ep, replica.shape.dp),
                replica.shape.weights_dtype,
                replica.shape.kv_dtype,
                replica.shape.partition,
                *sorted((rank.stage, rank.dp_rank, rank.tp_rank, rank.node, rank.gpu) for rank in replica.ranks),
            )
            for replica in deployment.replicas
        ]
        for deployment in plan.deployments
    }
