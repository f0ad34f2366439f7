"""What the worst loss of one failure domain would leave of a deployment that must survive it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from planner.candidates.menu import Menu
from planner.plan.outcome import Outcome, RankPlace
from planner.problem.load import LoadedProblem


def worst_losses(loaded: LoadedProblem, menu: Menu, outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """Yield deployment, rule and a sentence for every deployment with `resilience`."""
    for index, deployment in enumerate(loaded.problem.deployments):
        resilience = deployment.resilience
        own = [replica for replica in outcome.replicas if replica.shape.deployment == index]
        if resilience is None or not own:
            continue
        lost: dict[str, float] = defaultdict(float)
        for replica in own:
            for domain in {_domain(loaded, resilience.lose, rank) for rank in replica.ranks}:
                lost[domain] += replica.shape.capacity
        worst = max(sorted(lost), key=lambda domain: lost[domain])
        total = sum(replica.shape.capacity for replica in own)
        left, load, unit = total - lost[worst], menu.loads[index], menu.load_units[index]
        words = f"the worst {resilience.lose} to lose, {worst}, leaves room for {left:,.0f} of {load:,.0f} {unit}"
        yield deployment.name, "resilience", words


def _domain(loaded: LoadedProblem, kind: str, rank: RankPlace) -> str:
    if kind == "gpu":
        return f"{rank.node}:{rank.gpu}"
    return loaded.fabric.failure_domains(rank.node)[kind]
