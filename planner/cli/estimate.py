"""`planner estimate`: one layout on paper, or several side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from planner.cli.calculator_flags import CalculatorFlags, Csv, Gpus, one
from planner.cli.calculator_output import number, print_csv, print_lines, print_table, seconds, share, yes
from planner.cli.console import Common, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from planner.calculators.flags import FlagReader
    from planner.cost.power_law import PowerLaw

NO_COMMON = Common()
LARGEST_SEED = 2**31 - 1
MOST_SIGMA = 3.0


def estimate(
    *,
    gpu: Gpus,
    flags: CalculatorFlags,
    microbatches: Annotated[str | None, one("--microbatches", "Microbatches of the pipeline bubble.", "the batch, or the stages")] = None,
    interleave: Annotated[str, one("--interleave", "Chunks of layers a stage: 1 is GPipe and 1F1B, more interleave.", "1")] = "1",
    jitter: Annotated[
        str | None, one("--jitter", "Sigma of log-normal jitter on communication: tails.", "calibrated: measured; hockney: no tails")
    ] = None,
    jitter_compute: Annotated[str | None, one("--jitter-compute", "Sigma of log-normal jitter on compute.", "as --jitter")] = None,
    seed: Annotated[str, one("--seed", "Seed of the jitter.", "0")] = "0",
    compute_csv: Annotated[
        str | None,
        one("--compute-csv", "Your own layer times (hidden_size, batch, sequence_length, seconds): fits a and b of a (d^2 B S)^b."),
    ] = None,
    as_csv: Csv = False,
    common: Common = NO_COMMON,
) -> int:
    """Estimate a layout on paper: memory, time per token, first token, cost, rules, ten steps, and what would be better.

    Nothing but names of the catalog is needed: `planner estimate --model llama-3-70b --gpu h100-sxm-80gb --tp 8 --batch 32`. Several values of a
    flag (`--tp 2,4,8`) are laid side by side in a table. A TP degree beyond the scale-up domain is priced across the network and flagged, not refused.
    """
    from planner.calculators.documents import document, estimate_document, estimate_row
    from planner.calculators.estimate import Options, estimates
    from planner.calculators.flags import FlagReader
    from planner.calculators.question import Defaults, read_question

    reader = FlagReader()
    law = None if compute_csv is None else _law(reader, compute_csv)
    options = Options(
        microbatches=reader.count("--microbatches", microbatches, 1_000_000),
        chunks=reader.count("--interleave", interleave, 1024) or 1,
        jitter_compute=reader.number("--jitter-compute", jitter_compute, MOST_SIGMA),
        jitter_exchange=reader.number("--jitter", jitter, MOST_SIGMA),
        seed=reader.count("--seed", seed, LARGEST_SEED, 0) or 0,
        law=law,
    )
    question = read_question(flags.texts(gpu), Defaults(), reader)
    found = estimates(question, options)
    notes = question.notes
    if common.json:
        fitted = {} if law is None else {"fitted_compute": _law_row(law)}
        print_json(document("estimate", flags.profile, [estimate_document(item) for item in found], notes, **fitted))
    elif as_csv:
        print_csv([estimate_row(item) for item in found])
    else:
        if law is not None:
            row = _law_row(law)
            words = f"your layers: T = {row['a_s']:.3g} s x (d^2 B S)^{row['b']:.4f}, {row['rows']} rows, error "
            print_lines([f"{words}{row['median_error']:.1%} in the median, {row['largest_error']:.1%} at most", ""], common)
        if len(found) == 1:
            from planner.cli.estimate_words import estimate_lines

            print_lines(estimate_lines(found[0]), common)
        else:
            _print_rows([estimate_row(item) for item in found], common)
    print_diagnostics(notes, common)
    return ExitCode.ANSWERED


def _law(reader: FlagReader, path: str) -> PowerLaw | None:
    from planner.cost.power_law import fit_power_law
    from planner.problem.source_text import read_source

    def read(name: str) -> PowerLaw:
        return fit_power_law(read_source(name))

    return reader.look_up_one("--compute-csv", path, read)


def _law_row(law: PowerLaw) -> dict[str, Any]:
    return {
        "a_s": law.scale,
        "b": law.exponent,
        "rows": law.rows,
        "median_error": law.median_error,
        "largest_error": law.largest_error,
    }


def _print_rows(rows: list[dict[str, Any]], common: Common) -> None:
    print_table(
        rows,
        [
            ("model", lambda row: row["model"]),
            ("weights", lambda row: row["weights"]),
            ("GPU", lambda row: row["gpu"]),
            ("TP", lambda row: str(row["tp"])),
            ("PP", lambda row: str(row["pp"])),
            ("EP", lambda row: str(row["ep"])),
            ("DP", lambda row: str(row["dp"])),
            ("batch", lambda row: str(row["batch"])),
            ("per token", lambda row: seconds(row["tpot_s"])),
            ("first token", lambda row: seconds(row["ttft_s"])),
            ("overhead", lambda row: share(row["overhead"])),
            ("efficiency", lambda row: share(row["efficiency"])),
            ("tokens/s", lambda row: number(row["throughput_tokens_s"], 0)),
            ("$/1M out", lambda row: number(row["usd_per_million_output_tokens"], 2)),
            ("legal", lambda row: yes(row["legal"])),
            ("memory", lambda row: row["verdict"]),
            ("free GiB", lambda row: number(row["free_gib"], 1)),
        ],
        common,
    )
    print_lines(["", "one layout alone shows its terms, rules, ten steps and recommendation; --json shows them for all"], common)
