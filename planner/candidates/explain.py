"""Why a shape that somebody has in mind is not in the plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from planner.candidates.alternatives import replicas_for
from planner.candidates.degrees import PIPELINE_DEGREES, pool_room
from planner.candidates.grid import tensor_refusals
from planner.candidates.legality.rulebook import rulebook
from planner.candidates.menu import Menu
from planner.candidates.settings import pool_settings
from planner.plan.outcome import Outcome
from planner.plan.shape import Degrees
from planner.problem.load import LoadedProblem
from planner.quantities import format_money
from planner.topology.pool_names import pools_in_words


def explain_degrees(loaded: LoadedProblem, menu: Menu, outcome: Outcome, degrees: Degrees, complete: bool) -> list[str]:
    """One or more lines for each deployment; `complete` = only exactly these degrees, else every shape of this tensor parallelism."""
    lines = []
    pools, currency = pools_in_words(loaded.fabric), loaded.fabric.currency
    for index, deployment in enumerate(loaded.problem.deployments):
        chosen = [replica.shape for replica in outcome.replicas if replica.shape.deployment == index]
        wanted = [shape for shape in menu.shapes if shape.deployment == index and _matches(shape.degrees, degrees, complete)]
        refused = [item for item in menu.rejected if item.deployment == index and _matches(item.degrees, degrees, complete)]
        head = f"{deployment.name}: {degrees}"
        if any(_matches(shape.degrees, degrees, complete) for shape in chosen):
            lines.append(f"{head} is in the plan")
            continue
        if wanted:
            best = min(wanted, key=lambda shape: (replicas_for(shape, menu.loads[index]) * shape.price, shape.times.tpot))
            count = replicas_for(best, menu.loads[index])
            price, own = (_priced(amount, currency) for amount in (count * best.price, sum(shape.price for shape in chosen)))
            gpus = count * best.degrees.gpus
            words = f"{head} is possible as {best.degrees} on {pools[best.pool]} with {count} replica{'s' if count > 1 else ''} of batch {best.batch}: "
            words += f"{gpus} GPU{'s' if gpus > 1 else ''}, {price}, {best.times.tpot * 1e3:.1f} ms a token"
            if chosen:
                words += f"; the plan takes {own}, {max(shape.times.tpot for shape in chosen) * 1e3:.1f} ms a token"
            lines.append(words)
        seen: set[str] = set()
        for item in sorted(refused, key=lambda item: item.degrees):
            words = f"{deployment.name}: {item.degrees} on {pools[item.pool]}: {item.message} [{item.code}]"
            if words not in seen:
                seen.add(words)
                lines.append(words)
        if not wanted and not refused:
            reasons = list(_too_wide(loaded, index, degrees.tensor_parallel, pools))
            lines += [f"{head} {words}" for words in reasons]
            if not reasons:
                asked = f"`parallelism: {{pp: {degrees.pipeline_parallel}}}` of {deployment.name} asks for them"
                beyond = degrees.pipeline_parallel not in PIPELINE_DEGREES and (
                    deployment.parallelism is None or deployment.parallelism.pp is None
                )
                why = (
                    f"so many stages are not tried unless {asked}"
                    if beyond
                    else "it does not fit the degrees allowed or the GPUs there are"
                )
                lines.append(f"{head} was not looked at: {why}")
    return lines


def _too_wide(loaded: LoadedProblem, index: int, tensor: int, pools: Sequence[str]) -> Iterator[str]:
    """Why no pool holds a tensor-parallel degree that the menu did not come to."""
    for pool in loaded.fabric.pools:
        setting = next(iter(pool_settings(loaded, index, pool)), None)
        if setting is None:
            continue
        inner = setting.setting
        book = rulebook(inner.architecture, inner.precision, setting.engine, inner.gpu)
        for item in tensor_refusals(book, pool_room(loaded.fabric, pool), tensor):
            yield f"on {pools[pool.index]}: {item.message} [{item.code}]"


def _priced(amount: float, currency: str) -> str:
    return f"{format_money(amount, currency, per='')}/h" if 0 < amount < math.inf else "no price"


def _matches(found: Degrees, asked: Degrees, complete: bool) -> bool:
    return found == asked if complete else found.tensor_parallel == asked.tensor_parallel
