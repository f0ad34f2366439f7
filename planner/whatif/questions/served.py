"""How much a fleet can serve at most: of all loads in their proportion, or of one while the others keep theirs.

Shapes are evaluated without the load as a bound of their batch: a replica that may hold 62 sequences is not held down to the 32 asked for. The
figures only say where to look; what is answered is confirmed by solving the problem there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.candidates.menu import Menu, build_menu, load_of
from planner.plan.outcome import Status
from planner.problem.documents import Deployment
from planner.problem.load import LoadedProblem
from planner.solve.instance import Instance
from planner.solve.model import Model, Rule, build
from planner.solve.options import SolveOptions
from planner.solve.reader import read
from planner.solve.rules import RULES
from planner.solve.search import Search
from planner.whatif.study import Study

# More sequences than any replica holds, and more than a problem may ask for.
UNBOUNDED: Final = 10**7


def greatest_share(study: Study, loaded: LoadedProblem) -> tuple[float, bool]:
    """Share of all loads that the fleet can serve at once (1.0 = just what is asked), rounded down a little, and whether it is proved."""
    from planner.solve.answer import solve

    menu = _unbounded_menu(study, loaded, None)
    if {shape.deployment for shape in menu.shapes} != set(range(len(menu.loads))):
        return 0.0, True
    problem = loaded.problem.model_copy(update={"objective": "throughput"})
    loads = [load_of(loaded, index)[0] for index in range(len(menu.loads))]
    outcome = solve(problem, loaded.fabric, menu.shapes, loads, SolveOptions(seed=problem.seed))
    proved = outcome.status in {Status.OPTIMAL, Status.INFEASIBLE}
    return (0.0 if outcome.objective is None else outcome.objective.value), proved


def greatest_load(study: Study, loaded: LoadedProblem, index: int) -> float:
    """Greatest load of one deployment, in its unit with its headroom, that fits beside the loads of the others; 0 where nothing fits.

    The covering row of that deployment leaves the formulation, and its left-hand side is what is made greatest::

        maximise  sum_{s of m} q_s n_s    under every other row
    """
    if loaded.problem.deployments[index].workload.buckets:
        # Of a load in buckets what is served now is where to look.
        return load_of(loaded, index)[0]
    menu = _unbounded_menu(study, loaded, index)
    own = [shape for shape in menu.shapes if shape.deployment == index]
    if {shape.deployment for shape in menu.shapes} != set(range(len(menu.loads))) or not own:
        return 0.0
    loads = [load_of(loaded, each)[0] for each in range(len(menu.loads))]
    # The bound of every count comes from the load; one that all shapes together cannot serve leaves the counts to the fleet.
    slots = int(loaded.fabric.scopes.free.sum())
    loads[index] = max(loads[index], max(shape.capacity for shape in own) * slots)
    problem = loaded.problem.model_copy(update={"objective": "gpus"})
    instance = read(problem, loaded.fabric, menu.shapes, loads)
    rules = [Rule(rule.name, lambda model: _other_loads(model, index)) if rule.name == "load" else rule for rule in RULES]
    model = build(instance, rules)
    served = {model.count[shape]: -int(instance.shapes.capacity[shape]) for shape in instance.serving(index).tolist()}
    result = Search(instance, SolveOptions(seed=problem.seed), rules).run("load", model.program, served, 1.0)
    return 0.0 if result.objective is None else -result.objective / _scale(instance, loads[index], index)


def _other_loads(model: Model, index: int) -> None:
    """Covering rows of all deployments but one."""
    columns = model.instance.shapes
    for deployment in range(model.instance.deployments):
        if deployment != index and model.instance.slicing_of(deployment) is None:
            row = {model.count[shape]: int(columns.capacity[shape]) for shape in model.instance.serving(deployment).tolist()}
            model.program.add_row("load", row, lower=int(model.instance.loads[deployment]))


def _scale(instance: Instance, load: float, index: int) -> float:
    """Integer units of one unit of a deployment's load."""
    return int(instance.loads[index]) / load


def _unbounded_menu(study: Study, loaded: LoadedProblem, index: int | None) -> Menu:
    """Menu in which the load of one deployment (all where None) does not bound the batch."""
    deployments = tuple(
        _unbounded(deployment) if index in {None, number} else deployment for number, deployment in enumerate(loaded.problem.deployments)
    )
    problem = loaded.problem.model_copy(update={"deployments": deployments})
    return build_menu(replace(loaded, problem=problem), evaluator=study.memory.evaluate)


def _unbounded(deployment: Deployment) -> Deployment:
    if deployment.workload.concurrency is None:
        return deployment
    return deployment.model_copy(update={"workload": deployment.workload.model_copy(update={"concurrency": UNBOUNDED})})
