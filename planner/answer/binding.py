"""What holds a plan back: the limits that stop a batch from growing and a fleet from serving more."""

from __future__ import annotations

from collections import defaultdict

from planner.answer.losses import unserved, worst_losses
from planner.candidates.menu import Menu
from planner.plan.document import BindingDocument
from planner.plan.outcome import Outcome
from planner.plan.shape import Shape
from planner.problem.load import LoadedProblem
from planner.topology.pool_names import pools_in_words

NEAR = 0.05  # a target met with less than this to spare is a limit


def binding_limits(loaded: LoadedProblem, menu: Menu, outcome: Outcome) -> tuple[BindingDocument, ...]:
    """Limits of the plan: for each deployment what bounds its batch, for each pool how full it is."""
    answer: list[BindingDocument] = []
    # Most replicas share their shape; only different ones are compared in all their figures.
    shapes = {id(replica.shape): replica.shape for replica in outcome.replicas}
    for shape in dict.fromkeys(shapes.values()):
        name = loaded.problem.deployments[shape.deployment].name
        answer.extend(BindingDocument(deployment=name, name=kind, message=words) for kind, words in _shape_limits(menu, shape))
    for name, kind, words in worst_losses(loaded, menu, outcome):
        answer.append(BindingDocument(deployment=name, name=kind, message=words))
    for index, deployment in enumerate(loaded.problem.deployments):
        missing = unserved(loaded, menu, outcome, index)
        if missing:
            words = f"{missing:,.6g} of {menu.loads[index]:,.6g} {menu.load_units[index]} go unserved"
            answer.append(BindingDocument(deployment=deployment.name, name="unserved", message=words))
    used: dict[int, int] = defaultdict(int)
    for replica in outcome.replicas:
        used[replica.shape.pool] += len(replica.ranks)
    words_of = pools_in_words(loaded.fabric)
    for pool in loaded.fabric.pools:
        free = int(loaded.fabric.scopes.free[loaded.fabric.scopes.pool == pool.index].sum())
        if used[pool.index] and used[pool.index] >= free:
            answer.append(BindingDocument(deployment=None, name="gpus", message=_all_used(free, words_of[pool.index])))
    return tuple(answer)


def _all_used(free: int, pool: str) -> str:
    return f"all {free} free {pool} are used" if free > 1 else f"the only free {pool} is used"


def _shape_limits(menu: Menu, shape: Shape) -> list[tuple[str, str]]:
    """Limits of one shape at its batch."""
    context = menu.setting_of(shape)
    limits = []
    targets = context.targets
    tpot, ttft = (shape.times.tpot, shape.times.ttft) if shape.tail is None else (shape.tail.tpot, shape.tail.ttft)
    if tpot >= targets.tpot * (1 - NEAR):
        limits.append(("tpot", f"{targets.words}time per token {tpot * 1e3:.1f} ms of {targets.tpot * 1e3:.1f} ms allows no larger batch"))
    if ttft >= targets.ttft * (1 - NEAR):
        limits.append(("ttft", f"{targets.words}time to first token {ttft:.2f} s of {targets.ttft:.2f} s allows no larger batch"))
    if shape.batch >= shape.memory.max_sequences:
        limits.append(
            ("memory", f"memory holds {shape.memory.max_sequences} sequence{'s' if shape.memory.max_sequences != 1 else ''} and no more")
        )
    if shape.memory.free < shape.memory.other_high - shape.memory.other:
        missing = (shape.memory.other_high - shape.memory.other - shape.memory.free) / 2.0**30
        limits.append(
            ("borderline", f"borderline fit: with the high estimate of activations and buffers {missing:.1f} GiB would be missing")
        )
    if targets.min_efficiency and shape.times.efficiency <= targets.min_efficiency * (1 + NEAR):
        limits.append(("efficiency", f"efficiency {shape.times.efficiency:.0%} is just above the {targets.min_efficiency:.0%} asked"))
    return limits
