"""`planner memory`: the smallest number of GPUs that holds a model, and what each holds."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from planner.cli.calculator_flags import CalculatorFlags, Csv, Several, one, several
from planner.cli.calculator_output import number, print_csv, print_lines, print_table, yes
from planner.cli.console import Common, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, Place, PlannerError

NO_COMMON = Common()


def memory(
    *,
    gpu: Annotated[Several, several("--gpu", "GPU type(s) of the catalog; give these, or --gpu-memory.")] = (),
    gpu_memory: Annotated[Several, several("--gpu-memory", "Memory of GPUs known by nothing else: 24GB,40GB,80GB.")] = (),
    flags: CalculatorFlags,
    most: Annotated[str, one("--most", "Largest number of GPUs to look at.", "16")] = "16",
    frontier: Annotated[bool, Parameter(name="--frontier", negative="", help="Also show what each number of GPUs must hold.")] = False,
    as_csv: Csv = False,
    common: Common = NO_COMMON,
) -> int:
    """Find the smallest number of GPUs that holds each model, by GPU type or memory size, in each precision.

    Without degrees the smallest legal layout is looked for, pipeline stages included; with `--tp`, `--pp`, `--ep` or `--dp` each layout named is judged:
    it fits with at most n sequences or n tokens, or is short by x GiB on a stage, with the largest term named.
    """
    from planner.calculators.documents import document
    from planner.calculators.flags import FlagReader
    from planner.calculators.map_documents import frontier_row, smallest_document, smallest_rows
    from planner.calculators.question import Defaults, read_question
    from planner.calculators.smallest import DEFAULT_MOST, LARGEST_MOST, read_memories
    from planner.calculators.smallest import smallest as answers_of

    if not gpu and not gpu_memory:
        fault = Diagnostic("MISSING_VALUE", "no GPU is named", "add --gpu h100-sxm-80gb or --gpu-memory 80GB", place=Place(path="--gpu"))
        raise PlannerError([fault])
    reader = FlagReader()
    limit = reader.count("--most", most, LARGEST_MOST) or DEFAULT_MOST
    boards = read_memories(reader, gpu_memory) if gpu_memory else ()
    question = read_question(flags.texts(gpu), Defaults(batch=("1",)), reader, boards)
    found = answers_of(question, limit)
    notes = question.notes
    rows = [row for item in found for row in smallest_rows(item)]
    if common.json:
        print_json(document("memory", flags.profile, [smallest_document(item) for item in found], notes, most=limit))
    elif as_csv:
        print_csv(rows)
    else:
        _print_rows(rows, common)
        if frontier:
            lines = [
                {"model": item.case.setting.architecture.name, "gpu": item.case.setting.gpu.name, **frontier_row(point)}
                for item in found
                for point in item.frontier
            ]
            print_lines([""], common)
            _print_frontier(lines, common)
    print_diagnostics(notes, common)
    return ExitCode.ANSWERED


def _print_rows(rows: list[dict[str, Any]], common: Common) -> None:
    print_table(
        rows,
        [
            ("model", lambda row: row["model"]),
            ("weights", lambda row: row["weights"]),
            ("GPU", lambda row: row["gpu"]),
            ("TP by memory", lambda row: str(row["tp_by_memory"] or "none")),
            ("layout", _layout),
            ("GPUs", lambda row: str(row.get("gpus", ""))),
            ("legal", lambda row: yes(row.get("legal"))),
            ("verdict", lambda row: row.get("verdict", "no legal layout")),
            ("weights GiB", lambda row: number(row.get("weights_gib"))),
            ("KV", lambda row: number(row.get("kv_gib"))),
            ("other", lambda row: number(row.get("other_gib"))),
            ("of", lambda row: number(row.get("budget_gib"))),
            ("in words", lambda row: row.get("words", "")),
        ],
        common,
    )


def _layout(row: Any) -> str:
    if "tp" not in row:
        return ""
    return f"TP{row['tp']}" + "".join(f" x {name.upper()}{row[name]}" for name in ("pp", "dp", "ep") if row[name] > 1)


def _print_frontier(rows: list[dict[str, Any]], common: Common) -> None:
    print_table(
        rows,
        [
            ("model", lambda row: row["model"]),
            ("GPU", lambda row: row["gpu"]),
            ("TP", lambda row: str(row["gpus"])),
            ("needed GiB a GPU", lambda row: number(row["needed_gib"])),
            ("weights", lambda row: number(row["weights_gib"])),
            ("KV", lambda row: number(row["kv_gib"])),
            ("other", lambda row: number(row["other_gib"])),
            ("budget", lambda row: number(row["budget_gib"])),
            ("fits", lambda row: yes(row["fits"])),
        ],
        common,
        "frontier: what every rank must hold under tensor parallelism",
    )
