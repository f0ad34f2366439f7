"""No replica of a deployment has a rank on a GPU that the deployment may not use."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.audit.case import Case
from planner.audit.findings import finding
from planner.audit.spare_gpus import with_spares
from planner.diagnostics import Diagnostic
from planner.topology.occupancy import named_gpus


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every rank on a GPU outside `pin` or inside `forbid`."""
    case = with_spares(case)
    known = np.flatnonzero(case.site >= 0)
    owner = case.row_asked[case.ranks.replica[known]]
    for index, asked in enumerate(case.problem.deployments):
        own = known[owner == index]
        for entries, inside, code, hint in (
            (asked.pin, True, "GPU_NOT_PINNED", "place it on a GPU that `pin` names"),
            (asked.forbid, False, "GPU_FORBIDDEN", "place it on a GPU that `forbid` does not name"),
        ):
            if entries is None:
                continue
            named, _ = named_gpus([("", entry) for entry in entries], case.fabric.inventory)
            for position in own[named[case.site[own]] != inside]:
                words = "is none of the GPUs it is pinned to" if inside else "is forbidden to it"
                yield finding(code, case.place(position), f"{case.gpu_name(position)} runs {asked.name} and {words}", hint)
