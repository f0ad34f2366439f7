"""What tools and clouds call hardware: PCI device numbers and instance types, each with the catalog's GPU it stands for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from planner.catalog.read import read_table


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance type of a cloud: its GPUs by catalog name and count, and the interfaces that carry GPU traffic.

    `nic_speed` is one interface's in one direction [B/s]; count, speed and kind are None where the provider offers no such network or its page was
    not read.
    """

    name: str
    gpu: str
    gpus: int
    nic_count: int | None
    nic_speed: float | None
    nic_kind: str | None
    source: str


@cache
def _devices() -> dict[tuple[str, str], str]:
    table = read_table("pci_devices.json")
    return {(vendor, device): gpu for vendor, devices in table["vendors"].items() for device, gpu in devices.items()}


@cache
def _instances() -> dict[str, Instance]:
    table = read_table("instances.json")
    found: dict[str, Instance] = {}
    for cloud in table:
        for name, (gpu, gpus, nics) in cloud["instances"].items():
            count, gigabits, kind = nics or (None, None, None)
            speed = None if gigabits is None else gigabits * 1e9 / 8
            found[name.lower()] = Instance(name, gpu, gpus, count, speed, kind, cloud["source"])
    return found


def gpu_of_device(vendor: str, device: str) -> str | None:
    """Catalog name of the GPU with these PCI numbers ("0x10de", "0x2330"), None for a device that is not listed."""
    return _devices().get((vendor.strip().lower(), device.strip().lower()))


def instance(name: str) -> Instance | None:
    """Instance type by its name in any case, a remark in brackets left aside; None for one that is not listed."""
    return _instances().get(re.sub(r"\s*\(.*\)\s*$", "", name.strip()).lower())


def instances() -> tuple[Instance, ...]:
    """All instance types of the table."""
    return tuple(_instances().values())
