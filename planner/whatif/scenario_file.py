"""The scenario file: scenarios, grids and questions, as its author writes them.

::

    scenarios:
      - {name: twice the load, set: {load: x2}}
      - {name: without node 3, lose: h100-03}
    grids:
      - name: prices
        set: {prices: [-20%, x1, +20%], deployments.chat.load: [x1, x2]}
    questions: {max_load: [chat], growth: 5%/month}
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from planner.diagnostics import Diagnostic, PlannerError, errors
from planner.problem.form_faults import read_document
from planner.problem.source import Source
from planner.problem.source_text import display_name, read_source
from planner.problem.yaml_source import read_yaml
from planner.whatif.scenarios import Change, Scenario, grid_scenarios, text_of

Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ScenarioPart(_Part):
    """One scenario: what is set, and what is lost."""

    name: str | None = Field(default=None, min_length=1, max_length=500, description="Name in the answer; absent = what it changes")
    set: dict[str, Any] = Field(default_factory=dict, description="New values by path; +20% and x2 are taken of the problem's own")
    lose: Texts = Field(default=(), description="Nodes (or GPUs as node:3, or leaves) that fail")


class GridPart(ScenarioPart):
    """A grid: a list of values for each path of `set`; every combination is a scenario. `fixed` changes hold in all of them."""

    set: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(min_length=1, description="Values to try by path")
    fixed: dict[str, Any] = Field(default_factory=dict, description="New values by path in every scenario of the grid")


class QuestionPart(_Part):
    """Questions by name; each is also an option of the command."""

    max_load: Texts = Field(default=(), description="Deployments whose greatest load is asked; `all` scales all loads together")
    smallest_fleet: Texts = Field(default=(), description="Node groups whose least number of nodes is asked")
    growth: str | None = Field(default=None, description="Growth of all loads, 5%/month for example: when does the fleet run out?")
    worst_failure: str | None = Field(default=None, description="node or leaf: which single failure hurts most?")
    buy: Texts = Field(default=(), description="What could be bought, GROUP:NODES or GPU:NODES: which is best?")
    node_value: bool = Field(default=False, description="What is one more node of each group worth?")


class ScenarioDocument(_Part):
    """A whole scenario file."""

    scenarios: tuple[ScenarioPart, ...] = Field(default=(), description="Scenarios one by one")
    grids: tuple[GridPart, ...] = Field(default=(), description="Scenarios as every combination of values")
    questions: QuestionPart = Field(default=QuestionPart(), description="Questions by name")


def read_scenario_file(path: str) -> tuple[list[Scenario], QuestionPart]:
    """Scenarios and questions of the file at `path` (`-` = standard input).

    Raises
    ------
    PlannerError
        With every fault of the file.
    """
    source = read_yaml(read_source(path), display_name(path))
    if not isinstance(source.data, dict):
        message = "the file is not made of keys"
        raise PlannerError([*source.faults, Diagnostic("ROOT_NOT_MAPPING", message, "begin with `scenarios:`", place=source.place(()))])
    document, faults = read_document(ScenarioDocument, source)
    faults = [*source.faults, *faults]
    if errors(faults) or document is None:
        raise PlannerError(faults)
    found = [_scenario(part, source, index) for index, part in enumerate(document.scenarios)]
    for index, grid in enumerate(document.grids):
        place = source.place(("grids", index))
        axes = [(axis, [text_of(value) for value in values]) for axis, values in grid.set.items()]
        fixed = [*_changes(grid.fixed), *_losses(grid.lose)]
        found += grid_scenarios(axes, fixed, grid.name or "", place)
    return found, document.questions


def _changes(given: dict[str, Any]) -> list[Change]:
    return [Change(path, text_of(value)) for path, value in given.items()]


def _losses(lost: tuple[str, ...]) -> list[Change]:
    return [Change("lose", name) for name in lost]


def _scenario(part: ScenarioPart, source: Source, index: int) -> Scenario:
    changes = (*_changes(part.set), *_losses(part.lose))
    return Scenario(part.name or ", ".join(map(str, changes)) or "as it is", changes, source.place(("scenarios", index)))
