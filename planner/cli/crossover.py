"""`planner crossover`: the batch at which communication takes as long as reading the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.cli.calculator_flags import CalculatorFlags, Csv, Gpus
from planner.cli.calculator_output import Columns, number, print_csv, print_lines, print_table
from planner.cli.console import Common, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode

NO_COMMON = Common()
CONVENTIONS = (
    "notes: one all-reduce a layer of 4 B d bytes at the link's nominal bandwidth, 16-bit weights not divided by TP, no latency, kv heads not grouped",
    "full:  every all-reduce of a layer with its alpha, weights in their format divided by TP, kv heads grouped; 0 = latency alone takes longer",
)


def crossover(
    *,
    gpu: Gpus,
    flags: CalculatorFlags,
    as_csv: Csv = False,
    common: Common = NO_COMMON,
) -> int:
    """Find the batch B* from which an all-reduce takes longer than reading a layer's weights, by fabric.

    Two conventions stand side by side: `notes` is that of the crossover batch notes, P_layer BW_link / (2 d BW_hbm); `full` counts what they leave
    out. Prefill has its own columns, since there the messages grow with the prompt.
    """
    from planner.calculators.crossover import BATCHES, crossovers
    from planner.calculators.documents import document
    from planner.calculators.flags import FlagReader
    from planner.calculators.map_documents import crossover_row
    from planner.calculators.question import Defaults, read_question

    question = read_question(flags.texts(gpu), Defaults(batch=BATCHES), FlagReader())
    rows = [crossover_row(item) for item in crossovers(question)]
    notes = question.notes
    if common.json:
        conventions = dict(zip(("notes", "full"), (words.partition(":")[2].strip() for words in CONVENTIONS), strict=True))
        print_json(document("crossover", flags.profile, rows, notes, conventions=conventions))
    elif as_csv:
        print_csv(rows)
    else:
        base: Columns = [
            ("model", lambda row: row["model"]),
            ("link", lambda row: row["link"]),
            ("GB/s", lambda row: number(row["link_bandwidth_bytes_s"] / 1e9, 1)),
            ("TP", lambda row: str(row["tp"])),
        ]
        print_table(
            rows,
            [
                *base,
                ("B* notes", lambda row: number(row["crossover_batch_notes"], 0, "never")),
                ("B* full", lambda row: number(row["crossover_batch_full"], 0, "never")),
                ("by", lambda row: row["algorithm_full"]),
                *((f"B={batch} notes", _reader(f"communication_s_notes_b{batch}")) for batch in question.batches),
                *((f"B={batch} full", _reader(f"communication_s_full_b{batch}")) for batch in question.batches),
            ],
            common,
            "decode: B*, and the communication of one token",
        )
        print_lines([""], common)
        print_table(
            rows,
            [
                *base,
                ("prompt", lambda row: number(row["prefill_tokens"], 0)),
                ("all-gather, notes", lambda row: _small(row["prefill_communication_s_notes"])),
                ("all-reduces, full", lambda row: _small(row["prefill_communication_s_full"])),
                ("t* notes", lambda row: number(row["crossover_prompt_notes"], 0)),
                ("compute-bound from (full)", lambda row: number(row["compute_bound_from_prompt_full"], 0, "no prompt")),
            ],
            common,
            "prefill: the communication of one prompt, and the prompt from which on multiplying takes longer",
        )
        print_lines(["", *CONVENTIONS], common)
    print_diagnostics(notes, common)
    return ExitCode.ANSWERED


def _small(value: float | None) -> str:
    """Milliseconds with three significant digits: tokens over a fast link take a thousandth of one."""
    return "never" if value is None else f"{value * 1e3:.3g} ms"


def _reader(key: str) -> Callable[[Mapping[str, Any]], str]:
    def shown(row: Mapping[str, Any]) -> str:
        return _small(row[key])

    return shown
