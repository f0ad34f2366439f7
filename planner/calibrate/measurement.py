"""A run of one's own: processes that time collectives among themselves, and what their times say of the link.

Started plainly, the processes are spawned here; under torchrun every rank comes in by itself, and rank 0 answers. Times are medians over rounds after a warm-up, the
slowest rank's counting. Only the worker imports torch.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from planner.calibrate.fit import CollectiveFit, fit_times
from planner.calibrate.identity import Identity
from planner.calibrate.runs import MODELLED
from planner.catalog.gpus import Gpu, gpu
from planner.diagnostics import Diagnostic, PlannerError
from planner.problem.profile_document import GpuProfile

WORKER: Final = "planner.calibrate.measure_worker"
SMALLEST: Final = 256
LARGEST: Final = 64 * 2**20
MOST_PROCESSES: Final = 64
# Files of a run that lasts longer are not waited for [s].
LONGEST: Final = 1800.0


@dataclass(frozen=True)
class Options:
    """What to time: operations, sizes from `smallest` to `largest` [B] by doubling, and how: backend, and seconds spent on each size."""

    backend: str = "gloo"
    processes: int = 2
    operations: tuple[str, ...] = MODELLED
    smallest: int = SMALLEST
    largest: int = LARGEST
    seconds_per_size: float = 0.1

    def arguments(self) -> dict[str, Any]:
        """Options as the worker reads them."""
        return {
            "backend": self.backend,
            "operations": list(self.operations),
            "sizes": sizes(self.smallest, self.largest),
            "seconds_per_size": self.seconds_per_size,
        }


@dataclass(frozen=True)
class Measured:
    """What a run found: fits by operation, operations the backend cannot do, the GPU's own figures where there was one."""

    backend: str
    ranks: int
    nodes: int
    version: str
    gpu: Gpu | None
    fits: tuple[CollectiveFit, ...]
    unsupported: Mapping[str, str]
    accelerator: GpuProfile | None


def sizes(smallest: int, largest: int) -> list[int]:
    """Message sizes by doubling, powers of two [B]."""
    first, last = math.ceil(math.log2(max(smallest, 8))), math.floor(math.log2(largest))
    return [2**power for power in range(first, last + 1)]


def check(options: Options) -> None:
    """Refuse options that cannot be timed.

    Raises
    ------
    PlannerError
        TORCH_MISSING or OUT_OF_RANGE, all at once.
    """
    faults: list[Diagnostic] = []
    if importlib.util.find_spec("torch") is None:
        hint = "pip install 'llm-deployment-planner[measure]', or fit what nccl-tests printed with `planner fit`"
        faults.append(Diagnostic("TORCH_MISSING", "measuring needs torch, which is not installed", hint))
    if not 2 <= options.processes <= MOST_PROCESSES:
        hint = f"write 2 to {MOST_PROCESSES}, or start it under torchrun"
        faults.append(Diagnostic("OUT_OF_RANGE", f"{options.processes} processes cannot exchange anything here", hint))
    if len(sizes(options.smallest, options.largest)) < 3 or options.largest > 2**36:
        message = f"sizes from {options.smallest} B to {options.largest} B are too few or too large to fit"
        faults.append(Diagnostic("OUT_OF_RANGE", message, "let them span 256 B to 64 MiB or more, 64 GiB at most"))
    if faults:
        raise PlannerError(faults)


def under_launcher(environment: Mapping[str, str]) -> bool:
    """Whether this process is one rank that torchrun (or another launcher of its kind) started."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(environment)


def run_here(options: Options) -> Measured:
    """Spawn the processes on this machine, wait for them, fit what they timed.

    Raises
    ------
    PlannerError
        MEASUREMENT_FAILED with what the first failing process said last.
    """
    check(options)
    with tempfile.TemporaryDirectory(prefix="planner-measure-") as folder:
        result = Path(folder) / "result.json"
        arguments = json.dumps(options.arguments() | {"result": str(result), "rendezvous": f"file://{folder}/rendezvous"})
        logs = [Path(folder) / f"rank-{rank}.log" for rank in range(options.processes)]
        processes = [_spawn(arguments, rank, options, log) for rank, log in enumerate(logs)]
        try:
            codes = [process.wait(timeout=LONGEST) for process in processes]
        except subprocess.TimeoutExpired:
            codes = [-1]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        if any(codes) or not result.is_file():
            failed = next((rank for rank, code in enumerate(codes) if code), 0)
            raise PlannerError([_failure(logs[failed].read_text(encoding="utf-8", errors="replace"))])
        return measured(json.loads(result.read_text(encoding="utf-8")))


def _spawn(arguments: str, rank: int, options: Options, log: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(options.processes),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    # Between processes of one machine the loopback is the way; the host's name may not resolve.
    environment.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    with log.open("wb") as output:
        return subprocess.Popen([sys.executable, "-m", WORKER, arguments], env=environment, stdout=output, stderr=output)  # noqa: S603


def _failure(text: str) -> Diagnostic:
    said = [line.strip() for line in text.splitlines() if line.strip()]
    last = said[-1][:300] if said else "it ended without a word"
    hint = "check that the backend works here: gloo needs a loopback, nccl one GPU for each process"
    return Diagnostic("MEASUREMENT_FAILED", f"a measuring process failed: {last}", hint)


def measured(result: Mapping[str, Any]) -> Measured:
    """Fits of what a worker wrote."""
    part = _gpu(result["gpu"])
    ranks, nodes = int(result["ranks"]), int(result["nodes"])
    learnt = (f"timed here: {result['backend']} {result['version']}, {ranks} ranks on {nodes} node{'s' if nodes > 1 else ''}",)
    library = "nccl" if result["backend"] == "nccl" else str(result["backend"])
    fits = tuple(
        fit_times(
            "this run",
            Identity(operation, ranks, nodes, part, learnt),
            [(float(size), float(time)) for size, time in times],
            library,
            result["version"],
        )
        for operation, times in result["times"].items()
    )
    return Measured(str(result["backend"]), ranks, nodes, str(result["version"]), part, fits, result["unsupported"], _accelerator(result))


def _gpu(name: str | None) -> Gpu | None:
    if name is None:
        return None
    try:
        return gpu(name)
    except PlannerError:
        return None


def _accelerator(result: Mapping[str, Any]) -> GpuProfile | None:
    found = result.get("accelerator")
    if not found:
        return None
    source = f"{result['gpu']}: copies of {found['copied'] / 2**30:g} GiB and square products of {found['side']}, medians"
    return GpuProfile.model_validate({"source": source, "memory_bandwidth": found["memory_bandwidth"], "flops": found["flops"]})


def launch_lines(options: Options, output: str, link: str) -> Sequence[str]:
    """Commands for many nodes: one GPU a node tells the network's alpha and beta, all GPUs what whole groups take."""
    words = f"-m planner measure --backend {options.backend if options.backend != 'gloo' else 'nccl'} --link {link} -o {output}"
    head = "torchrun --nnodes=NODES --rdzv-backend=c10d --rdzv-endpoint=FIRST_NODE:29500"
    return (f"{head} --nproc-per-node=1 {words}", f"{head} --nproc-per-node=GPUS {words}")
