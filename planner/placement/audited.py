"""What the auditor says of a placement as given: occupancy, degrees, domains, load, budget, replicas, and every rule of the problem's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from planner.audit.case import Case
from planner.audit.checks import CHECKS
from planner.diagnostics import Diagnostic, Severity
from planner.placement.distances import parts
from planner.placement.given_plan import Placed
from planner.placement.gpu_words import gpus_of_node
from planner.plan.document import PlanDocument
from planner.problem.load import LoadedProblem
from planner.topology.fabric import Fabric
from planner.topology.pools import Pool

# Checks of claims: a placement as given claims nothing, its figures are computed here.
CLAIMS = frozenset({"document", "fabric", "serving", "legality", "memory", "times", "billing", "money", "objective", "current"})
# Consequences of how a placement is written down as a plan; what is behind them is said in other words.
CONSEQUENCES = frozenset({"GPU_TYPE_MISMATCH", "LOCALITY_MISMATCH", "LOAD_MISMATCH", "CAPACITY_MISMATCH", "UNSERVED_MISMATCH"})


def audited(loaded: LoadedProblem, plan: PlanDocument, placed: Mapping[str, Placed], *, counted: bool) -> Iterator[Diagnostic]:
    """Yield the auditor's findings; `counted` tells that GPUs missing or too many have been reported already."""
    case = Case(loaded.problem, loaded.fabric, loaded.architectures, plan, loaded.current)
    for check in CHECKS:
        if check.name in CLAIMS:
            continue
        for item in check.run(case):
            path = item.place.path if item.place is not None else ""
            if item.code in CONSEQUENCES or (counted and item.code == "GPU_COUNT_MISMATCH"):
                continue
            own = placed.get(path)
            if item.code == "PARTITION_MISMATCH" and own is not None and own.given.partition is None:
                continue
            yield _mixed(loaded.fabric, own, item) if item.code == "HETEROGENEOUS_TP" and own is not None else item


def _mixed(fabric: Fabric, placed: Placed, item: Diagnostic) -> Diagnostic:
    """Unlike GPUs in one replica: a fault where a TP group mixes them, a warning where only its stages differ."""
    groups = [_pools(fabric, group) for group in parts(placed.given.gpus, placed.replica.degrees.stage_gpus)]
    if all(len({(pool.gpu.name, pool.wiring.scale_up) for pool in pools}) == 1 for pools in groups if pools):
        kinds = dict.fromkeys(pool.gpu.name for pools in groups for pool in pools)
        message = f"its stages run on unlike nodes ({', '.join(kinds)}); the slowest and the smallest of them decide"
        hint = "split the layers by memory and speed, or use nodes of one kind"
        if len(kinds) == 1:
            message, hint = f"its nodes of {next(iter(kinds))} are unlike in size, network or price", "use nodes of one kind"
        return replace(item, code="HETEROGENEOUS_STAGES", message=message, hint=hint, severity=Severity.WARNING)
    return item


def _pools(fabric: Fabric, gpus: Sequence[object]) -> list[Pool]:
    names = dict.fromkeys(str(gpu).rpartition(":")[0] for gpu in gpus)
    return [fabric.pool(name) for name in names if gpus_of_node(fabric, name)]
