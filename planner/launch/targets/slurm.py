"""Target `slurm`: one batch job for replicas that share nodes, a step for every node of a replica; MPI ranks of TensorRT-LLM by a hostfile.

Slurm chooses which GPUs of a node a job gets. A job that takes all GPUs which the topology says are free gets just those, and its steps show each engine its
own; one that takes fewer is said to (GPU_INDEX_NOT_PINNED). Devices are counted within the job (ConstrainDevices), so numbers in CUDA_VISIBLE_DEVICES are
positions among the job's GPUs.

Source: Slurm documentation of sbatch and srun (--nodelist, --gres, --overlap, --distribution=arbitrary with SLURM_HOSTFILE, --mpi=pmix);
NVIDIA/TensorRT-LLM examples/llm-api/llm_mgmn_trtllm_serve.sh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.diagnostics import Diagnostic
from planner.launch.commands import VISIBLE_DEVICES, Command, Meeting, shell_lines
from planner.launch.directory import LaunchFile, LaunchOptions, caution
from planner.launch.engines import sglang, tensorrt_llm, vllm
from planner.launch.guide import Step
from planner.launch.node_script import WAIT_FOR_ANY
from planner.launch.pods import gpu_words
from planner.launch.replicas import Replica, Share
from planner.launch.targets.tensorrt_llm import configurations
from planner.plan.serving import NodeDocument

ENGINES = ("vllm", "sglang", "tensorrt-llm")
ONE_JOB = "launch.sbatch"
SUBMIT = "submit.sh"


@dataclass(frozen=True)
class Job:
    """Replicas that share nodes, and what the job takes of each node: `gpus` maps a node to its GPUs in the job, in order."""

    replicas: tuple[Replica, ...]
    nodes: tuple[NodeDocument, ...]
    gpus: dict[str, tuple[int, ...]]

    @property
    def name(self) -> str:
        """Name of the job: that of its first replica."""
        return self.replicas[0].name

    def whole(self, node: NodeDocument) -> bool:
        """Whether the job takes every GPU of a node that is free."""
        return set(self.gpus[node.name]) == set(range(node.gpus)) - set(node.taken)

    def numbered(self, node: NodeDocument) -> bool:
        """Whether the numbers of a node's GPUs in the job are those of the node."""
        return self.gpus[node.name] == tuple(range(len(self.gpus[node.name])))


def jobs_of(replicas: Sequence[Replica]) -> list[Job]:
    """Jobs, in the order of their first replicas: replicas on a node in common are in one job."""
    group: dict[str, int] = {}
    members: dict[int, list[Replica]] = {}
    for number, replica in enumerate(replicas):
        joined = sorted({group[node] for node in replica.nodes if node in group})
        into = joined[0] if joined else number
        moved = [one for other in joined[1:] for one in members.pop(other)]
        members.setdefault(into, []).extend([*moved, replica])
        for one in (*moved, replica):
            group.update(dict.fromkeys(one.nodes, into))
    return [_job(own) for _, own in sorted(members.items())]


def _job(replicas: Sequence[Replica]) -> Job:
    nodes: dict[str, NodeDocument] = {}
    used: dict[str, set[int]] = {}
    for replica in replicas:
        for share in replica.shares:
            nodes[share.node.name] = share.node
            used.setdefault(share.node.name, set()).update(share.gpus)
    return Job(tuple(replicas), tuple(nodes.values()), {name: tuple(sorted(gpus)) for name, gpus in used.items()})


def faults(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """What an engine cannot be told."""
    rules = {"vllm": vllm.faults, "sglang": sglang.faults, "tensorrt-llm": tensorrt_llm.faults}
    return [fault for replica in replicas for fault in rules[replica.engine.name](replica)]


def cautions(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Diagnostic]:
    """GPUs that Slurm chooses."""
    found = []
    for job in jobs_of(replicas):
        for node in job.nodes:
            if not job.whole(node):
                count = len(job.gpus[node.name])
                message = f"Slurm chooses {count} of the GPUs of {node.name}; the plan counts with {list(job.gpus[node.name])}"
                hint = "take the whole node in the script (--exclusive --gres=gpu:N) and set CUDA_VISIBLE_DEVICES to those, or accept any"
                found.append(caution("GPU_INDEX_NOT_PINNED", message, hint, f"deployments.{job.replicas[0].deployment}"))
    return found


def files(replicas: Sequence[Replica], _options: LaunchOptions) -> list[LaunchFile]:
    """Batch scripts, hostfiles, configurations, and the script that submits them."""
    jobs = jobs_of(replicas)
    found = [LaunchFile(_script(jobs, job), "\n".join(_lines(job)) + "\n", executable=True) for job in jobs]
    mpi = [replica for replica in replicas if replica.engine.name == "tensorrt-llm"]
    found += [LaunchFile(f"{replica.name}.hosts", _hostfile(replica)) for replica in mpi]
    found += configurations(mpi)
    submit = [
        "#!/usr/bin/env bash",
        "# Submits every job; run it in this folder on a login node.",
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")"',
    ]
    submit += [f"sbatch {_script(jobs, job)}" for job in jobs]
    return [LaunchFile(SUBMIT, "\n".join(submit) + "\n", executable=True), *found]


def _script(jobs: Sequence[Job], job: Job) -> str:
    return ONE_JOB if len(jobs) == 1 else f"{job.name}.sbatch"


def _lines(job: Job) -> list[str]:
    counts = {len(gpus) for gpus in job.gpus.values()}
    whole = all(job.whole(node) and not node.taken for node in job.nodes)
    lines = [
        "#!/usr/bin/env bash",
        f"#SBATCH --job-name={job.name}",
        f"#SBATCH --nodelist={','.join(node.name for node in job.nodes)}",
        f"#SBATCH --nodes={len(job.nodes)}",
        f"#SBATCH --gres=gpu:{max(counts)}",
        *(["#SBATCH --exclusive"] if whole else []),
        "#SBATCH --output=%x-%j.out",
        "# Add what your cluster asks for: --partition, --account, --time. Submit it in the folder that holds it.",
        *(["# Nodes of one NVLink domain need Slurm's switch/nvidia_imex plugin, or IMEX set up on them."] if _domains(job) else []),
        "set -euo pipefail",
        'cd "${SLURM_SUBMIT_DIR:-.}"',
        "processes=()",
        "trap 'kill \"${processes[@]}\" 2>/dev/null || true' EXIT INT TERM",
        "",
    ]
    for replica in job.replicas:
        lines += _replica(job, replica)
    return [*lines, *WAIT_FOR_ANY]


def _domains(job: Job) -> bool:
    return any(node.domain_nodes > 1 for node in job.nodes) and len(job.nodes) > 1


def _replica(job: Job, replica: Replica) -> list[str]:
    lines = [f"# deployment: {replica.deployment}", f"# replica {replica.number}: {replica.degrees}, batch {replica.shape.batch}"]
    if replica.engine.name == "tensorrt-llm":
        return [*lines, *_mpi(job, replica)]
    meeting = Meeting(replica.head.name)
    for number, share in enumerate(replica.shares):
        command = vllm.command(replica, number, meeting) if replica.engine.name == "vllm" else sglang.command(replica, number, meeting)
        command = Command(command.program, command.options, {**_devices(job, replica, share), **command.environment})
        srun = [
            "srun",
            f"--nodelist={share.node.name}",
            "--nodes=1",
            "--ntasks=1",
            f"--gres=gpu:{len(job.gpus[share.node.name])}",
            "--overlap",
        ]
        lines += [*_where(job, [share]), *_background(shell_lines(srun, command))]
    return lines


def _mpi(job: Job, replica: Replica) -> list[str]:
    """One task a rank, in the order of the hostfile."""
    command = tensorrt_llm.command(replica, f"{replica.name}.yaml")
    command = Command((tensorrt_llm.LAUNCHER, *command.program), command.options, _devices(job, replica, replica.shares[0]))
    srun = [
        f"SLURM_HOSTFILE={replica.name}.hosts",
        "srun",
        "--distribution=arbitrary",
        f"--nodelist={','.join(replica.nodes)}",
        f"--ntasks={replica.ranks}",
        f"--gres=gpu:{len(job.gpus[replica.head.name])}",
        "--mpi=pmix",
        "--overlap",
    ]
    return [*_where(job, replica.shares), *_background(shell_lines(srun, command))]


def _where(job: Job, shares: Sequence[Share]) -> list[str]:
    """Comments that say where a step runs; the GPUs where positions in the job are not their numbers."""
    found = [f"# hosts: {','.join(share.node.name for share in shares)}"]
    if not all(job.numbered(share.node) for share in shares):
        found.append(f"# gpus: {gpu_words(shares)}")
    return found


def _devices(job: Job, replica: Replica, share: Share) -> dict[str, str]:
    """GPUs that a step sees, as positions among those of the job on that node."""
    own = job.gpus[share.node.name]
    return {VISIBLE_DEVICES.get(replica.gpu.vendor, "CUDA_VISIBLE_DEVICES"): ",".join(str(own.index(gpu)) for gpu in share.gpus)}


def _background(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1] + " &", "processes+=($!)", ""]


def _hostfile(replica: Replica) -> str:
    """Host of every rank, a line each (SLURM_HOSTFILE); comments as `planner validate` reads them."""
    lines = [f"# deployment: {replica.deployment}", f"# degrees: {replica.degrees}"]
    lines += [share.node.name for share in replica.shares for _ in share.gpus]
    return "\n".join(lines) + "\n"


def steps(replicas: Sequence[Replica], _options: LaunchOptions) -> list[Step]:
    """What to do, in order."""
    jobs = jobs_of(replicas)
    scripts = _script(jobs, jobs[0]) if len(jobs) == 1 else "*.sbatch"
    return [
        Step(
            "Put this folder on a file system that every node mounts; have the engine and the weights on the nodes (or add --container-image to srun).",
            (),
        ),
        Step("Add partition, account and time to the batch scripts, then submit from this folder:", (f"bash {SUBMIT}", "squeue --me")),
        Step(f"To judge what {scripts} starts, before or after your edits:", ("cat *.sbatch | planner validate PROBLEM - --as command",)),
        Step("When a replica's log says that it listens, ask it:", ("curl http://HEAD:PORT/v1/models",)),
    ]
