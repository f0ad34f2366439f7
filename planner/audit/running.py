"""Which replicas of a plan run already, told from the file of the current plan, GPU by GPU."""

from __future__ import annotations

from planner.audit.case import Case

SECONDS_PER_HOUR = 3600


def kept_rows(case: Case) -> list[bool]:
    """Of every replica of the plan, whether one of the current plan is the same: same software, same cut, every rank on the GPU it has."""
    if case.current is None:
        return [False] * len(case.rows)
    running = {}
    for one in case.current.replicas:
        cut = (one.gpu, one.tp, one.pp, one.ep, one.dp, one.partition, one.weights_dtype, one.kv_dtype)
        running[one.deployment, one.engine, one.engine_version, *cut, one.ranks] = one.model
    found = []
    for row in case.rows:
        shape, answer = row.document.shape, case.plan.deployments[row.deployment]
        ranks = tuple((rank.node, rank.gpu) for rank in row.document.ranks)
        key = (row.name, answer.engine.name, answer.engine.version, shape.gpu, shape.tp, shape.pp, shape.ep, shape.dp, shape.partition)
        model = running.get((*key, shape.weights_dtype, shape.kv_dtype, ranks))
        asked = case.asked.get(row.name)
        names = {answer.model} if asked is None else {answer.model, case.architectures[asked].name}
        found.append(model is not None and model in names)
    return found


def move_price(case: Case) -> float:
    """Price of one move per hour of the time the plan is to run; 0 where no plan runs."""
    asked = case.problem.current
    return 0.0 if asked is None else asked.price_per_move / (asked.over / SECONDS_PER_HOUR)
