"""The menu: every legal shape of every deployment on every pool, evaluated at its best batch, and why the others left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from planner.candidates.buckets import Evaluator, questions_of, shapes_of
from planner.candidates.columns import Question, evaluate_layouts
from planner.candidates.degrees import Layout, PoolRoom, pool_room
from planner.candidates.grid import LegalGrids
from planner.candidates.keeping import keepable
from planner.candidates.load_times import Carried, with_load_times
from planner.candidates.prices import pool_prices
from planner.candidates.settings import PoolSetting, pool_settings
from planner.collector import uncollected
from planner.diagnostics import Diagnostic, Severity
from planner.plan.outcome import NotKept, PlacedReplica
from planner.plan.shape import Degrees, Rejection, Shape
from planner.problem.load import LoadedProblem
from planner.topology.fabric import Fabric, Pool

SEQUENCES, TOKENS, REQUESTS = "concurrent sequences", "output tokens/s", "requests/s"
MOST_NAMED, MOST_REASONS = 8, 20


@dataclass(frozen=True)
class Menu:
    """Shapes that may be chosen, rejections with their reasons, and the load of each deployment in its unit.

    `settings` maps (deployment, pool, weights dtype, KV dtype) to the setting a shape was evaluated with, so that reports and checks can ask again.
    `running` are the replicas of the current plan that may stay as they are, `not_kept` those that may not, with the reason.
    """

    shapes: tuple[Shape, ...]
    rejected: tuple[Rejection, ...]
    loads: tuple[float, ...]
    load_units: tuple[str, ...]
    settings: Mapping[tuple[int, int, str, str], PoolSetting] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    running: tuple[PlacedReplica, ...] = ()
    not_kept: tuple[NotKept, ...] = ()

    def setting_of(self, shape: Shape) -> PoolSetting:
        """Setting that `shape` was evaluated with."""
        setting = self.settings[shape.deployment, shape.pool, shape.weights_dtype, shape.kv_dtype]
        return setting if shape.bucket < 0 else setting.of_bucket(shape.bucket)


@uncollected
def build_menu(
    loaded: LoadedProblem,
    force: Degrees | None = None,
    evaluator: Evaluator = evaluate_layouts,
    *,
    every_batch: bool = False,
    room_of: Callable[[Fabric, Pool], PoolRoom] = pool_room,
    only: Sequence[int] | None = None,
) -> Menu:
    """Enumerate and evaluate the shapes of a problem.

    `force` keeps only these degrees. `every_batch` adds smaller batches of every shape, as the latency objective always has them. `room_of` says
    what a pool holds. `only` leaves the other deployments without shapes. `evaluator` may answer from what it has evaluated before. A shape that cannot be used never aborts the search: it becomes a `Rejection`.
    """
    settings: dict[tuple[int, int, str, str], PoolSetting] = {}
    prices, diagnostics = pool_prices(loaded)
    grids = LegalGrids(loaded, force)
    rooms = [room_of(loaded.fabric, pool) for pool in loaded.fabric.pools]
    smaller = every_batch or loaded.problem.objective == "latency"
    loads, units = zip(*(load_of(loaded, index) for index in range(len(loaded.problem.deployments))), strict=True)
    asked: list[tuple[PoolSetting, list[Layout], list[Rejection], list[Question]]] = []
    for index in range(len(loaded.problem.deployments)) if only is None else only:
        for room in rooms:
            if room.total_free == 0:
                continue
            for setting in pool_settings(loaded, index, room.pool):
                precision = setting.setting.precision
                settings[index, room.pool.index, precision.weights, precision.kv_cache] = setting
                grid, refused = grids.of(setting, room)
                asked.append((setting, grid, refused, questions_of(setting, grid, prices[room.pool.index], smaller)))
    answers = iter(evaluator([question for *_, questions in asked for question in questions]))
    shapes: list[list[Shape]] = []
    rejected: list[Rejection] = []
    for setting, grid, refused, questions in asked:
        found, late = shapes_of(setting, grid, prices[setting.pool.index], list(islice(answers, len(questions))))
        shapes.append(found)
        rejected += [*refused, *late]
    # Where the load served is to be greatest, every replica is full.
    if loaded.problem.objective != "throughput":
        rated = [number for number, (setting, *_) in enumerate(asked) if not setting.buckets]
        carried = [Carried(asked[number][0], asked[number][1], shapes[number], loads[asked[number][0].deployment]) for number in rated]
        for number, found in zip(rated, with_load_times(carried), strict=True):
            shapes[number] = found
    running, not_kept = keepable(loaded, settings, prices, loads, force)
    return Menu(
        tuple(chain.from_iterable(shapes)), tuple(rejected), loads, units, settings, (*diagnostics, *_told(not_kept)), running, not_kept
    )


def _told(not_kept: Sequence[NotKept]) -> list[Diagnostic]:
    """Say which replicas of the current plan cannot stay, those of one deployment with the same reason together."""
    together: dict[tuple[str, str], list[int]] = {}
    for item in not_kept:
        together.setdefault((item.deployment, item.message), []).append(item.number)
    found = []
    for (deployment, reason), numbers in together.items():
        shown = ", ".join(map(str, numbers[:MOST_NAMED])) + (f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else "")
        message = f"{deployment}: replica{'s' if len(numbers) > 1 else ''} {shown} of the current plan cannot stay: {reason}"
        found.append(Diagnostic("REPLICA_CANNOT_STAY", message, "nothing to do: the plan moves or leaves it", Severity.WARNING))
    if len(found) > MOST_REASONS:
        more = f"{len(found) - MOST_REASONS} more reasons why replicas of the current plan cannot stay are in the plan document"
        found = [*found[:MOST_REASONS], Diagnostic("REPLICA_CANNOT_STAY", more, "see `current.not_kept` of --json", Severity.WARNING)]
    return found


def largest_batches(menu: Menu) -> Menu:
    """Only the largest batch of every shape: the menu as it is without `every_batch`."""
    largest: dict[tuple[object, ...], Shape] = {}
    for shape in menu.shapes:
        layout = (
            shape.deployment,
            shape.pool,
            shape.degrees,
            shape.locality,
            shape.group_level,
            shape.groups,
            shape.weights_dtype,
            shape.kv_dtype,
        )
        if layout not in largest or shape.batch > largest[layout].batch:
            largest[layout] = shape
    return replace(menu, shapes=tuple(largest.values()))


def load_of(loaded: LoadedProblem, index: int) -> tuple[float, str]:
    """Load of a deployment with its headroom, and its unit: sequences for a concurrency, output tokens/s for a rate, requests/s for one in buckets."""
    deployment = loaded.problem.deployments[index]
    workload = deployment.workload
    room = 1.0 + deployment.headroom
    if workload.concurrency is not None:
        return float(math.ceil(workload.concurrency * room)), SEQUENCES
    assert workload.request_rate is not None
    if workload.buckets:
        return workload.request_rate * room, REQUESTS
    return workload.request_rate * workload.output_tokens * room, TOKENS
