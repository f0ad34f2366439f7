"""Several files -> one table of hosts, joined by host name and GUID; every join that fails is told.

The scheduler's list says which hosts there are, where one is given (Kubernetes, else Slurm or topograph, else the fabric's own adapters). Cables say
where a host hangs and how fast; pictures of a node hold for the host they name, or for all hosts they fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.topology.host_lists import HostListError, expand_hosts
from planner.topology.importers.facts import HcaPort, NicFacts, NodeFacts, Reading, note, several, shown, warning
from planner.topology.importers.hosts import Host, HostTable, usable_name
from planner.topology.importers.switch_tree import MOST_HOSTS
from planner.topology.importers.tier_labels import tiers_of

_LISTS = ("kubernetes", "topograph", "slurm")


@dataclass(frozen=True)
class Joined:
    """All hosts, and what the joining found."""

    hosts: tuple[Host, ...]
    diagnostics: tuple[Diagnostic, ...]


def join(readings: Sequence[Reading], guid_map: Mapping[str, str], asked_hosts: str | None = None) -> Joined:
    """Join what all files say.

    Parameters
    ----------
    readings
        One for each file, in the order given.
    guid_map
        Host of each GUID (16 hexadecimal digits), for adapters that name none.
    asked_hosts
        Host list of the nodes that a picture stands for, where no file lists any.

    Raises
    ------
    PlannerError
        NOTHING_TO_PLAN where no file names or shows a node, HOST_LIST_INVALID, HOST_LIST_TOO_LARGE.
    """
    return _Join(readings, guid_map, asked_hosts).run()


class _Join:
    def __init__(self, readings: Sequence[Reading], guid_map: Mapping[str, str], asked_hosts: str | None) -> None:
        order = next((reading.label_order for reading in readings if reading.label_order), ())
        self.readings = [_reordered(reading, order) for reading in readings]
        self.guids = dict(guid_map)
        self.asked = _expanded(asked_hosts)
        self.table = HostTable()
        self.found: list[Diagnostic] = []
        self.order = order

    def run(self) -> Joined:
        lists = [reading for kind in _LISTS for reading in self.readings if reading.kind == kind]
        self._list_hosts(lists)
        pictures = [(node, reading) for reading in self.readings for node in reading.nodes if node.name is None]
        self._learn_guids(pictures)
        cables = [(reading, facts) for reading in self.readings if reading.ports for facts in [self._facts_of_ports(reading)]]
        if not lists:
            for _, facts in cables:
                for node in facts:
                    if node.name is not None and usable_name(node.name):
                        self.table.add(node.name)
        listed = bool(self.table.hosts)
        if not listed:
            self._name_pictures(pictures)
        for reading, facts in cables:
            self._merge(reading, facts, missing_matters=bool(lists))
        for reading in lists:
            self._merge(reading, [node for node in reading.nodes if node.name is not None], missing_matters=len(lists) > 1)
        self._place_pictures(pictures, listed=listed)
        if not self.table.hosts:
            message = "no file names or shows a node"
            files = [reading.file for reading in self.readings]
            hint = (
                "add a list of nodes, the cables, or the inside of a node"
                if not any(r.label_order for r in self.readings)
                else ("a Kueue Topology orders node labels only: add the output of `kubectl get nodes -o json`")
            )
            raise PlannerError([*self.found, Diagnostic("NOTHING_TO_PLAN", message, hint, place=Place(files[0] if files else None))])
        self._labels_used()
        return Joined(tuple(self.table.hosts.values()), (*self.found, *self.table.diagnostics, *self.table.disagreements()))

    def _list_hosts(self, lists: Sequence[Reading]) -> None:
        """Hosts of the leading list; other lists only add to what is known of them."""
        leading = lists[0].kind if lists else None
        for reading in lists:
            if reading.kind == leading:
                unusable = [node.name for node in reading.nodes if node.name is not None and not usable_name(node.name)]
                if unusable:
                    message = f"{several(len(unusable), 'host')} left out for their names: {shown(unusable)}"
                    self.found.append(warning("HOST_NAME_UNUSABLE", message, "use letters, digits, dots and dashes", reading.file))
                for node in reading.nodes:
                    if node.name is not None and usable_name(node.name):
                        self.table.add(node.name)

    def _learn_guids(self, pictures: Iterable[tuple[NodeFacts, Reading]]) -> None:
        """GUIDs of pictures that name their host name the adapters of that host."""
        for node, _ in pictures:
            host = self._hinted(node)
            if host is not None:
                for guid in node.guids:
                    self.guids.setdefault(guid, host.name)

    def _hinted(self, node: NodeFacts) -> Host | None:
        return next((host for hint in node.hints if (host := self.table.find(hint)) is not None), None)

    def _facts_of_ports(self, reading: Reading) -> list[NodeFacts]:
        """Ports of a subnet by host: interfaces, leaves, spines and island."""
        by_host: dict[str, list[HcaPort]] = {}
        mapped: set[str] = set()
        for port in reading.ports:
            known = next((self.guids[guid] for guid in port.guids if guid in self.guids), None)
            mapped.update(guid for guid in port.guids if guid in self.guids)
            name = known or port.host
            if name is not None:
                by_host.setdefault(name, []).append(port)
        self._remark_ports(reading, by_host)
        unmatched = [guid for guid in self.guids if guid not in mapped]
        if unmatched:
            message = f"{several(len(unmatched), 'GUID is', 'GUIDs are')} on no cable: {shown(unmatched, 4)}"
            self.found.append(warning("GUID_NOT_FOUND", message, "GUIDs are the adapter's own or its system image's", reading.file))
        facts = []
        for name, ports in by_host.items():
            for port in ports:
                for guid in port.guids:
                    self.guids.setdefault(guid, name)
            leaves = tuple(sorted({port.leaf for port in ports}))
            speeds = [port.speed for port in ports if port.speed is not None]
            if len(set(speeds)) > 1:
                message = (
                    f"{name} has ports of {shown([f'{speed * 8 / 1e9:g}Gb/s' for speed in sorted(set(speeds))])}; the slowest is taken"
                )
                self.found.append(warning("NICS_UNEVEN", message, "check the cables", reading.file, ports[0].place.line))
            facts.append(
                NodeFacts(
                    name,
                    ports[0].place,
                    nics=NicFacts(len(ports), min(speeds) if len(speeds) == len(ports) else None, reading.fabric_kind),
                    leaves=leaves,
                    spines=tuple(sorted({spine for leaf in leaves for spine in reading.spines_of_leaf.get(leaf, ())})),
                    island=reading.island_of_leaf.get(leaves[0]),
                )
            )
        return facts

    def _remark_ports(self, reading: Reading, by_host: Mapping[str, Sequence[HcaPort]]) -> None:
        """Tell which adapters belong to no host, and which hosts have fewer ports than most."""
        nameless = [port for port in reading.ports if port.host is None and not any(guid in self.guids for guid in port.guids)]
        if nameless:
            listed = shown([port.guids[0] for port in nameless if port.guids], 4)
            message = f"{len(nameless)} of {several(len(reading.ports), 'adapter port')} name no host: {listed}"
            hint = "give --guid-map with a line `GUID HOST` for each (ibstat on the hosts, or NCCL's topology dump, has them)"
            self.found.append(warning("HCA_WITHOUT_HOST", message, hint, reading.file, nameless[0].place.line))
        usual = Counter(len(ports) for ports in by_host.values()).most_common(1)
        short = sorted(name for name, ports in by_host.items() if len(ports) < usual[0][0])
        if short:
            message = f"{several(len(short), 'host has', 'hosts have')} fewer than the usual {several(usual[0][0], 'port')}: {shown(short)}"
            hint = "look for missing cables, or adapters that name no host"
            self.found.append(warning("HOST_PORTS_MISSING", message, hint, reading.file))

    def _merge(self, reading: Reading, facts: Sequence[NodeFacts], *, missing_matters: bool) -> None:
        """Join the nodes of one file with the table, and tell which have no partner on the other side."""
        seen: set[str] = set()
        strangers: list[str] = []
        for node in facts:
            assert node.name is not None
            host = self.table.find(node.name)
            if host is None:
                strangers.append(node.name)
                continue
            seen.add(host.name)
            self.table.merge(host, node, reading.origin)
        strangers = [name for name in strangers if usable_name(name)]
        if strangers:
            message = f"{several(len(strangers), 'host')} of {reading.file} in no list of nodes left out: {shown(strangers)}"
            self.found.append(warning("JOIN_LEFT_OUT", message, "correct their names, or leave the list of nodes out", reading.file))
        missing = [name for name in self.table.hosts if name not in seen]
        if missing and missing_matters:
            message = f"{several(len(missing), 'node is', 'nodes are')} not in {reading.file}: {shown(missing)}"
            self.found.append(warning("JOIN_MISSING", message, "check their names in both files; --guid-map names adapters", reading.file))

    def _name_pictures(self, pictures: Sequence[tuple[NodeFacts, Reading]]) -> None:
        """Without any list, hosts are those asked for, else one for every picture."""
        for name in self.asked:
            self.table.add(name)
        if self.asked or not pictures:
            return
        for number, (node, reading) in enumerate(pictures, start=1):
            hint = next((hint for hint in node.hints if usable_name(hint)), None)
            name = hint if hint is not None and hint not in self.table.hosts else f"node-{number}"
            self.table.merge(self.table.add(name), node, reading.origin)
            if hint is None:
                message = f"the file does not say which node it is; {name} is taken"
                self.found.append(note("HOST_ASSUMED", message, "give --hosts, h100-[01-16] for example", reading.file, node.place.line))

    def _place_pictures(self, pictures: Sequence[tuple[NodeFacts, Reading]], *, listed: bool) -> None:
        """Give every picture to its host, or to all hosts it fits."""
        if not listed and not self.asked:
            return
        general: list[tuple[NodeFacts, Reading]] = []
        for node, reading in pictures:
            by_guid = [self.table.find(self.guids[guid]) for guid in node.guids if guid in self.guids]
            host = self._hinted(node) or next((found for found in by_guid if found is not None), None)
            if host is None:
                general.append((node, reading))
            else:
                self.table.merge(host, node, reading.origin)
        for node, reading in general:
            fitting = [host for host in self.table.hosts.values() if host.scale_up is None and _fits(node, host)]
            for host in fitting:
                self.table.merge(host, node, reading.origin)
            if not fitting:
                message = f"{several(node.gpus or 0, 'GPU')} as shown fit no node that is still unknown inside"
                hint = "check the count and type of GPUs; a container shows only some of them"
                self.found.append(warning("PICTURE_FITS_NO_NODE", message, hint, reading.file, node.place.line))
            elif len(self.table.hosts) > 1:
                message = f"taken for the inside of {several(len(fitting), 'node')}: {shown([host.name for host in fitting], 3)}"
                self.found.append(note("PICTURE_SHARED", message, "give one file a node where they differ", reading.file, node.place.line))

    def _labels_used(self) -> None:
        if self.order and not any(host.leaves for host in self.table.hosts.values()):
            message = f"no node bears the labels {shown(self.order)}"
            file = next(reading.file for reading in self.readings if reading.label_order)
            self.found.append(warning("LABELS_NOT_FOUND", message, "compare the Topology's levels with the nodes' labels", file))


def _fits(node: NodeFacts, host: Host) -> bool:
    return (host.gpus is None or host.gpus == node.gpus) and (host.gpu is None or node.gpu is None or host.gpu == node.gpu)


def _reordered(reading: Reading, order: tuple[str, ...]) -> Reading:
    """Nodes of a Kubernetes list with their place in the network read by a Kueue Topology's order."""
    if not order or reading.kind != "kubernetes":
        return reading
    nodes = []
    for node in reading.nodes:
        tiers = tiers_of(node.labels, order)
        leaf, spine = tuple(filter(None, [tiers.leaf])), tuple(filter(None, [tiers.spine]))
        nodes.append(replace(node, leaves=leaf, spines=spine, island=tiers.island))
    return replace(reading, nodes=tuple(nodes))


def _expanded(hosts: str | None) -> tuple[str, ...]:
    if hosts is None:
        return ()
    try:
        return expand_hosts(re.sub(r"\s+", "", hosts), MOST_HOSTS)
    except HostListError as error:
        raise PlannerError([Diagnostic(error.code, f"--hosts: {error.message}", error.hint)]) from None
