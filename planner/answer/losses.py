"""What the worst loss of one failure domain would leave of a deployment that must survive it, and what goes unserved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from planner.answer.mix import carried
from planner.candidates.menu import Menu
from planner.plan.outcome import Outcome, RankPlace
from planner.problem.load import LoadedProblem


def worst_losses(loaded: LoadedProblem, menu: Menu, outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """Yield deployment, rule and a sentence for every deployment with `resilience`."""
    for index, deployment in enumerate(loaded.problem.deployments):
        found = _worst(loaded, outcome, index)
        if deployment.resilience is not None and found is not None:
            worst, left = found
            lost, unit = f"the worst {deployment.resilience.lose} to lose, {worst},", menu.load_units[index]
            yield deployment.name, "resilience", f"{lost} leaves room for {left:,.6g} of {menu.loads[index]:,.6g} {unit}"


def unserved(loaded: LoadedProblem, menu: Menu, outcome: Outcome, index: int) -> float:
    """Load of a deployment that the plan does not promise to serve, in its unit; nothing where all must be served.

    Of what is promised the replicas carry all, and after the worst loss the share that must be left.
    """
    deployment, load = loaded.problem.deployments[index], menu.loads[index]
    if not deployment.may_go_unserved or loaded.problem.objective == "throughput":
        return 0.0
    promised = carried(loaded, menu, outcome, index)
    found = _worst(loaded, outcome, index)
    if deployment.resilience is not None and found is not None:
        promised = min(promised, found[1] / deployment.resilience.keep)
    return max(0.0, load - promised)


def _worst(loaded: LoadedProblem, outcome: Outcome, index: int) -> tuple[str, float] | None:
    """Failure domain whose loss takes most of a deployment that must survive it, and what is then left; None where there is none."""
    resilience = loaded.problem.deployments[index].resilience
    if resilience is None:
        return None
    own = [replica for replica in outcome.replicas if replica.shape.deployment == index]
    if not own:
        return None
    lost: dict[str, float] = defaultdict(float)
    for replica in own:
        for domain in {_domain(loaded, resilience.lose, rank) for rank in replica.ranks}:
            lost[domain] += replica.shape.capacity
    worst = max(sorted(lost), key=lambda domain: lost[domain])
    return worst, sum(replica.shape.capacity for replica in own) - lost[worst]


def _domain(loaded: LoadedProblem, kind: str, rank: RankPlace) -> str:
    if kind == "gpu":
        return f"{rank.node}:{rank.gpu}"
    return loaded.fabric.failure_domains(rank.node)[kind]
