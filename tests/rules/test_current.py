"""What runs may stay: exactly where it is, for nothing; everything else is a move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.plan.outcome import Status
from planner.solve.instance import Container, DeploymentRules, Instance, ReplicaLimits, Resilience, Spread
from planner.solve.objectives import Decision, decide
from planner.solve.options import SolveOptions
from planner.solve.placement import place
from planner.solve.rules import RULES
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ScopeRow, ShapeRow, free_pool, pool_of
from tests.solve.running import Running, best_with_moves, random_running, running_instance


def solved(instance: Instance) -> tuple[Decision, int, int]:
    """Decision, money with moves, and moves."""
    decision = decide(instance, SolveOptions(), RULES)
    assert decision.status is Status.OPTIMAL
    values = {stage.name: stage.value for stage in decision.stages}
    return decision, values["cost"], values["moves"]


def test_what_stays_leaves_no_room_to_others():
    """Only the replica that runs serves the first deployment, and beside it no group of 8 fits."""
    running = [Running(ShapeRow(4, deployment=0), ((0, (0, 1, 2, 3)),))]
    rows = [ShapeRow(4, deployment=1), ShapeRow(8, deployment=2)]
    assert status(running_instance(rows[:1], running, [1, 1], [free_pool(8)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(running_instance([replace(rows[1], deployment=1)], running, [1, 1], [free_pool(8)]), "current")


def test_room_is_rounded_down_after_what_stays():
    """Three GPUs of each of two scopes are in use: 5 + 5 are left, which hold two groups of 4, not two and a half."""
    kept = [Running(ShapeRow(3, deployment=0), ((scope, (0, 1, 2)),)) for scope in (0, 1)]
    rows = [ShapeRow(4, deployment=1)]
    assert status(running_instance(rows, kept, [2, 2], [free_pool(8, 8)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(running_instance(rows, kept, [2, 3], [free_pool(8, 8)]), "current")


def test_a_pair_in_use_is_no_pair():
    kept = [Running(ShapeRow(1, deployment=0), ((0, (0,)),))]
    rows = [ShapeRow(2, deployment=1, within_part=True)]
    fits = pool_of([ScopeRow(4, parts=(2, 2))])
    assert status(running_instance(rows, kept, [1, 1], [fits])) is Status.OPTIMAL
    assert_only_this_rule_forbids(running_instance(rows, kept, [1, 2], [fits]), "current")


def test_what_stays_spreads_too():
    """One replica runs in the first node; the second must go to the other."""
    kept = [Running(ShapeRow(2), ((0, (0, 1)),))]
    rules = [DeploymentRules(Spread("node"))]
    apart = running_instance([ShapeRow(2)], kept, [2], [free_pool(4, 2)], rules=rules)
    decision, _, moves = solved(apart)
    assert moves == 1
    assert {group.scope for replica in place(decision.model, decision.values) for group in replica.groups} == {0, 1}
    assert_only_this_rule_forbids(running_instance([ShapeRow(2)], kept, [2], [free_pool(4, 1)], rules=rules), "spread")


def test_what_stays_survives_too():
    """Both replicas run on one node: one of them has to go."""
    kept = [Running(ShapeRow(2), ((0, (number, number + 1)),)) for number in (0, 2)]
    rules = [DeploymentRules(resilience=Resilience("node"))]
    _, _, moves = solved(running_instance([ShapeRow(2)], kept, [1], [free_pool(4, 4)], 100, rules=rules))
    assert moves == 1


@pytest.mark.parametrize(("price", "moves"), [(0, 2), (4, 2), (6, 0)])
def test_moves_are_weighed_against_money(price, moves):
    """Two cheap replicas would save 11: not for two moves of 6."""
    kept = [Running(ShapeRow(8, capacity=2, price=15), ((0, tuple(range(8))),))]
    decision, money, found = solved(running_instance([ShapeRow(1, price=2)], kept, [2], [free_pool(8, 8)], price))
    assert found == moves
    assert money == (15 if moves == 0 else 4 + 2 * price)
    placed = place(decision.model, decision.values)
    assert [replica.stays for replica in placed] == ([(0, 0)] if moves == 0 else [None, None])


def test_the_most_replicas_count_what_stays():
    kept = [Running(ShapeRow(1), ((0, (0,)),))]
    limits = [ReplicaLimits(maximum=2)]
    assert status(running_instance([ShapeRow(1)], kept, [2], [free_pool(8)], limits=limits)) is Status.OPTIMAL
    assert_only_this_rule_forbids(running_instance([ShapeRow(1)], kept, [3], [free_pool(8)], limits=limits), "replicas")


def test_a_pipeline_stays_in_all_its_scopes():
    kept = [Running(ShapeRow(8, deployment=0), ((0, (4, 5, 6, 7)), (1, (0, 1, 2, 3))))]
    rows = [ShapeRow(8, deployment=1, container=Container.ANYWHERE)]
    assert status(running_instance(rows, kept, [1, 1], [free_pool(8, 8, 8)])) is Status.OPTIMAL
    assert_only_this_rule_forbids(running_instance(rows, kept, [1, 1], [free_pool(8, 8)]), "current")


def check_random(seed: int) -> None:
    instance = random_running(seed)
    expected = best_with_moves(instance)
    decision = decide(instance, SolveOptions(), RULES)
    if expected is None:
        assert decision.status is Status.INFEASIBLE
        return
    values = {stage.name: stage.value for stage in decision.stages}
    assert (values["cost"], values["moves"]) == expected
    used = set()
    for replica in place(decision.model, decision.values):
        places = tuple((group.scope, group.positions) for group in replica.groups)
        pool = int(decision.model.instance.shapes.pool[replica.shape])
        used_here = {(pool, scope, position) for scope, positions in places for position in positions}
        assert not used & used_here
        used |= used_here
        if replica.stays is not None:
            assert places == instance.seats[replica.stays[0]].replicas[replica.stays[1]]


@pytest.mark.parametrize("seed", [seed for seed in range(24) if seed != 11])
def test_equals_brute_force(seed):
    check_random(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(24, 1024, 20))
def test_equals_brute_force_throughout(first):
    for seed in range(first, first + 20):
        check_random(seed)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_a_higher_price_never_moves_more(seed):
    """Nor does it ever save money besides."""
    seen = []
    for price in (0, 1, 4, 20, 10_000):
        instance = replace(random_running(seed), move_price=price)
        decision = decide(instance, SolveOptions(), RULES)
        if decision.status is Status.INFEASIBLE:
            assert not seen
            continue
        values = {stage.name: stage.value for stage in decision.stages}
        seen.append((values["moves"], values["cost"] - price * values["moves"]))
    assert [moves for moves, _ in seen] == sorted((moves for moves, _ in seen), reverse=True)
    assert [money for _, money in seen] == sorted(money for _, money in seen)


@pytest.mark.parametrize("seed", [4, 6, 7, 9, 10, 12])
def test_for_nothing_the_money_is_that_of_a_fresh_plan(seed):
    """Where all that runs is on the menu: the cheapest plan with moves for nothing costs what it would had nothing run."""
    instance = random_running(seed)
    rows = [index for index in range(len(instance.shapes)) if not instance.kept[index]]
    menu_only = tuple(seat for seat in instance.seats if _on_the_menu(instance, seat.source, rows))
    instance = replace(instance, seats=menu_only, move_price=0)
    instance = instance.keep([*rows, *(index for index in range(len(instance.shapes)) if instance.kept[index])])
    fresh = decide(instance.without_seats(), SolveOptions(), RULES)
    again = decide(instance, SolveOptions(), RULES)
    assert again.status is fresh.status
    assert [stage.value for stage in again.stages[:1]] == [stage.value for stage in fresh.stages[:1]]


def _on_the_menu(instance: Instance, source: int, rows: list[int]) -> bool:
    """Whether some shape of the menu is the same but for where it may stand."""
    columns = instance.shapes
    mine = [int(getattr(columns, name)[source]) for name in ("deployment", "pool", "capacity", "price")] + [int(columns.gpus[source])]
    return any(
        columns.groups[row] == 1
        and not columns.within_part[row]
        and mine == [int(getattr(columns, name)[row]) for name in ("deployment", "pool", "capacity", "price")] + [int(columns.gpus[row])]
        for row in rows
    )
