"""Which single failure hurts most: every node, or every leaf, taken out in turn, and the rest planned anew."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import Any

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.plan.diff import difference
from planner.plan.document import PlanDocument
from planner.quantities import format_money
from planner.whatif.node_counts import host_list
from planner.whatif.patching import Base
from planner.whatif.questions import Question
from planner.whatif.results import QuestionResult, Solved
from planner.whatif.scenarios import Change
from planner.whatif.study import Study

KINDS = ("node", "leaf")


def read(base: Base, asked: str) -> Question:
    """Read `node` or `leaf`.

    Raises
    ------
    PlannerError
        FAILURE_KIND_UNKNOWN, also for leaves where no node hangs on one.
    """
    leaves = [name for name in _leaves(base) if name]
    if asked not in KINDS or (asked == "leaf" and not leaves):
        message = f"`{asked[:60]}` is no kind of failure" if asked not in KINDS else "no node of the topology hangs on a named leaf"
        hint = f"write {' or '.join(KINDS) if leaves else 'node'}"
        raise PlannerError([Diagnostic("FAILURE_KIND_UNKNOWN", message, hint, place=Place("--worst-failure"))])
    return partial(_answer, asked)


@dataclass(frozen=True)
class _Failure:
    """What fails together, and how many failures are like it (the same GPUs free, on the same switches, running the same)."""

    name: str
    nodes: tuple[str, ...]
    alike: int
    answer: Solved
    lost: float
    moves: int | None


def _answer(kind: str, study: Study) -> QuestionResult:
    found = _leaf_failures(study) if kind == "leaf" else _node_failures(study)
    base_cost = study.before.cost_per_hour
    ranked = sorted(found, key=lambda item: (item.answer.found, -(item.answer.plan.cost_per_hour or 0.0), -item.lost, -(item.moves or 0)))
    rows = tuple(_row(item, base_cost) for item in ranked)
    unknown = any(item.answer.status in {"unknown", "failed"} for item in found)
    worst = ranked[0]
    lost = _words(worst, study)
    after = "and what is left has no plan that keeps all loads and rules" if not worst.answer.found else _dearer(worst.answer, base_cost)
    sentence = f"the failure of {worst.name} hurts most: {lost}, {after}"
    return QuestionResult(
        question="worst_failure", subject=kind, value=worst.name, unit=kind, proved=not unknown, sentence=sentence, rows=rows
    )


def _words(worst: _Failure, study: Study) -> str:
    """What the failure takes at once: replicas are lost whole, however few of their GPUs fail."""
    stopped = sum(
        any(rank.node in worst.nodes for rank in replica.ranks) for item in study.answer.plan.deployments for replica in item.replicas
    )
    if not stopped:
        return "nothing runs on it"
    replicas = f"{stopped} replicas stop" if stopped > 1 else "1 replica stops"
    if worst.lost:
        return f"{replicas}, {worst.lost:.0%} of a load is not served until it is planned anew"
    return f"{replicas} while the others carry every load"


def _dearer(answer: Solved, base_cost: float | None) -> str:
    cost = answer.plan.cost_per_hour
    if cost is None or base_cost is None:
        return "and what is left carries the loads"
    more = round(cost - base_cost, 2)
    if not more:
        return "and what is left carries the loads at the same cost"
    return f"and what is left carries the loads for {format_money(abs(more), answer.plan.currency)} {'more' if more > 0 else 'less'}"


def _row(item: _Failure, base_cost: float | None) -> dict[str, Any]:
    cost = item.answer.plan.cost_per_hour
    return {
        "fails": item.name,
        "alike": item.alike,
        "lost_at_once": round(item.lost, 6),
        "status": item.answer.status,
        "cost_per_hour": cost,
        "cost_change": None if cost is None or base_cost is None else cost - base_cost,
        "ranks_moved": item.moves,
    }


def _node_failures(study: Study) -> list[_Failure]:
    """One failure for each kind of node: alike nodes lead to the same plans."""
    fabric = study.base.loaded.fabric
    inventory = fabric.inventory
    running = _running(study.answer.plan)
    kinds: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for row, node in enumerate(inventory.names):
        state = inventory.state[int(inventory.first_gpu[row]) : int(inventory.first_gpu[row + 1])].tobytes()
        switches = (int(inventory.leaf[row]), int(inventory.spine[row])) if inventory.groups[int(inventory.group[row])].leaves else (-1, -1)
        together = int(inventory.scope[row]) if len(fabric.scopes.rows(int(inventory.scope[row]))) > 1 else -1
        kinds[int(fabric.pool_of_node[row]), switches, state, together, running.get(node, ())].append(node)
    found = []
    for alike in kinds.values():
        answer = study.solved(Change("lose", alike[0]))
        found.append(_failure(study, alike[0], (alike[0],), answer, alike))
    return found


def _leaf_failures(study: Study) -> list[_Failure]:
    found = []
    for name, nodes in _leaves(study.base).items():
        if name:
            found.append(_failure(study, name, nodes, study.solved(Change("lose", name)), [name]))
    return found


def _failure(study: Study, name: str, nodes: tuple[str, ...], answer: Solved, alike: list[str]) -> _Failure:
    moves = difference(study.before, answer.plan).moves if answer.found and study.base_solved.found else None
    shown = name if len(alike) == 1 else host_list(alike) if len(host_list(alike)) <= 60 else f"{name} and {len(alike) - 1} alike"
    return _Failure(shown, nodes, len(alike), answer, _lost(study.answer.plan, frozenset(nodes)), moves)


def _leaves(base: Base) -> dict[str, tuple[str, ...]]:
    """Nodes of every leaf group by its name."""
    fabric = base.loaded.fabric
    inventory = fabric.inventory
    found: dict[str, list[str]] = defaultdict(list)
    for row, node in enumerate(inventory.names):
        if inventory.groups[int(inventory.group[row])].leaves:
            found[fabric.leaf_name(int(inventory.leaf[row]))].append(node)
    return {name: tuple(nodes) for name, nodes in found.items()}


def _running(plan: PlanDocument) -> dict[str, tuple[object, ...]]:
    """What runs on each node: ranks of which deployments, in replicas of which degrees."""
    found: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for deployment in plan.deployments:
        for replica in deployment.replicas:
            shape = replica.shape
            for rank in replica.ranks:
                found[rank.node].append((deployment.name, shape.tp, shape.pp, shape.ep, shape.dp, rank.rank, rank.gpu))
    return {node: tuple(sorted(ranks, key=str)) for node, ranks in found.items()}


def _lost(plan: PlanDocument, nodes: frozenset[str]) -> float:
    """Largest share of a load that is not served at once: what replicas on the failed nodes held, beyond what was to spare."""
    worst = 0.0
    for deployment in plan.deployments:
        left = sum(replica.capacity for replica in deployment.replicas if not any(rank.node in nodes for rank in replica.ranks))
        worst = max(worst, 1.0 - min(1.0, left / deployment.load))
    return worst
