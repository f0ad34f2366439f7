"""One rank of a measurement: warm up, time every operation and size, hand the slowest rank's times to rank 0.

Run as `python -m planner.calibrate.measure_worker OPTIONS` with RANK and WORLD_SIZE set, or called by every rank under torchrun. The only file that imports torch, together with
`accelerator`.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

WARM_UP: Final = 5
ROUNDS: Final = 10
MOST_ROUNDS: Final = 30
AGREEMENT: Final = 0.05
# After its first rounds an operation gets no more of them once it has taken this long [s].
PATIENCE: Final = 180.0
LARGE: Final = 8 * 2**20
LEAST_SAMPLES: Final = 3
MOST_SAMPLES: Final = 12
# A sample of short calls holds so many that the clock does not matter [s].
LEAST_SAMPLE: Final = 1e-3
MOST_CALLS: Final = 200
ELEMENT: Final = 4  # float32
TIMEOUT: Final = dt.timedelta(seconds=120)

Call = Callable[[], None]


class Ranks:
    """The process group, and where its buffers lie."""

    def __init__(self, backend: str, rendezvous: str | None) -> None:
        import torch
        import torch.distributed as group

        self.torch, self.group, self.backend = torch, group, backend
        if backend == "nccl":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
            self.device = torch.device("cuda")
        else:
            self.device = torch.device("cpu")
        own = (
            {}
            if rendezvous is None
            else {"init_method": rendezvous, "rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}
        )
        group.init_process_group(backend, timeout=TIMEOUT, **own)
        self.rank, self.count = group.get_rank(), group.get_world_size()

    def nodes(self) -> int:
        """Number of hosts the ranks run on."""
        names: list[Any] = [None] * self.count
        self.group.all_gather_object(names, socket.gethostname())
        return len(set(names))

    def finish(self) -> None:
        """Wait for what runs on the device."""
        if self.backend == "nccl":
            self.torch.cuda.synchronize()

    def slowest(self, values: list[float]) -> list[float]:
        """The largest of all ranks' values, one by one."""
        shared = self.torch.tensor(values, dtype=self.torch.float64, device=self.device)
        self.group.all_reduce(shared, op=self.group.ReduceOp.MAX)
        return [float(value) for value in shared.tolist()]

    def version(self) -> str:
        """Version of the library that ran."""
        if self.backend == "nccl":
            return ".".join(map(str, self.torch.cuda.nccl.version()))
        return f"torch {self.torch.__version__}"


def call_of(ranks: Ranks, operation: str, size: int) -> Call:
    """One call of an operation whose message has `size` bytes, counted as nccl-tests counts them: the whole buffer."""
    torch, group = ranks.torch, ranks.group
    elements = size // ELEMENT
    whole = torch.ones(elements, dtype=torch.float32, device=ranks.device)
    part = torch.ones(elements // ranks.count, dtype=torch.float32, device=ranks.device)
    if operation == "all_reduce":
        return lambda: group.all_reduce(whole, op=group.ReduceOp.MAX) and None
    if operation == "all_gather":
        return lambda: group.all_gather_into_tensor(whole, part) and None
    if operation == "reduce_scatter":
        return lambda: group.reduce_scatter_tensor(part, whole, op=group.ReduceOp.MAX) and None
    if operation == "all_to_all":
        other = torch.empty_like(whole)
        return lambda: group.all_to_all_single(other, whole) and None
    return lambda: _there_and_back(ranks, whole)


def divisible(size: int, count: int) -> int:
    """Size nearest below that `count` ranks share evenly, in whole elements [B]."""
    return max(size // (ELEMENT * count), 1) * ELEMENT * count


def _there_and_back(ranks: Ranks, buffer: Any) -> None:
    """One message from rank 0 to rank 1 and back; the others wait."""
    if ranks.rank == 0:
        ranks.group.send(buffer, 1)
        ranks.group.recv(buffer, 1)
    elif ranks.rank == 1:
        ranks.group.recv(buffer, 0)
        ranks.group.send(buffer, 0)


def _timed(ranks: Ranks, call: Call, calls: int) -> float:
    """Seconds of one call, averaged over `calls` back to back."""
    ranks.finish()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    ranks.finish()
    return (time.perf_counter() - begin) / calls


def _calls(ranks: Ranks, call: Call) -> tuple[int, float]:
    """Warm up; how many calls a sample holds, and how long it takes [s]. All ranks must do the same: the slowest decides."""
    for _ in range(WARM_UP):
        call()
    once = max(ranks.slowest([_timed(ranks, call, 2)])[0], 1e-7)
    calls = min(MOST_CALLS, max(1, int(LEAST_SAMPLE / once)))
    return calls, once * calls


def times_of(ranks: Ranks, operation: str, sizes: Sequence[int], budget: float) -> list[tuple[int, float]]:
    """Times of every size [s], two each: medians of the even and of the odd rounds, the slowest rank's.

    Each round goes through all sizes and keeps the fastest of a few samples of each, so that whatever else the machine does meanwhile falls on all sizes alike and a call that
    was interrupted does not count. Where the two medians of a large size differ, more
    rounds follow, for `PATIENCE` at most. `budget` [s] is spent on each size, more on those whose fewest samples take longer.
    """
    begin = time.monotonic()
    calls = {size: _calls(ranks, call_of(ranks, operation, size)) for size in sizes}
    samples = {size: min(MOST_SAMPLES, max(LEAST_SAMPLES, int(budget / seconds / ROUNDS))) for size, (_, seconds) in calls.items()}
    halves: dict[int, tuple[list[float], list[float]]] = {size: ([], []) for size in sizes}
    for number in range(MOST_ROUNDS):
        if number % ROUNDS == 0 and number and (_settled(ranks, halves) or ranks.slowest([time.monotonic() - begin])[0] > PATIENCE):
            break
        for size in sizes:
            call = call_of(ranks, operation, size)
            call()
            ranks.group.barrier()
            halves[size][number % 2].append(min(_timed(ranks, call, calls[size][0]) for _ in range(samples[size])))
    share = 0.5 if operation == "send_receive" else 1.0  # there and back again is two messages
    return [(size, share * value) for size in sizes for value in ranks.slowest([statistics.median(half) for half in halves[size]])]


def _settled(ranks: Ranks, halves: Mapping[int, tuple[list[float], list[float]]]) -> bool:
    """Whether both halves of the rounds agree on every large size, on every rank."""
    pairs = [tuple(statistics.median(half) for half in both) for size, both in halves.items() if size >= LARGE]
    return ranks.slowest([max((abs(even / odd - 1.0) for even, odd in pairs), default=0.0)])[0] <= AGREEMENT


def measure(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Time everything asked; the result on rank 0, None on the others."""
    ranks = Ranks(options["backend"], options.get("rendezvous"))
    times: dict[str, list[tuple[int, float]]] = {}
    unsupported: dict[str, str] = {}
    sizes = sorted({divisible(asked, ranks.count) for asked in options["sizes"]})
    for operation in options["operations"]:
        try:
            times[operation] = times_of(ranks, operation, sizes, options["seconds_per_size"])
        except (RuntimeError, NotImplementedError, ValueError) as error:
            # A backend without the operation says so on every rank alike; a lost peer ends the run at the next barrier.
            times.pop(operation, None)
            unsupported[operation] = str(error).strip().split("\n")[0][:200]
    nodes = ranks.nodes()
    name, accelerator = None, None
    if ranks.backend == "nccl":
        from planner.calibrate.accelerator import reached

        name = str(ranks.torch.cuda.get_device_name())
        accelerator = reached(ranks.torch)
    version, rank, count = ranks.version(), ranks.rank, ranks.count
    ranks.group.barrier()
    ranks.group.destroy_process_group()
    if rank != 0:
        return None
    return {
        "backend": options["backend"],
        "ranks": count,
        "nodes": nodes,
        "version": version,
        "gpu": name,
        "times": times,
        "unsupported": unsupported,
        "accelerator": accelerator,
    }


def main(arguments: str) -> None:
    """Measure as one spawned rank; rank 0 writes the result where the options say."""
    options = json.loads(arguments)
    result = measure(options)
    if result is not None:
        Path(options["result"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
