"""What replicas that stay use of a scope: of its parts, of its nodes, of its failure domains."""

from __future__ import annotations

from collections.abc import Sequence

from planner.solve.instance import PoolScopes, Seat


def bins_of(scopes: PoolScopes, scope: int) -> tuple[int, ...]:
    """Free GPUs of a scope by part, where it has pairs or meshes, else all together."""
    return scopes.parts[scope] if scopes.parts else (int(scopes.free[scope]),)


def nodes_of(scopes: PoolScopes, scope: int) -> tuple[int, ...]:
    """Free GPUs of a scope by node (or by part of a node, where only some GPUs may be used); a scope without several nodes is one."""
    return scopes.nodes[scope] if scopes.nodes else (int(scopes.free[scope]),)


def used_of(runs: Sequence[int], positions: Sequence[int]) -> tuple[int, ...]:
    """How many of the `positions` lie in each of the `runs` of GPUs that make up a scope in this order."""
    found = []
    start = 0
    for run in runs:
        found.append(sum(start <= position < start + run for position in positions))
        start += run
    return tuple(found)


def at(seat: Seat, scope: int) -> tuple[int, ...]:
    """Positions that one replica of a seat uses of a scope; replicas of a seat use equally many of every run."""
    return next((positions for place, positions in seat.replicas[0] if place == scope), ())


def scopes_used(seat: Seat) -> tuple[int, ...]:
    """Scopes that the replicas of a seat use; the same for all of them."""
    return tuple(scope for scope, _ in seat.replicas[0])


def remaining(scopes: PoolScopes, scope: int, seats: Sequence[Seat]) -> tuple[tuple[int, ...], ...]:
    """Every room by bin that may be left of a scope once some of the seats are taken, the emptiest scope first; none where nothing is left.

    A scope billed by node may be opened in part, so any number of its GPUs may be left.
    """
    bins = bins_of(scopes, scope)
    if scopes.node_price is not None and not scopes.parts:
        return tuple((left,) for left in range(bins[0], 0, -1))
    found = {bins}
    for seat in seats:
        used = used_of(bins, at(seat, scope))
        taken = set(found)
        for _ in seat.replicas:
            taken = {tuple(have - need for have, need in zip(room, used, strict=True)) for room in taken}
            found |= {room for room in taken if min(room) >= 0}
    return tuple(sorted((room for room in found if sum(room)), reverse=True))


def touched(scopes: PoolScopes, seat: Seat, kind: str) -> tuple[int, ...]:
    """Failure domains of a kind in which the replicas of a seat have GPUs."""
    found: set[int] = set()
    for scope, positions in seat.replicas[0]:
        labels = scopes.domains[kind][scope]
        used = used_of(nodes_of(scopes, scope), positions) if len(labels) > 1 else (len(positions),)
        found |= {label for label, count in zip(labels, used, strict=True) if count}
    return tuple(sorted(found))
