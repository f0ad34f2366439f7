"""Replicas keep apart."""

from __future__ import annotations

from planner.plan.outcome import Status
from planner.solve.instance import Container, DeploymentRules, Spread
from tests.rules.pairs import assert_only_this_rule_forbids, status
from tests.solve.fleets import ScopeRow, ShapeRow, instance_of, pool_of


def spread(kind: str, most: int = 1) -> list[DeploymentRules]:
    return [DeploymentRules(Spread(kind, most))]


def test_one_replica_in_every_node():
    rows = [ShapeRow(2)]
    apart = pool_of([ScopeRow(2), ScopeRow(2)])
    assert status(instance_of(rows, [2], [apart], rules=spread("node"))) is Status.OPTIMAL
    together = pool_of([ScopeRow(4), ScopeRow(1)])
    assert_only_this_rule_forbids(instance_of(rows, [2], [together], rules=spread("node")), "spread")


def test_as_many_replicas_in_a_leaf_as_allowed():
    rows = [ShapeRow(4)]
    pool = pool_of([ScopeRow(8, leaf=0), ScopeRow(8, leaf=0), ScopeRow(8, leaf=1)])
    assert status(instance_of(rows, [4], [pool], rules=spread("leaf", 2))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [5], [pool], rules=spread("leaf", 2)), "spread")


def test_a_replica_counts_in_every_domain_it_touches():
    """Two groups of 4 fill three nodes pairwise in any case, so that a node is always shared."""
    rows = [ShapeRow(4, groups=2, container=Container.ANYWHERE)]
    four = pool_of([ScopeRow(4), ScopeRow(4), ScopeRow(4), ScopeRow(4)])
    assert status(instance_of(rows, [2], [four], rules=spread("node"))) is Status.OPTIMAL
    three = pool_of([ScopeRow(8), ScopeRow(4), ScopeRow(4)])
    assert status(instance_of(rows, [2], [three], rules=spread("node"))) is Status.OPTIMAL
    two = pool_of([ScopeRow(4), ScopeRow(12, 16)])
    assert_only_this_rule_forbids(instance_of(rows, [2], [two], rules=spread("node")), "spread")


def test_nodes_inside_one_domain_are_told_apart():
    """A domain of three nodes with 4 GPUs each: groups of 6 take two nodes each, and two of them share one."""
    wide = pool_of([ScopeRow(16, 16, nodes=(4, 4, 4, 4))])
    assert status(instance_of([ShapeRow(6)], [2], [wide], rules=spread("node"))) is Status.OPTIMAL
    narrow = pool_of([ScopeRow(12, 12, nodes=(4, 4, 4))])
    assert_only_this_rule_forbids(instance_of([ShapeRow(6)], [2], [narrow], rules=spread("node")), "spread")


def test_domains_reach_over_pools():
    rows = [ShapeRow(4, pool=0), ShapeRow(4, pool=1)]
    pools = [pool_of([ScopeRow(4, leaf=0)]), pool_of([ScopeRow(4, leaf=0)], first_node=9)]
    assert status(instance_of(rows, [1], pools, rules=spread("leaf"))) is Status.OPTIMAL
    assert_only_this_rule_forbids(instance_of(rows, [2], pools, rules=spread("leaf")), "spread")
