"""The stages after the objective asked for: each breaks the ties that the earlier ones leave, with their values fixed."""

from __future__ import annotations

from planner import interrupts
from planner.plan.outcome import Status
from planner.solve.program import evaluate
from planner.solve.result import Result
from planner.solve.search import Decision, Search, Stage
from planner.solve.stages import expression, stages_after

SECONDARY_SHARE = {
    "cost": 0.05,
    "gpus": 0.05,
    "moves": 0.05,
    "token_time": 0.008,
    "communication": 0.008,
    "whole_scopes": 0.005,
    "order": 0.002,
}
"""Share of the effort that each tie-breaking stage gets."""

NARROWED_SHARE = 0.3
"""Part of it where the bound leaves few counts to choose from."""


def break_ties(search: Search, decision: Decision, fixed: dict[str, int]) -> None:
    """Run the tie-breaking stages on a decision in place; `fixed` holds the values of earlier stages by name."""
    _run_stages(search, decision, fixed)
    decision.interrupted = search.interrupted or interrupts.asked()


def _run_stages(search: Search, decision: Decision, fixed: dict[str, int]) -> None:
    part = NARROWED_SHARE if search.within else 1.0
    for name in (*stages_after(search.instance), "whole_scopes", "order"):
        model, values = decision.model, decision.values
        if model is None or search.over:
            return
        if name == "whole_scopes":
            whole = search.build(model.instance, keep_whole=True)
            if not whole.whole_scopes():
                continue
            for stage, value in fixed.items():
                whole.program.add_row("fixed", expression(whole, stage), upper=value)
            hint = {new: values[old] for new, old in zip(whole.count, model.count, strict=True)}
            result = search.run(name, whole.program, whole.whole_scopes(), SECONDARY_SHARE[name] * part, hint)
            if result.values is None:
                continue
            model = whole
        else:
            objective = expression(model, name)
            if name == "order" and len(search.instance.shapes) <= search.instance.deployments:
                continue
            current = evaluate(objective, values)
            if current in {0, search.settled.get(name)}:
                result = Result(Status.OPTIMAL, values, current, current)
            else:
                result = search.run(name, model.program, objective, SECONDARY_SHARE[name] * part, dict(enumerate(values)))
                if result.values is None or (result.objective is not None and result.objective > current):
                    result = Result(Status.FEASIBLE, values, current, result.bound)
        assert result.values is not None
        assert result.objective is not None
        decision.model, decision.values = model, result.values
        decision.stages.append(Stage(name, result.objective, result.bound))
        fixed[name] = result.objective
        model.program.add_row("fixed", expression(model, name), upper=result.objective)
