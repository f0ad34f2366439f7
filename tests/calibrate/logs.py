"""Logs in the shapes that nccl-tests and its launchers print, around times that the tests choose."""

from __future__ import annotations

import json

ELEMENT = 4
HEADER = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
OPTIONS = (
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n"
)
DOUBLINGS = [2**power for power in range(3, 34)]
FULL = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}


def printed(value):
    """A time as nccl-tests prints it: seven places, integers from 10,000 on."""
    return f"{value:.2f}" if value < 1000 else f"{value:.1f}" if value < 10_000 else f"{value:.0f}"


def bus_factor(operation, ranks):
    return FULL[operation] * (ranks - 1) / ranks if operation in FULL else 1.0


def hops(operation, ranks):
    return 1 if operation == "send_receive" else (2 if operation == "all_reduce" else 1) * (ranks - 1)


def line_times(operation, ranks, alpha, bandwidth, sizes=DOUBLINGS, noise=lambda: 1.0):
    """Pairs of times [s] of every size by the textbook's ring, each with noise of its own."""
    volume = bus_factor(operation, ranks)
    return {size: tuple((hops(operation, ranks) * alpha + volume * size / bandwidth) * noise() for _ in range(2)) for size in sizes}


def columns(operation, size, ranks):
    share = ranks if operation in {"all_gather", "reduce_scatter", "all_to_all"} else 1
    reduction = "sum" if operation in {"all_reduce", "reduce_scatter", "send_receive"} else "none"
    return size // ELEMENT // share, reduction


def half(operation, ranks, size, seconds, wrong="0"):
    algorithm = size / seconds / 1e9
    return f"{printed(seconds * 1e6):>8} {algorithm:>7.2f} {algorithm * bus_factor(operation, ranks):>7.2f} {wrong:>6}"


def row(operation, ranks, size, times, root=-1, in_place_wrong="0"):
    count, reduction = columns(operation, size, ranks)
    out, back = times
    return (
        f"{size:>12} {count:>13} {'float':>9} {reduction:>7} {root:>7} "
        f"{half(operation, ranks, size, out)} {half(operation, ranks, size, back, in_place_wrong)}"
    )


def devices(hosts, per_host, name="NVIDIA H100 80GB HBM3"):
    lines = ["# Using devices"]
    for rank in range(hosts * per_host):
        host, index = divmod(rank, per_host)
        lines.append(f"#  Rank {rank:>2} Group  0 Pid {4000 + rank:>6} on node{host} device {index:>2} [0000:{index:02x}:00] {name}")
    return "\n".join(lines) + "\n"


def log(operation, ranks, times, head="", foot="", prefix=""):
    """A whole log: `times` maps sizes to pairs of seconds; `prefix` stands before every line."""
    unchecked = "N/A" if operation in {"all_to_all", "send_receive"} else "0"
    body = "".join(row(operation, ranks, size, pair, in_place_wrong=unchecked) + "\n" for size, pair in times.items())
    text = OPTIONS + head + HEADER + body + (foot or "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.345\n#\n")
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def report(operation, ranks, times, program="all_reduce_perf", listed=()):
    """The JSON that -J writes."""
    results = []
    for size, pair in times.items():
        count, reduction = columns(operation, size, ranks)
        halves = [
            {
                "time": seconds * 1e6,
                "alg_bw": size / seconds / 1e9,
                "bus_bw": size / seconds / 1e9 * bus_factor(operation, ranks),
                "nwrong": 0.0,
            }
            for seconds in pair
        ]
        results.append(
            {
                "size": size,
                "count": count,
                "type": "float",
                "redop": reduction,
                "root": "    -1",
                "out_of_place": halves[0],
                "in_place": halves[1],
            }
        )
    config = {"nthreads": 1, "ngpus": 1, "devices": list(listed)}
    return json.dumps(
        {"version": 1, "args": [f"./build/{program}", "-b", "8"], "nccl_version": 22304, "config": config, "results": results}, indent=1
    )
