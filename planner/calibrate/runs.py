"""What a benchmark log holds, whatever its form: runs of one collective over many sizes, with what their header says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.diagnostics import Diagnostic

# Programs of nccl-tests and the operation each one times; the planner has a form for the first five.
PROGRAMS: Final[dict[str, str]] = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "sendrecv": "send_receive",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "hypercube": "hypercube",
}
MODELLED: Final = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive")

# Outside these no number is a time [s] or a bandwidth [B/s].
SHORTEST: Final = 1e-9
LONGEST: Final = 1e5
FASTEST: Final = 1e18

# Bytes of an element by the name nccl-tests prints.
ELEMENT_BYTES: Final[dict[str, int]] = {
    "int8": 1, "uint8": 1, "char": 1, "int32": 4, "uint32": 4, "int": 4, "int64": 8, "uint64": 8,
    "half": 2, "float16": 2, "fp16": 2, "bfloat16": 2, "bf16": 2, "float": 4, "float32": 4, "double": 8, "float64": 8,
    "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "float8_e4m3": 1, "float8_e5m2": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rate:
    """A printed bandwidth [B/s] and half the unit of its last digit: the true value lies that close."""

    value: float
    within: float


@dataclass(frozen=True, slots=True)
class Timing:
    """One half of a row: time [s], algorithm and bus bandwidth, and how many values came out wrong (None = not checked)."""

    seconds: float
    algorithm: Rate
    bus: Rate
    wrong: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One size of a run: message [B], elements as printed, reduction and root where there are such columns, and both halves.

    `timings` is out-of-place then in-place; a row cut short has the first only. `line` is where it stands in its file.
    """

    size: int
    count: int
    element: str
    reduction: str | None
    root: int | None
    timings: tuple[Timing, ...]
    line: int

    @property
    def seconds(self) -> tuple[float, ...]:
        """Times of the halves whose values are right [s]."""
        return tuple(timing.seconds for timing in self.timings if not timing.wrong)


@dataclass(frozen=True, slots=True)
class Device:
    """A rank of the header's device list, with its host, the number of the GPU in it and the GPU's name."""

    rank: int
    host: str
    index: int
    name: str


@dataclass(frozen=True)
class Run:
    """One benchmark run.

    `program` is what ran (all_reduce_perf), None where the log does not say. `devices` may be cut at either end. `version` is the library's.
    `average_bus` is the printed mean over all sizes [B/s], which says nothing on the peak. `notes` say what was left out on reading.
    """

    file: str
    line: int
    rows: tuple[Row, ...]
    devices: tuple[Device, ...] = ()
    program: str | None = None
    library: str = "nccl"
    version: str = ""
    average_bus: float | None = None
    notes: tuple[Diagnostic, ...] = ()
