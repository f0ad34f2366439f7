"""What is launched is what was planned: the files of every target, read back, put the same ranks on the same GPUs."""

from __future__ import annotations

import pytest

from planner.answer.answering import answer
from planner.diagnostics import PlannerError, errors
from planner.launch.directory import LaunchDirectory
from planner.launch.launching import TARGETS, launch
from planner.launch.writing import write_directory
from planner.placement.judge import judge
from planner.placement.kinds import read_placement
from tests.launch.plans import OTHERS, ROOT, SHIPPED, loaded, placed, plan_of

# What a launch of a part of the plan (the other deployments run on another engine) cannot but lack.
OF_A_PART = {"LOAD_NOT_COVERED", "DEPLOYMENT_MISSING", "REPLICAS_TOO_FEW"}
# Read back by default: one node, MPI ranks, stages over several nodes with experts; the rest in the thorough run.
SAMPLE = ("two_node_h100", "nvl72_rack")
OTHER_SAMPLE = ("experts-in-stages",)
READABLE = [name for name, target in TARGETS.items() if target.readable is not None]


def files_of(directory: LaunchDirectory, folder) -> list[str]:
    """Files that name every replica: the target's own, and the ranks."""
    written = write_directory(directory, folder)
    names = {path.name: path for path in written}
    jobs = [path for path in written if path.suffix == ".sbatch"]
    if jobs:
        together = folder / "jobs.sh"
        together.write_text("".join(path.read_text() for path in jobs))
        own = together
    else:
        readable = TARGETS[directory.target].readable
        own = None if readable is None else names[readable]
    return [str(path) for path in (own, names["placement.yaml"]) if path is not None]


def launched(plan, target, refusals):
    """Files of a target; None where it refuses the plan, with one of these codes."""
    found = set()
    try:
        return launch(plan, target)
    except PlannerError as error:
        found = {item.code for item in error.diagnostics}
    assert found <= refusals
    return None


def check(name, target, plan, problem, folder):
    """Launch, read every file back and compare; a target that refuses says so with a code."""
    directory = launched(plan, target, {"ENGINE_NOT_OF_TARGET", "TARGET_CANNOT"})
    if directory is None:
        return False
    for path in files_of(directory, folder):
        judgement = judge(problem, read_placement(path, problem))
        read, wanted = placed(judgement.plan), placed(plan)
        own = {replica for replica in wanted if any(f"{replica}-" in file.text for file in directory.files)}
        assert read
        assert {key: wanted[key] for key in read} == read, (name, target, path)
        assert set(read) == own
        wrong = {item.code for item in errors(judgement.diagnostics)}
        assert wrong <= (OF_A_PART if set(read) < set(wanted) else frozenset()), (name, target, path, judgement.diagnostics)
    return True


STARTED_BY = {
    "two_node_h100": {"vllm", "kubernetes", "leader-worker-set", "dynamo", "slurm", "ray"},
    "405b_bf16_four_nodes": {"vllm", "kubernetes", "leader-worker-set", "dynamo", "slurm", "ray"},
    "one_node_70b_efficiency": {"vllm", "kubernetes", "leader-worker-set", "dynamo", "slurm", "ray"},
    "six_a6000": {"vllm", "kubernetes", "leader-worker-set", "dynamo", "slurm", "ray"},
    "four_gpu_nodes": {"vllm", "kubernetes", "leader-worker-set", "dynamo", "slurm", "ray"},
    "deepseek_v3_h200": {"sglang", "kubernetes", "leader-worker-set", "dynamo", "slurm"},
    "nvl72_rack": {"tensorrt-llm", "dynamo", "slurm"},
    "mixed_fleet": {"vllm", "sglang", "kubernetes", "leader-worker-set", "dynamo", "slurm", "ray"},
}


def sampled(names, sample):
    """Names as parameters, those outside the sample for the thorough run."""
    assert set(sample) <= set(names)
    return [pytest.param(name, marks=() if name in sample else pytest.mark.thorough) for name in names]


@pytest.mark.parametrize("name", sampled(SHIPPED, SAMPLE))
def test_shipped_plans_come_back_from_every_target(name, tmp_path):
    plan, problem = plan_of(name), loaded(name)
    done = {target for target in TARGETS if check(name, target, plan, problem, tmp_path / target)}
    assert done == STARTED_BY[name]


@pytest.mark.parametrize("name", sampled(OTHERS, OTHER_SAMPLE))
def test_other_layouts_come_back(name, tmp_path):
    """Layouts beside those of the shipped problems: their own faults (memory, targets) stay as they were, the ranks come back."""
    plan, problem = plan_of(name), loaded(name)
    started = 0
    for target in READABLE:
        directory = launched(plan, target, {"ENGINE_NOT_OF_TARGET", "TARGET_CANNOT", "UNEVEN_NODES"})
        if directory is None:
            continue
        started += 1
        for path in files_of(directory, tmp_path / target):
            assert placed(judge(problem, read_placement(path, problem)).plan) == placed(plan), (name, target, path)
    assert started >= 2


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHIPPED)
def test_solved_plans_come_back_from_every_target(name, tmp_path):
    """The same with the plans that the solver gives."""
    solved = answer(str(ROOT / "problems" / f"{name}.yaml"))
    done = {target for target in TARGETS if check(name, target, solved.plan, solved.loaded, tmp_path / target)}
    assert done == STARTED_BY[name]
    assert placed(solved.plan).keys() == placed(plan_of(name)).keys()


def test_slurm_hostfiles_name_the_host_of_every_rank(tmp_path):
    plan, problem = plan_of("nvl72_rack"), loaded("nvl72_rack")
    write_directory(launch(plan, "slurm"), tmp_path)
    judgement = judge(problem, read_placement(str(tmp_path / "reasoning-0.hosts"), problem))
    assert placed(judgement.plan) == placed(plan)
