"""What somebody measured on machines of his own, and how it replaces the catalog's figures.

Links are replaced by name in both profiles: the textbook's alpha and bandwidth, the calibrated ones, and whole collectives where they were timed. A measured GPU replaces the
data sheet's peaks by those that make the profile's usual share of the peak come out at what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from planner.catalog.collectives import CollectiveSeries
from planner.catalog.facts import Fact
from planner.catalog.gpus import Gpu
from planner.catalog.links import Link
from planner.catalog.step_times import of_dtype, step_constants

# What the textbook profile takes of the data sheet's FLOP/s (600 of 989 on an H100) and of its memory bandwidth.
PAPER_MULTIPLY: Final = 600.0 / 989.0
PAPER_READ: Final = 1.0
# Engine whose shares of the peaks a measured GPU is compared with: a plain copy and a plain product reach what its kernels reach.
REFERENCE_ENGINE: Final = "vllm"


@dataclass(frozen=True)
class MeasuredLink:
    """Constants of one link, None where nothing was measured; `collectives` are whole series timed over it."""

    hockney_alpha: Fact | None = None
    hockney_bandwidth: Fact | None = None
    calibrated_alpha: Fact | None = None
    calibrated_bandwidth: Fact | None = None
    collectives: tuple[CollectiveSeries, ...] = ()

    def replaces(self, link: Link) -> Link:
        """The link with what was measured in place of what the catalog says."""
        return replace(
            link,
            hockney_alpha=self.hockney_alpha or link.hockney_alpha,
            hockney_bandwidth=self.hockney_bandwidth or link.hockney_bandwidth,
            calibrated_alpha=self.calibrated_alpha or link.calibrated_alpha,
            calibrated_bandwidth=self.calibrated_bandwidth or link.calibrated_bandwidth,
            measured=self.collectives,
        )


@dataclass(frozen=True)
class MeasuredGpu:
    """What one GPU reached: bytes copied [B/s] and products in each number format [FLOP/s]."""

    memory_bandwidth: Fact | None = None
    flops: Mapping[str, Fact] = field(default_factory=dict)

    def replaces(self, gpu: Gpu, base: str) -> Gpu:
        """The GPU whose usual share of the peak, by the profile `base`, is what was measured."""
        if base == "hockney":
            read, multiply = PAPER_READ, dict.fromkeys(self.flops, PAPER_MULTIPLY)
        else:
            constants = step_constants(REFERENCE_ENGINE, gpu.architecture)
            read = of_dtype(constants.weight_read, "bf16")
            multiply = {dtype: of_dtype(constants.multiply, dtype) for dtype in self.flops}
        flops = {dtype: _raised(fact, multiply[dtype]) for dtype, fact in self.flops.items() if dtype in gpu.flops}
        bandwidth = gpu.memory_bandwidth if self.memory_bandwidth is None else _raised(self.memory_bandwidth, read)
        return replace(gpu, memory_bandwidth=bandwidth, flops={**gpu.flops, **flops})


def _raised(fact: Fact, share: float) -> Fact:
    return Fact(fact.value / share, "derived", fact.source, f"measured {fact.value:.4g}, taken as {share:.0%} of the peak")


@dataclass(frozen=True)
class Measurements:
    """Everything that one profile file measured, by catalog name; `base` is the profile whose other figures stand."""

    base: str = "calibrated"
    links: Mapping[str, MeasuredLink] = field(default_factory=dict)
    gpus: Mapping[str, MeasuredGpu] = field(default_factory=dict)

    def link(self, link: Link) -> Link:
        """The link as measured, or as it is."""
        found = self.links.get(link.name)
        return link if found is None else found.replaces(link)

    def gpu(self, gpu: Gpu) -> Gpu:
        """The GPU as measured, or as it is."""
        found = self.gpus.get(gpu.name)
        return gpu if found is None else found.replaces(gpu, self.base)


NOTHING: Final = Measurements()
