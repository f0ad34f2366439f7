"""The profile file: links, collectives and GPUs as somebody measured them, in place of the catalog's figures.

`planner fit` and `planner measure` write such files; a problem names one as its `profile`. The form only is checked here; `profiles` looks names up.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.quantities import Bytes, BytesPerSecond, FlopsPerSecond, Seconds

Base = Literal["calibrated", "hockney"]
Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
Dtype = Literal["fp64", "fp32", "bf16", "fp16", "fp8", "int8", "mxfp4", "nvfp4"]

MOST_RANKS = 1_000_000
MOST_PIECES = 100
Start = Annotated[Seconds, Field(ge=0, le=3600)]
Speed = Annotated[BytesPerSecond, Field(gt=0, le=1e18)]
Size = Annotated[Bytes, Field(gt=0, le=1e18)]
Text = Annotated[str, Field(max_length=1000)]


class ProfilePart(BaseModel):
    """Settings shared by all parts of a profile: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Constants(ProfilePart):
    """Alpha and bandwidth of a link, as one of the two profiles uses them; what is left out stays as the catalog has it."""

    alpha: Start | None = Field(default=None, description="Time of one hop apart from the bytes, 2us for example")
    bandwidth: Speed | None = Field(default=None, description="What one GPU gets in one direction, 400GB/s for example")


class Piece(ProfilePart):
    """One straight piece of the time over the message size: start + volume / bandwidth."""

    below: Size | None = Field(default=None, description="The piece holds for messages below this size; absent = all larger ones")
    last: Size = Field(description="Largest size that was measured in the piece, 64KiB for example")
    start: Start = Field(description="Time apart from the bytes, 12us for example")
    bandwidth: Speed | None = Field(default=None, description="Volume of one rank over the time it adds; absent = the time does not grow")


class Group(ProfilePart):
    """Times of one operation among so many ranks, in pieces over the message size."""

    ranks: Annotated[int, Field(strict=True, ge=2, le=MOST_RANKS)] = Field(description="Ranks that took part")
    pieces: tuple[Piece, ...] = Field(min_length=1, max_length=MOST_PIECES, description="Pieces in the order of size")


class Collective(ProfilePart):
    """One collective operation as measured over a link."""

    operation: Operation = Field(description="all_reduce, all_gather, reduce_scatter or all_to_all")
    library: Annotated[str, Field(min_length=1, max_length=50)] = Field(default="nccl", description="Library that ran it: nccl, gloo, vllm")
    version: Annotated[str, Field(max_length=50)] = Field(default="", description="Version of the library, in quotes")
    form: Literal["ring", "tree"] = Field(default="ring", description="Hops by which the start grows with the ranks")
    c0: Start = Field(default=0.0, description="Start that does not grow with the hops")
    alpha: Start = Field(description="Start of every hop")
    ranks_inside: Annotated[int, Field(strict=True, ge=1, le=MOST_RANKS)] = Field(
        default=1, description="Ranks that shared a scale-up scope, where the run went over several; 1 otherwise"
    )
    held_out: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Median error on sizes left out of the fit, as a share of the measured time"
    )
    groups: tuple[Group, ...] = Field(min_length=1, max_length=1000, description="Times by number of ranks")


class LinkProfile(ProfilePart):
    """One link as measured: constants of both profiles, and whole collectives."""

    source: Text = Field(default="", description="Where the figures come from")
    hockney: Constants | None = Field(default=None, description="Constants of the textbook profile")
    calibrated: Constants | None = Field(
        default=None, description="Constants of the calibrated profile: what a send between two GPUs takes"
    )
    collectives: tuple[Collective, ...] = Field(default=(), max_length=100, description="Collectives timed over the link")


class GpuProfile(ProfilePart):
    """One type of GPU as measured."""

    source: Text = Field(default="", description="Where the figures come from")
    memory_bandwidth: Speed | None = Field(default=None, description="Bytes a second that a large copy reads and writes, 3TB/s for example")
    flops: dict[Dtype, Annotated[FlopsPerSecond, Field(gt=0)]] = Field(
        default_factory=dict, description="Dense products by number format, 650TFLOP/s for example"
    )


class ProfileDocument(ProfilePart):
    """Measured figures that stand before the catalog's."""

    name: str = Field(min_length=1, max_length=200, description="Name of the profile, as plans show it")
    description: str = Field(default="", max_length=10_000, description="Free text")
    base: Base = Field(default="calibrated", description="Profile whose other figures stand: calibrated or hockney")
    links: dict[str, LinkProfile] = Field(default_factory=dict, description="Links by catalog name, or by kind and speed: ethernet-25")
    gpus: dict[str, GpuProfile] = Field(default_factory=dict, description="GPU types by catalog name")
