"""The variables of the formulation; the rules in `rules/` write the rows over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.solve.counts import greatest_counts
from planner.solve.instance import Instance
from planner.solve.layout import Item, PoolLayout, ScopeClass, lay_out
from planner.solve.located import Located
from planner.solve.program import Program, add_term
from planner.solve.scaling import SHARE_UNITS


class Opened(NamedTuple):
    """Key of the number of scopes of a class that are used in one way."""

    cell: int
    group: int
    opening: int


class Filled(NamedTuple):
    """Key of the number of scopes of a class that are filled by one pattern."""

    cell: int
    group: int
    opening: int
    pattern: tuple[int, ...]


class Held(NamedTuple):
    """Key of the number of groups of one kind that one scope holds, where patterns would be too many."""

    cell: int
    scope: int
    item: Item


@dataclass
class PoolVariables:
    """Variables of one pool, by their keys.

    `demand` [(cell, item)] is the number of groups of a kind in a cell as a linear expression. `opened` exists only for classes whose use
    costs something (`gated`). `pinned` [(shape, container)] counts the replicas of a shape that stay in one leaf or spine. `located` holds the
    replicas that are counted by failure domain. `seats` counts the replicas that stay, by seat, `node_open` [(scope, node)] tells the nodes
    that are paid for where such replicas may stay, `in_use` the scopes there that are used at all, where keeping them whole is asked.
    """

    layout: PoolLayout
    gated: Callable[[ScopeClass], bool]
    demand: dict[tuple[int, Item], dict[int, int]] = field(default_factory=dict)
    opened: dict[Opened, int] = field(default_factory=dict)
    filled: dict[Filled, int] = field(default_factory=dict)
    held: dict[Held, int] = field(default_factory=dict)
    split: dict[tuple[int, Item], int] = field(default_factory=dict)
    pinned: dict[tuple[int, int], int] = field(default_factory=dict)
    located: Located = field(default_factory=Located)
    seats: dict[int, int] = field(default_factory=dict)
    node_open: dict[tuple[int, int], int] = field(default_factory=dict)
    in_use: dict[int, int] = field(default_factory=dict)


@dataclass
class Model:
    """A program under construction: `count[s]` is the variable n_s, `cost` the money as a linear expression [1e-6 $/h].

    `share` is the variable of the served share of every load when throughput is asked, else None. `unserved` holds the variable of the load of a
    deployment that goes unserved, where some may. `slices` [(shape, bucket)] counts the slices of a bucket that go to a shape. `only` names, for a deployment that may not use all GPUs, the kind of domain that tells them apart.
    """

    instance: Instance
    program: Program
    count: tuple[int, ...]
    pools: tuple[PoolVariables, ...]
    cost: dict[int, int]
    share: int | None = None
    unserved: dict[int, int] = field(default_factory=dict)
    slices: dict[tuple[int, int], int] = field(default_factory=dict)
    only: dict[int, str] = field(default_factory=dict)
    keep_whole: bool = False

    def moves(self) -> dict[int, int]:
        """Replicas that do not stay where a replica of the current plan runs, as a linear expression; empty where no plan runs yet."""
        if self.instance.move_price is None:
            return {}
        return {variable: 1 for variable, kept in zip(self.count, self.instance.kept.tolist(), strict=True) if not kept}

    def spending(self) -> dict[int, int]:
        """Money with the price of the moves [1e-6 $/h], as a linear expression."""
        found = dict(self.cost)
        for variable in self.moves():
            add_term(found, variable, self.instance.move_price or 0)
        return found

    def gpus(self) -> dict[int, int]:
        """GPUs in use as a linear expression."""
        return dict(zip(self.count, self.instance.shapes.gpus.tolist(), strict=True))

    def touching(self, deployment: int, kind: str, weights: Sequence[int] | None = None) -> dict[int, dict[int, int]]:
        """Replicas of a deployment with GPUs in each failure domain of a kind, weighted by shape, as linear expressions by domain."""
        found: dict[int, dict[int, int]] = {}
        for pool in self.pools:
            for (shape, of_kind), touched in pool.located.touching.items():
                # GPUs kept free are no replicas.
                if of_kind == kind and self.instance.shapes.deployment[shape] == deployment and not self.instance.spare[shape]:
                    weight = 1 if weights is None else weights[shape]
                    for label, terms in touched.items():
                        for variable, times in terms.items():
                            add_term(found.setdefault(label, {}), variable, times * weight)
        return found

    def token_time(self) -> dict[int, int]:
        """Time per token at the batch that the load makes, a mean over the replicas of each deployment, as a linear expression [ns].

        Of a load in buckets it is the time per token of every slice where it is served, weighted by its share of the load.
        """
        shapes = self.instance.shapes
        times = shapes.token_time.tolist()
        sliced = {shape for shape, _ in self.slices}
        terms = {
            variable: time for shape, (variable, time) in enumerate(zip(self.count, times, strict=True)) if time and shape not in sliced
        }
        for (shape, bucket), variable in self.slices.items():
            slicing = self.instance.slicing_of(int(shapes.deployment[shape]))
            if slicing is not None and shapes.bucket_tpot is not None:
                whole = SHARE_UNITS * slicing.slices
                add_term(terms, variable, int(shapes.bucket_tpot[shape, bucket]) * slicing.shares[bucket] // whole)
        return terms

    def communication(self) -> dict[int, int]:
        """Communication time of one decode step summed over replicas, as a linear expression [ns]."""
        return {variable: comm for variable, comm in zip(self.count, self.instance.shapes.comm.tolist(), strict=True) if comm}

    def whole_scopes(self) -> dict[int, int]:
        """Whole free scopes that are touched, as a linear expression; complete only in a model that keeps scopes whole."""
        terms: dict[int, int] = {}
        for pool in self.pools:
            for key, variable in pool.opened.items():
                group = pool.layout.cells[key.cell].classes[key.group]
                if group.whole and not group.seated:
                    add_term(terms, variable, 1)
            for variable in pool.in_use.values():
                add_term(terms, variable, 1)
        return terms


def _reach(model: Model) -> list[int]:
    """Share of every load [1e-6] that all replicas there is room for would serve; of a load in buckets that of the bucket with least room."""
    instance, upper = model.instance, model.program.upper
    reach = [0] * instance.deployments
    by_bucket: dict[tuple[int, int], int] = {}
    for shape, (deployment, share) in enumerate(zip(instance.shapes.deployment.tolist(), instance.shapes.share.tolist(), strict=True)):
        reach[deployment] += share * upper[model.count[shape]]
        for bucket, use in instance.served_buckets(shape).items():
            key = deployment, bucket
            by_bucket[key] = by_bucket.get(key, 0) + most_slices(instance, shape, use, upper[model.count[shape]])
    for deployment, slicing in enumerate(instance.slicing):
        if slicing is not None:
            least = min(by_bucket.get((deployment, bucket), 0) for bucket in slicing.buckets)
            reach[deployment] = least * SHARE_UNITS // slicing.slices
    return reach


def most_slices(instance: Instance, shape: int, use: int, replicas: int) -> int:
    """Slices of a bucket that so many replicas of a shape have room for; no more than there are unless the load served is to be greatest."""
    slicing = instance.slicing_of(int(instance.shapes.deployment[shape]))
    assert slicing is not None
    room = slicing.unit * replicas // max(use, 1)
    return room if instance.objective == "throughput" else min(slicing.slices, room)


class Rule(NamedTuple):
    """One rule of the formulation: its name, and the function that writes its rows."""

    name: str
    apply: Callable[[Model], None]


def build(instance: Instance, rules: Sequence[Rule], keep_whole: bool = False) -> Model:
    """Build the program of an instance under the given rules.

    With `keep_whole`, using a scope nothing runs on yet is counted, so that a stage can keep such scopes whole.
    """
    program = Program()
    count = tuple(program.add_variable(0, bound) for bound in greatest_counts(instance))
    pools = []
    for pool in range(len(instance.pools)):
        if not len(instance.of_pool(pool)):
            continue
        layout = lay_out(instance, pool)
        billed_by_node = layout.scopes.node_price is not None or layout.scopes.untouched is not None

        def gated(group: ScopeClass, by_node: bool = billed_by_node, pinned: bool = layout.pinned_by_rows) -> bool:
            # Rows that pin over the whole pool need its whole room on their right-hand side; the placement keeps scopes whole there.
            return by_node or group.seated or (keep_whole and group.whole and not pinned)

        variables = PoolVariables(layout, gated)
        for cell_index, cell in enumerate(layout.cells):
            for group_index, group in enumerate(cell.classes):
                if gated(group):
                    row: dict[int, int] = {}
                    for opening_index in range(len(group.openings)):
                        opened = program.add_variable(0, len(group.members))
                        variables.opened[Opened(cell_index, group_index, opening_index)] = opened
                        row[opened] = 1
                    program.add_row("occupancy", row, upper=len(group.members))
        variables.seats = {
            number: program.add_variable(0, min(len(seat.replicas), program.upper[count[shape]]))
            for number, shape, seat in instance.seats_of_pool(pool)
        }
        pools.append(variables)
    cost = dict(zip(count, instance.shapes.price.tolist(), strict=True))
    model = Model(instance, program, count, tuple(pools), cost, keep_whole=keep_whole)
    if instance.objective == "throughput":
        model.share = program.add_variable(0, min(_reach(model), default=0))
    for rule in rules:
        rule.apply(model)
    return model
