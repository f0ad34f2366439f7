"""What the formulation is asked, as integers: shapes in columns, scopes in columns, loads and limits.

Nothing here knows of YAML, graphs or physics, so a test can write an instance by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.solve.buckets import NOT_SERVED, Slicing

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Container(IntEnum):
    """What must hold all groups of one replica together, loosest first."""

    ANYWHERE = 0
    FABRIC = 1
    SPINE = 2
    LEAF = 3


@dataclass(frozen=True)
class ShapeColumns:
    """Shapes as integer columns of equal length n.

    A replica of shape s is `groups` groups of `size` GPUs, each inside one scale-up scope of pool `pool` (inside one of its parts, a pair
    or mesh, where `within_part`), all of them inside one `container`. `capacity` is what a replica serves [units of load x the
    deployment's scale, rounded down], `share` the same as a share of the load [1e-6, rounded down], `price` what it costs billed by GPU
    [1e-6 $/h], `comm` its communication time of one decode step [ns], `tpot` and `ttft` its times [ns], `token_time` what a replica adds to the
    value that tells plans of equal cost apart ([ns], see `token_time.token_times`). Shapes of one deployment with the same `form` are one shape to its user, on different pools. Where loads are in buckets, `use` [n, buckets] is what one slice of a bucket takes of a
    replica [`Slicing.unit`-ths, rounded up; `NOT_SERVED` where it may not serve the bucket] and `bucket_tpot` [n, buckets] the time per token there [ns].
    A shape whose `spare_of` [n] is not -1 serves nothing: its replicas are GPUs kept free for replicas of the shape with that source.
    """

    deployment: IntArray
    pool: IntArray
    size: IntArray
    groups: IntArray
    container: IntArray
    within_part: BoolArray
    capacity: IntArray
    share: IntArray
    price: IntArray
    comm: IntArray
    tpot: IntArray
    ttft: IntArray
    form: IntArray
    token_time: IntArray
    use: IntArray | None = None
    bucket_tpot: IntArray | None = None
    spare_of: IntArray | None = None

    def __len__(self) -> int:
        return len(self.deployment)

    @property
    def gpus(self) -> IntArray:
        """GPUs of one replica [n]."""
        return self.size * self.groups

    def take(self, chosen: IntArray | BoolArray) -> ShapeColumns:
        """Only the chosen shapes, by index or mask."""
        columns: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            column = getattr(self, name)
            columns[name] = None if column is None else column[chosen]
        return ShapeColumns(**columns)


@dataclass(frozen=True)
class PoolScopes:
    """The scale-up scopes of one pool as columns of equal length D.

    `free` usable GPUs, `capacity` all GPUs, `leaf`, `spine` and `fabric` numbers of the parts
    of the network they lie in (each inside the next), `order` the canonical rank of the scope by
    its name. `parts` holds the free GPUs of each pair or mesh of every scope (empty tuples without them), `nodes` those of each node.
    `node_price` is what opening one node costs where the pool is billed by whole node [1e-6 $/h], else None. `untouched` asks what freeing
    GPUs would bring: `free` then counts all GPUs that could be free, `untouched` those that are. `domains` maps a kind of failure domain to
    the domain of each node of every scope, numbered over all pools (one number for a scope that is not listed by `nodes`). Where only some GPUs of a node may be used, `nodes` lists its parts, and `arranged` gives
    the order of the scope's free GPUs that makes each part a run.
    """

    free: IntArray
    capacity: IntArray
    leaf: IntArray
    spine: IntArray
    fabric: IntArray
    order: IntArray
    parts: tuple[tuple[int, ...], ...]
    nodes: tuple[tuple[int, ...], ...]
    node_price: int | None = None
    untouched: IntArray | None = None
    domains: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    arranged: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    _slots: dict[int, int] = field(default_factory=dict, compare=False, repr=False)
    _labels: dict[str, IntArray | None] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.free)

    def slots(self, size: int) -> int:
        """Groups of `size` that the whole pool holds: sum over scopes of floor(free / size), kept once computed."""
        if size not in self._slots:
            self._slots[size] = int((self.free // size).sum())
        return self._slots[size]

    def label(self, kind: str) -> IntArray | None:
        """Domain of a kind of every scope [D], kept once read; None where a scope reaches into several."""
        if kind not in self._labels:
            found = self.domains[kind]
            one = all(len(set(own)) == 1 for own in found)
            self._labels[kind] = np.fromiter((own[0] for own in found), dtype=np.int64, count=len(found)) if one else None
        return self._labels[kind]


@dataclass(frozen=True)
class Seat:
    """Replicas that run already, alike in shape and in what they use of every scope; any number of them may stay where they are.

    `source` is the index of their shape in the caller's list. `replicas` holds the places of each: (scope, positions) for every scope it
    uses, both within its pool.
    """

    source: int
    replicas: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]


@dataclass(frozen=True)
class ReplicaLimits:
    """Least and most replicas of one deployment, and whether all must have the same shape."""

    minimum: int = 0
    maximum: int | None = None
    one_shape: bool = False


@dataclass(frozen=True)
class Spread:
    """At most `most` replicas of a deployment have GPUs in any one failure domain of `kind`."""

    kind: str
    most: int = 1


@dataclass(frozen=True)
class Resilience:
    """After the loss of any one failure domain of `kind` the replicas without GPUs in it serve at least `keep` of the load."""

    kind: str
    keep: Fraction = Fraction(1)


@dataclass(frozen=True)
class DeploymentRules:
    """Rules of one deployment about where its replicas stand and what may be missing; None and 0 where it asks nothing.

    Deployments of a higher `priority` are served first where load may go unserved. `only` names the kind of domain that tells the GPUs which the
    deployment may use from the others (numbered 0); empty where it may use all. `spares` is the number of replicas of every shape in use that must
    find GPUs kept free for them at once. `placed_apart` is a spread that the placement keeps once the replicas are chosen: the program only bounds their number.
    """

    spread: Spread | None = None
    resilience: Resilience | None = None
    priority: int = 0
    may_go_unserved: Fraction = Fraction(0)
    only: str = ""
    spares: int = 0
    placed_apart: Spread | None = None

    @property
    def apart(self) -> Spread | None:
        """How replicas keep apart; None over GPUs too, as every replica has its own."""
        return None if self.spread is None or self.spread.kind == "gpu" else self.spread

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of failure domain whose replicas must be counted; GPUs need no counting, as every replica has its own."""
        asked = [rule.kind for rule in (self.spread, self.resilience) if rule is not None and rule.kind != "gpu"]
        return tuple(sorted({*asked, self.only} - {""}))


NO_RULES = DeploymentRules()


@dataclass(frozen=True)
class GpuBudget:
    """At most `limit` GPUs of one type, which the listed pools hold."""

    name: str
    pools: tuple[int, ...]
    limit: int


@dataclass(frozen=True)
class Budget:
    """Most money [1e-6 $/h] and most GPUs by type; None and empty where nothing is limited."""

    per_hour: int | None = None
    gpus: tuple[GpuBudget, ...] = ()


@dataclass(frozen=True)
class Instance:
    """One question to the solver: which counts of which shapes, under which limits, by which objective.

    `loads` [units of load x the deployment's scale, rounded up], one per deployment, as `limits`. `objective` is cost, gpus, latency or
    throughput. `priced` tells whether money may break ties. `source` maps a shape to its index in the caller's list. `rules` are empty where no
    deployment has any, `slicing` where no load is in buckets. `seats` are replicas that run already: their shapes are shapes of the instance (of one group that holds all of the
    replica's GPUs) which exist only there. `move_price` is what every other replica costs besides [1e-6 $/h], None where no plan runs yet.
    """

    shapes: ShapeColumns
    loads: IntArray
    pools: tuple[PoolScopes, ...]
    limits: tuple[ReplicaLimits, ...]
    budget: Budget = field(default_factory=Budget)
    objective: str = "cost"
    priced: bool = True
    source: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rules: tuple[DeploymentRules, ...] = ()
    slicing: tuple[Slicing | None, ...] = ()
    seats: tuple[Seat, ...] = ()
    move_price: int | None = None

    @cached_property
    def kept(self) -> BoolArray:
        """Mask of the shapes [n] of replicas that stay where they run."""
        mask: BoolArray = np.isin(self.source, np.array([seat.source for seat in self.seats], dtype=np.int64))
        return mask if self.seats else np.zeros(len(self.shapes), dtype=np.bool_)

    def seats_of_pool(self, pool: int) -> list[tuple[int, int, Seat]]:
        """Seats on one pool as (number of the seat, shape, seat)."""
        shapes = {source: shape for shape, source in enumerate(self.source.tolist())} if self.seats else {}
        found = [(number, shapes.get(seat.source, -1), seat) for number, seat in enumerate(self.seats)]
        return [(number, shape, seat) for number, shape, seat in found if shape >= 0 and self.shapes.pool[shape] == pool]

    def without_seats(self) -> Instance:
        """Give the same question with nothing running yet."""
        return replace(self.keep(~self.kept), seats=(), move_price=None) if self.seats else replace(self, move_price=None)

    @property
    def deployments(self) -> int:
        """Number of deployments."""
        return len(self.loads)

    def rules_of(self, deployment: int) -> DeploymentRules:
        """Rules of one deployment about where its replicas stand."""
        return self.rules[deployment] if self.rules else NO_RULES

    @cached_property
    def spare(self) -> BoolArray:
        """Mask of the shapes [n] that only keep GPUs free."""
        spare_of = self.shapes.spare_of
        return np.zeros(len(self.shapes), dtype=np.bool_) if spare_of is None else np.asarray(spare_of >= 0, dtype=np.bool_)

    def serving(self, deployment: int) -> IntArray:
        """Indices of the shapes of one deployment that serve its load."""
        return np.flatnonzero((self.shapes.deployment == deployment) & ~self.spare)

    def slicing_of(self, deployment: int) -> Slicing | None:
        """Buckets of the load of one deployment; None where it has none."""
        return self.slicing[deployment] if self.slicing else None

    def served_buckets(self, shape: int) -> dict[int, int]:
        """Use of a replica of a shape by one slice of each bucket that it may serve; empty where its load is not in buckets."""
        slicing, use = self.slicing_of(int(self.shapes.deployment[shape])), self.shapes.use
        if slicing is None or use is None:
            return {}
        return {bucket: int(use[shape, bucket]) for bucket in slicing.buckets if use[shape, bucket] != NOT_SERVED}

    def may_go_unserved(self, deployment: int) -> int:
        """Most load of a deployment that may go unserved, in units of `loads`."""
        part = self.rules_of(deployment).may_go_unserved
        return int(self.loads[deployment]) * part.numerator // part.denominator

    def must_serve(self, deployment: int) -> bool:
        """Whether some of the load of a deployment must be served, whatever the room."""
        return self.may_go_unserved(deployment) < int(self.loads[deployment]) or self.objective == "throughput"

    def kinds_of_pool(self, pool: int) -> tuple[str, ...]:
        """Kinds of failure domain that deployments with shapes on a pool count their replicas by."""
        deployments = sorted(set(self.shapes.deployment[self.of_pool(pool)].tolist())) if self.rules else []
        return tuple(sorted({kind for deployment in deployments for kind in self.rules_of(deployment).kinds}))

    def of_deployment(self, deployment: int) -> IntArray:
        """Indices of the shapes of one deployment."""
        return np.flatnonzero(self.shapes.deployment == deployment)

    def of_pool(self, pool: int) -> IntArray:
        """Indices of the shapes on one pool."""
        return np.flatnonzero(self.shapes.pool == pool)

    def fresh_of_pool(self, pool: int) -> IntArray:
        """Indices of the shapes on one pool that are placed anew."""
        return np.flatnonzero((self.shapes.pool == pool) & ~self.kept)

    def keep(self, chosen: IntArray | BoolArray) -> Instance:
        """Give the same question over fewer shapes."""
        return replace(self, shapes=self.shapes.take(chosen), source=self.source[chosen])
