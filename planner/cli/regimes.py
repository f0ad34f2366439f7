"""`planner regimes`: where time goes, by model, interconnect and number of GPUs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from planner.cli.calculator_flags import CalculatorFlags, Csv, Gpus, one
from planner.cli.calculator_output import print_csv, print_lines, print_table
from planner.cli.console import Common, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode

NO_COMMON = Common()


def regimes(
    *,
    gpu: Gpus,
    flags: CalculatorFlags,
    phase: Annotated[Literal["decode", "prefill", "both"], Parameter(name="--phase", help="Phase(s) of the table for people.")] = "both",
    jitter: Annotated[str, one("--jitter", "Sigma of log-normal jitter on communication, for P99/P50.", "0.12")] = "0.12",
    as_csv: Csv = False,
    common: Common = NO_COMMON,
) -> int:
    """Map which layouts are bound by compute (C) and which by communication (M), over models, interconnects and GPUs.

    A cell shows the ratio of compute to communication and the efficiency. `--link pcie3,pcie4,nvlink3,nvlink4` compares interconnects around one GPU type;
    `--link study:pcie3_x16` takes the constants of the communication cost study.
    """
    from planner.calculators.documents import document
    from planner.calculators.flags import FlagReader
    from planner.calculators.map_documents import cell_row
    from planner.calculators.question import Defaults, read_question
    from planner.calculators.regimes import SIGMA
    from planner.calculators.regimes import regimes as cells_of

    reader = FlagReader()
    sigma = reader.number("--jitter", jitter, 3.0)
    question = read_question(flags.texts(gpu), Defaults(), reader)
    rows = [cell_row(cell) for cell in cells_of(question, SIGMA if sigma is None else sigma)]
    notes = question.notes
    if common.json:
        print_json(document("regimes", flags.profile, rows, notes, sigma=sigma))
    elif as_csv:
        print_csv(rows)
    else:
        for name in ("decode", "prefill") if phase == "both" else (phase,):
            _print_map(rows, name, common)
        print_lines(["C compute-bound, M communication-bound: compute over communication, efficiency in per cent"], common)
    print_diagnostics(notes, common)
    return ExitCode.ANSWERED


def _print_map(rows: list[dict[str, Any]], phase: str, common: Common) -> None:
    """One line for each model, link and batch, one column for each set of degrees."""
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    headings: dict[str, None] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("model", "weights", "gpu", "link", "batch", "prompt_tokens"))
        heading = f"TP{row['tp']}" + "".join(f" {name.upper()}{row[name]}" for name in ("pp", "dp", "ep") if row[name] > 1)
        headings[heading] = None
        letter = "C" if row[f"{phase}_regime"] == "compute" else "M"
        ratio = row[f"{phase}_compute_over_communication"]
        words = "all" if ratio is None else f"{ratio:.2f}"
        lines.setdefault(key, {})[heading] = f"{letter} {words} {row[f'{phase}_efficiency'] * 100:.1f}%"
    load = "batch" if phase == "decode" else "prompt"
    table = [
        {"model": key[0], "GPU": key[2], "link": key[3], load: key[4] if phase == "decode" else key[5], **cells}
        for key, cells in lines.items()
    ]
    columns = [(name, _cell(name)) for name in ("model", "GPU", "link", load, *headings)]
    print_table(table, columns, common, phase)
    print_lines([""], common)


def _cell(name: str) -> Any:
    def shown(row: dict[str, Any]) -> str:
        return str(row.get(name, ""))

    return shown
