"""The map: spines hold leaves, leaves hold NVLink domains, domains hold nodes, nodes hold GPUs; beyond a thousand nodes only leaves are drawn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from planner.plan.document import PlanDocument
from planner.plan.fabric import FabricDocument, NodesDocument
from planner.topology.host_lists import expand_hosts

MOST_DRAWN: Final = 1_000
"""Nodes whose GPUs are drawn one by one."""

MOST_FOLDED: Final = 64
"""Nodes up to which idle nodes are drawn too; in larger fleets alike idle nodes are folded into one tile."""

COLOURS: Final = 8


@dataclass(frozen=True)
class Cell:
    """One GPU: index, state (free, taken, failed, used or spare), number of its deployment, stage, the rank on it, and what to say of it."""

    gpu: int
    state: str
    deployment: int = 0
    stage: int = 0
    rank: int = 0
    starts_group: bool = False
    words: str = ""


@dataclass(frozen=True)
class Tile:
    """A node with its GPUs, or `count` alike idle nodes folded into one."""

    name: str
    gpu: str
    cells: tuple[Cell, ...]
    words: str
    count: int = 1


@dataclass
class Box:
    """What hangs on one leaf (and lies in one NVLink domain, where that holds several hosts)."""

    spine: str
    leaf: str
    domain: str
    gpu: str
    tiles: list[Tile] = field(default_factory=list)
    nodes: int = 0
    gpus: int = 0
    free: int = 0
    taken: int = 0
    failed: int = 0
    spare: int = 0
    used: Counter[int] = field(default_factory=Counter)

    @property
    def idle(self) -> int:
        """GPUs that are free and stay so."""
        return self.free - self.spare - sum(self.used.values())


@dataclass(frozen=True)
class Seat:
    """Where a rank sits, as the map needs it."""

    deployment: int
    stage: int
    rank: int
    starts_group: bool
    words: str
    spare: bool = False


def seats_of(plan: PlanDocument) -> dict[tuple[str, int], Seat]:
    """Every GPU in use with the rank on it."""
    found: dict[tuple[str, int], Seat] = {}
    for number, deployment in enumerate(plan.deployments):
        several = len(deployment.replicas) > 1
        for index, replica in enumerate(deployment.replicas, start=1):
            label = deployment.name + (f" replica {index}" if several else "")
            for rank in replica.ranks:
                parts = [f"rank {rank.rank}"]
                parts += [f"stage {rank.stage}"] if replica.shape.pp > 1 else []
                parts += [f"TP rank {rank.tp_rank}"] if replica.shape.tp > 1 else []
                parts += [f"DP rank {rank.dp_rank}"] if replica.shape.dp > 1 else []
                parts += [f"EP rank {rank.ep_rank}"] if replica.shape.ep > 1 else []
                found[rank.node, rank.gpu] = Seat(number, rank.stage, rank.rank, rank.tp_rank == 0, f"{label}: {', '.join(parts)}")
        for spare in deployment.spares:
            for rank in spare.ranks:
                words = f"kept free for a lost replica of {deployment.name}"
                found[rank.node, rank.gpu] = Seat(number, rank.stage, rank.rank, rank.tp_rank == 0, words, spare=True)
    return found


def shown_fabric(plan: PlanDocument) -> FabricDocument:
    """The plan's own fabric; for a plan without one, the nodes it uses with as many GPUs as it shows."""
    if plan.fabric is not None:
        return plan.fabric
    highest: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for deployment in plan.deployments:
        for replica in deployment.replicas:
            for rank in replica.ranks:
                highest[rank.node] = max(highest.get(rank.node, 0), rank.gpu + 1)
                kinds[rank.node] = replica.shape.gpu
    nodes = (NodesDocument(nodes=name, count=1, gpu=kinds[name], gpus=count, free_gpus=count) for name, count in highest.items())
    return FabricDocument(name=plan.problem, nodes=tuple(nodes), links=())


def boxes_of(plan: PlanDocument) -> tuple[Box, ...]:
    """Boxes of the map in the order of the topology."""
    fabric = shown_fabric(plan)
    seats = seats_of(plan)
    total = sum(entry.count for entry in fabric.nodes)
    used: dict[str, list[Seat]] = defaultdict(list)
    for (node, _), seat in seats.items():
        used[node].append(seat)
    boxes: dict[tuple[str, str, str, str], Box] = {}
    for entry in fabric.nodes:
        key = (entry.spine, entry.leaf, entry.domain, entry.gpu)
        box = boxes.setdefault(key, Box(*key))
        names = expand_hosts(entry.nodes, max(entry.count, 1))
        box.nodes += entry.count
        box.gpus += entry.count * entry.gpus
        box.free += entry.free_gpus
        box.taken += entry.taken_gpus
        box.failed += entry.failed_gpus
        here = [seat for name in names for seat in used.get(name, ())]
        box.used.update(seat.deployment for seat in here if not seat.spare)
        box.spare += sum(seat.spare for seat in here)
        if total <= MOST_DRAWN:
            box.tiles.extend(_tiles(entry, names, seats, used, folded=total > MOST_FOLDED))
    return tuple(boxes.values())


def _tiles(
    entry: NodesDocument, names: tuple[str, ...], seats: dict[tuple[str, int], Seat], used: dict[str, list[Seat]], *, folded: bool
) -> Iterator[Tile]:
    idle = [name for name in names if name not in used]
    shown = [name for name in names if name in used] if folded else list(names)
    for name in shown:
        cells = tuple(_cell(entry, name, gpu, seats.get((name, gpu))) for gpu in range(entry.gpus))
        yield Tile(name, entry.gpu, cells, _tile_words(name, entry, cells))
    if folded and idle:
        cells = tuple(_cell(entry, idle[0], gpu, None) for gpu in range(entry.gpus))
        yield Tile(idle[0] if len(idle) == 1 else f"{len(idle)} idle", entry.gpu, cells, f"{len(idle)} idle nodes", len(idle))


def _cell(entry: NodesDocument, node: str, gpu: int, seat: Seat | None) -> Cell:
    starts = any(part[0] == gpu for part in entry.parts)
    if seat is not None:
        words = f"{node} GPU {gpu} · {seat.words}"
        return Cell(gpu, "spare" if seat.spare else "used", seat.deployment, seat.stage, seat.rank, seat.starts_group or starts, words)
    state = "taken" if gpu in entry.taken else "failed" if gpu in entry.failed else "free"
    return Cell(gpu, state, starts_group=starts, words=f"{node} GPU {gpu} · {state}")


def _tile_words(name: str, entry: NodesDocument, cells: tuple[Cell, ...]) -> str:
    counts = Counter(cell.state for cell in cells)
    return f"{name}, {entry.gpus} x {entry.gpu}: " + ", ".join(f"{count} {state}" for state, count in counts.items())
