"""`planner whatif`: scenarios and fleet questions, re-solved and compared with the plan as it is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from planner.cli.calculator_output import Columns, number, print_csv, print_table
from planner.cli.console import Common, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError
from planner.whatif.results import QuestionResult
from planner.whatif.scenario_file import QuestionPart
from planner.whatif.scenarios import Scenario
from planner.whatif.what_if import Response

NO_COMMON = Common()
LONGEST_REASON = 220
Several = Annotated[tuple[str, ...], Parameter(negative="")]


def whatif(
    problem: str,
    scenarios: str | None = None,
    /,
    *,
    patch: Several = (),
    lose: Several = (),
    grid: Several = (),
    max_load: Several = (),
    smallest_fleet: Several = (),
    growth: str | None = None,
    worst_failure: Literal["node", "leaf"] | None = None,
    buy: str | None = None,
    node_value: Annotated[bool, Parameter(negative="")] = False,
    override: Annotated[tuple[str, ...], Parameter(name="--set", negative="")] = (),
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    jobs: int | None = None,
    store: Path | None = None,
    time_limit: str | None = None,
    gap: str = "0",
    as_csv: Annotated[bool, Parameter(name="--csv", negative="")] = False,
    parquet: Path | None = None,
    common: Common = NO_COMMON,
) -> int:
    """Solve scenarios of a problem and answer fleet questions, side by side with the plan as it is.

    Parameters
    ----------
    problem
        Problem file (YAML or JSON), or `-` for standard input.
    scenarios
        File with scenarios, grids and questions (YAML or JSON).
    patch
        Change of one value, as PATH=VALUE with the paths of `--set`; `+20%` and `x2` are taken of the problem's own value. All patches hold
        together. Short paths: `load`, `context`, `prices`, `deployments.chat.load`, `nodes.h100-[01-02].count`, `*` for every name.
    lose
        Nodes, GPUs (`node:3`) or a leaf that fail, together with the patches.
    grid
        Values to try, as PATH=V1,V2,...; several grids are combined.
    max_load
        How much load fits: a deployment's name, or `all` for all loads together.
    smallest_fleet
        The fewest nodes of this group that the loads fit on.
    growth
        When the fleet runs out as all loads grow: `5%/month`.
    worst_failure
        Which single failure of a node or leaf hurts most.
    buy
        What to buy: GROUP:NODES or GPU:NODES, several separated by commas.
    node_value
        What one more node of each group is worth.
    override
        Change one value of the problem itself first, as PATH=VALUE; may be repeated.
    engine
        Where scenarios are solved: on this machine, or on a Ray cluster.
    address
        Address of the Ray cluster; without it Ray runs on this machine.
    jobs
        Processes on this machine; without it one a core where there is enough to do.
    store
        File that keeps every answer as it comes; the same command goes on from it after an interruption.
    time_limit
        Stop each solve after this long (`30s`).
    gap
        Stop each solve when its plan is proved to be within this share of the best (`1%` or 0.01).
    as_csv
        Print comma-separated values, one row a scenario.
    parquet
        Also write the rows of the scenarios to this Parquet file.
    common
        Options of every command.
    """
    from planner.cli.limits import seconds_of, share_of
    from planner.whatif.solving import Limits
    from planner.whatif.tables import rows_of, write_parquet
    from planner.whatif.what_if import Request, respond

    bought = tuple(part.strip() for part in buy.split(",")) if buy else ()
    options = QuestionPart(
        max_load=max_load, smallest_fleet=smallest_fleet, growth=growth, worst_failure=worst_failure, buy=bought, node_value=node_value
    )
    asked, questions = _asked(scenarios, [*patch, *(f"lose={name}" for name in lose)], grid, options)
    request = Request(
        problem,
        asked,
        questions,
        override,
        Limits(seconds_of(time_limit), share_of(gap)),
        engine,
        address,
        jobs,
        store,
        shown=not common.quiet,
    )
    response = respond(request)
    rows = rows_of(response.document)
    if parquet is not None:
        write_parquet(rows, parquet)
    if common.json:
        print_json(response.document.model_dump(mode="json"))
    elif as_csv:
        print_csv(rows)
    else:
        _print_tables(response, rows, common)
    return _ended(response, store, common)


def _asked(file: str | None, patches: Sequence[str], grids: Sequence[str], options: QuestionPart) -> tuple[list[Scenario], QuestionPart]:
    """Scenarios and questions of the file and of the options, with the faults of both."""
    from planner.whatif.scenario_file import read_scenario_file
    from planner.whatif.scenarios import option_scenarios

    found: list[Scenario] = []
    faults: list[Diagnostic] = []
    questions = QuestionPart()
    try:
        found += option_scenarios(patches, grids)
    except PlannerError as error:
        faults += error.diagnostics
    if file is not None:
        try:
            of_file, questions = read_scenario_file(file)
            found += of_file
        except PlannerError as error:
            faults += error.diagnostics
    if faults:
        raise PlannerError(faults)
    given = {key: value for key in QuestionPart.model_fields if (value := getattr(options, key))}
    return found, questions.model_copy(update=given)


def _ended(response: Response, store: Path | None, common: Common) -> int:
    """Exit code of a what-if: infeasible scenarios are answers."""
    print_diagnostics(response.warnings, common)
    if response.interrupted:
        where = f"; what is solved is in {store}, and the same command goes on from there" if store is not None else ""
        sys.stderr.write(f"interrupted: the answer is not complete{where}\n")
        return ExitCode.INTERRUPTED
    if response.fault is not None:
        sys.stderr.write(f"error: {response.fault}\n")
        return ExitCode.INVALID
    failed = [item.name for item in response.document.scenarios if item.answer.status == "failed"]
    if failed:
        sys.stderr.write(f"internal error: {len(failed)} scenarios could not be solved, the first is {failed[0]}; see why\n")
        return ExitCode.INTERNAL
    return ExitCode.ANSWERED


def _print_tables(response: Response, rows: Sequence[Mapping[str, Any]], common: Common) -> None:
    """Print the answer for a person: the scenarios in a table, then each question with its rows."""
    document = response.document
    if document.scenarios or not document.questions:
        print_table(rows, _columns(response), common)
    for row in rows:
        if row["why"]:
            text = str(row["why"])
            sys.stdout.write(f"\n{row['scenario']}: {text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 4] + ' ...'}\n")
    for question in document.questions:
        _print_question(question, common)


def _columns(response: Response) -> Columns:
    from planner.report.words import gap_words, per_hour

    currency = response.plan.currency
    return (
        ("scenario", lambda row: str(row["scenario"])),
        ("answer", lambda row: str(row["status"])),
        ("cost", lambda row: "" if row["cost_per_hour"] is None else per_hour(row["cost_per_hour"], currency)),
        ("change", lambda row: "" if row["cost_change"] is None else f"{row['cost_change']:+,.2f}"),
        ("gap", lambda row: "" if row["gap"] is None else gap_words(row["gap"])),
        ("GPUs", lambda row: "" if row["gpus"] is None else str(row["gpus"])),
        ("change", lambda row: "" if row["gpus_change"] is None else f"{row['gpus_change']:+d}"),
        ("start", lambda row: "" if row["started"] is None else str(row["started"])),
        ("stop", lambda row: "" if row["stopped"] is None else str(row["stopped"])),
        ("move", lambda row: "" if row["moved"] is None else str(row["moved"])),
        ("plan", lambda row: str(row["plan"])),
    )


def _print_question(question: QuestionResult, common: Common) -> None:
    doubt = "" if question.proved else " (not proved within the limits)"
    sys.stdout.write(f"\n{question.sentence}{doubt}\n")
    if question.rows:
        names = list(dict.fromkeys(name for row in question.rows for name in row))
        print_table(question.rows, [(name, _shown(name)) for name in names], common)


def _shown(name: str) -> Any:
    def shown(row: Mapping[str, Any]) -> str:
        value = row.get(name)
        if isinstance(value, float) and (name.endswith(("per_hour", "_change", "price"))):
            return number(value, 2)
        return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

    return shown
