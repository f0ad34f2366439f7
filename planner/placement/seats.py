"""Hosts -> GPUs for ranks: as launchers do, host by host in the order named, GPUs in the order made visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.diagnostics import Diagnostic, Place
from planner.placement.gpu_words import gpus_of_node
from planner.placement.proposal import ProposedGpu
from planner.topology.fabric import Fabric
from planner.topology.inventory import FREE

# What a host that the topology does not know is taken to have, so that its ranks can be shown where they were meant to go.
USUAL_GPUS = 8


@dataclass(frozen=True, slots=True)
class Host:
    """A host named for a launch: `devices` are its visible GPUs in order, None = all of them; `free_only` skips those in use."""

    node: str
    place: Place
    devices: tuple[int, ...] | None = None
    free_only: bool = False


class Seats:
    """GPUs handed out one replica after another; no GPU is handed out twice unless a host runs out of them."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.given: dict[str, int] = {}

    def devices(self, host: Host) -> tuple[int, ...]:
        """Visible GPUs of a host, in order."""
        if host.devices is not None:
            return host.devices
        count = gpus_of_node(self.fabric, host.node)
        if host.free_only and count:
            start = int(self.fabric.inventory.first_gpu[self.fabric.row(host.node)])
            return tuple(index for index in range(count) if int(self.fabric.inventory.state[start + index]) == FREE)
        return tuple(range(count or USUAL_GPUS))

    def left(self, host: Host) -> int:
        """GPUs of a host that nobody was given."""
        return len(self.devices(host)) - self.given.get(host.node, 0)

    def seat(self, hosts: Sequence[Host], ranks: int, per_host: int | None = None) -> tuple[ProposedGpu, ...]:
        """GPUs for `ranks` ranks: on one host where one has room, else over as few as hold them, evenly where that goes.

        `per_host` fixes how many each host takes (GPUs of a pod, or ranks over `--nnodes`), whether it has them or not. Fewer GPUs than ranks come back
        where the hosts have no more.
        """
        if per_host is not None:
            return self._fixed(hosts, ranks, per_host)
        alone = next((host for host in hosts if self.left(host) >= ranks), None)
        if alone is not None:
            return self._take(alone, ranks)
        chosen: list[Host] = []
        room = 0
        for host in hosts:
            if self.left(host) > 0 and room < ranks:
                chosen.append(host)
                room += self.left(host)
        if not chosen:
            return ()
        share, rest = divmod(ranks, len(chosen))
        even = not rest and all(self.left(host) >= share for host in chosen)
        found: list[ProposedGpu] = []
        for host in chosen:
            found.extend(self._take(host, share if even else min(self.left(host), ranks - len(found))))
        return tuple(found)

    def _fixed(self, hosts: Sequence[Host], ranks: int, per_host: int) -> tuple[ProposedGpu, ...]:
        """As many ranks on every host, on those with room first; a host without room is only used where there is no other."""
        found: list[ProposedGpu] = []
        for with_room in (True, False):
            for host in hosts:
                wanted = min(per_host, ranks - len(found))
                if wanted and (self.left(host) >= wanted if with_room else not self.given.get(host.node)):
                    found.extend(self._take(host, wanted))
        return tuple(found)

    def _take(self, host: Host, count: int) -> tuple[ProposedGpu, ...]:
        devices = self.devices(host)
        first = self.given.get(host.node, 0)
        self.given[host.node] = first + count
        # Past the last device the count goes on, so that GPUs which the node does not have are reported by number.
        beyond = max(devices, default=-1) + 1 - len(devices)
        numbers = [devices[index] if index < len(devices) else index + beyond for index in range(first, first + count)]
        return tuple(ProposedGpu(host.node, number, host.place) for number in numbers)


def all_hosts(fabric: Fabric, place: Place) -> tuple[Host, ...]:
    """Every node of the topology with its free GPUs, for placements that name no hosts."""
    return tuple(Host(node, place, free_only=True) for node in fabric.nodes)


def too_few(wanted: int, found: int, place: Place) -> list[Diagnostic]:
    """GPU_COUNT_MISMATCH where the hosts have fewer GPUs than ranks."""
    if found >= wanted:
        return []
    message = f"the degrees need {wanted} GPUs, the hosts give {found}"
    return [Diagnostic("GPU_COUNT_MISMATCH", message, f"name hosts with {wanted - found} more GPUs, or lower the degrees", place=place)]
