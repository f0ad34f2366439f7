"""What all files say of each host, joined: the first file that tells a thing is believed, and files that disagree are named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from planner.diagnostics import Diagnostic
from planner.topology.importers.facts import NicFacts, NodeFacts, ScaleUpLinks, shown, warning

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


@dataclass
class Host:
    """One host with what is known of it; `origins` names the file each thing is from."""

    name: str
    gpu: str | None = None
    product: str | None = None
    gpus: int | None = None
    scale_up: ScaleUpLinks | None = None
    picture: NodeFacts | None = None
    pcie: str | None = None
    nic_count: int | None = None
    nic_speed: float | None = None
    nic_kind: str | None = None
    leaves: tuple[str, ...] = ()
    spines: tuple[str, ...] = ()
    island: str | None = None
    domain: str | None = None
    part_of_domain: str | None = None
    failure_domains: dict[str, str] = field(default_factory=dict)
    instance: str | None = None
    failed: tuple[int, ...] = ()
    out_of_use: str | None = None
    origins: dict[str, str] = field(default_factory=dict)

    def take(self, key: str, value: Any, origin: str) -> bool:
        """Believe a file on one thing unless another told it before; False where the two disagree."""
        if value is None or value in ((), {}):
            return True
        known = getattr(self, key)
        if known is None or known in ((), {}):
            setattr(self, key, value)
            self.origins[key] = origin
            return True
        return bool(known == value)

    def take_nics(self, nics: NicFacts | None, origin: str) -> None:
        """Fill in what is not yet known of the interfaces."""
        if nics is not None:
            self.take("nic_count", nics.count, origin)
            self.take("nic_speed", nics.speed, origin)
            self.take("nic_kind", nics.kind, origin)


def short_name(name: str) -> str:
    """Host name without its domain, in lower case: what different tools agree on."""
    return name.partition(".")[0].lower()


def usable_name(name: str) -> bool:
    """Tell whether a topology can name a host so."""
    return _SAFE.fullmatch(name) is not None


class HostTable:
    """Hosts by name, found under their full or their short name."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self._short: dict[str, list[str]] = {}
        self.diagnostics: list[Diagnostic] = []
        self._disagreeing: dict[tuple[str, str, str], list[str]] = {}

    def find(self, name: str) -> Host | None:
        """Host of that name, or the only one of that short name."""
        if name in self.hosts:
            return self.hosts[name]
        alike = self._short.get(short_name(name), [])
        return self.hosts[alike[0]] if len(alike) == 1 else None

    def add(self, name: str) -> Host:
        """Host of that name, made where there is none."""
        found = self.find(name)
        if found is None:
            found = self.hosts[name] = Host(name)
            self._short.setdefault(short_name(name), []).append(name)
        return found

    def merge(self, host: Host, facts: NodeFacts, origin: str) -> None:
        """Take what one file says of a host."""
        for key in ("gpu", "gpus"):
            before = host.origins.get(key, "")
            if not host.take(key, getattr(facts, key), origin):
                self._disagreeing.setdefault((key, before, origin), []).append(host.name)
        for key in ("product", "domain", "part_of_domain", "instance", "failed", "out_of_use"):
            host.take(key, getattr(facts, key), origin)
        if facts.leaves and not host.leaves:
            # Where a host hangs is believed as a whole: leaves of one file never hang on spines of another.
            host.leaves, host.spines, host.island = facts.leaves, facts.spines, facts.island
            host.origins["leaves"] = origin
        host.failure_domains = {**facts.failure_domains, **host.failure_domains}
        self.merge_picture(host, facts, origin)

    def merge_picture(self, host: Host, facts: NodeFacts, origin: str) -> None:
        """Take what a file shows of the inside of a node."""
        if host.take("scale_up", facts.scale_up, origin) and facts.scale_up is not None:
            host.picture = facts
        host.take("pcie", facts.pcie, origin)
        host.take_nics(facts.nics, origin)

    def disagreements(self) -> Sequence[Diagnostic]:
        """Files that disagree on a host's GPUs, once for each two files."""
        words = {"gpu": "the GPU type", "gpus": "the number of GPUs"}
        return [
            warning(
                "FILES_DISAGREE",
                f"{before} and {after} disagree on {words[key]} of {shown(names)}; the first is taken",
                "check both files",
                after,
            )
            for (key, before, after), names in self._disagreeing.items()
        ]
