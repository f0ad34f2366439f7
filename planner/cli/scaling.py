"""`planner scaling`: time, speed-up and efficiency against the tensor-parallel degree."""

from __future__ import annotations

from typing import Annotated, Literal

from planner.cli.calculator_flags import CalculatorFlags, Csv, Gpus, Several, one, several
from planner.cli.calculator_output import number, print_csv, print_lines, print_table, seconds, share, yes
from planner.cli.console import Common, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode

NO_COMMON = Common()


def scaling(
    *,
    gpu: Gpus,
    flags: CalculatorFlags,
    form: Annotated[
        Literal["notes", "full"] | None, one("--form", "notes: weights and tree latency; full: a whole step.", "by profile")
    ] = None,
    threshold: Annotated[Several, several("--threshold", "Efficiencies to look for the cost-optimal degree at.", "80%,70%,50%")] = (),
    as_csv: Csv = False,
    common: Common = NO_COMMON,
) -> int:
    """Show when tensor parallelism stops helping: time, speed-up, efficiency and overhead against N.

    With it the degree that is fastest and, at each threshold, the largest degree that is still efficient. `--profile hockney` is the arithmetic
    of the alpha-beta calculator notes, W / (N BW) + alpha c L 2 log2 N; add `--weight-bytes 141GB` for their own count of a 70B model.
    """
    from planner.calculators.documents import document
    from planner.calculators.flags import FlagReader
    from planner.calculators.map_documents import curve_document, point_row
    from planner.calculators.question import Defaults, read_question
    from planner.calculators.scaling import THRESHOLDS
    from planner.calculators.scaling import scaling as curves_of
    from planner.quantities import Kind

    reader = FlagReader()
    thresholds = reader.quantities("--threshold", threshold, Kind.FRACTION, most=1.0) if threshold else THRESHOLDS
    question = read_question(flags.texts(gpu), Defaults(), reader)
    curves = curves_of(question, form, thresholds)
    notes = question.notes
    rows = [point_row(curve, point) for curve in curves for point in curve.points]
    if common.json:
        print_json(document("scaling", flags.profile, [curve_document(curve) for curve in curves], notes))
    elif as_csv:
        print_csv(rows)
    else:
        for curve in curves:
            own = [point_row(curve, point) for point in curve.points]
            head = f"{own[0]['model']} · {own[0]['weights']} · {own[0]['gpu']} · {own[0]['link']} · {flags.profile}, form {curve.form}"
            head += f" · batch {curve.batch}" if curve.form == "full" else f" · W = {curve.weight_bytes / 1e9:,.1f} GB"
            print_table(
                own,
                [
                    ("TP", lambda row: str(row["tp"])),
                    ("time per token", lambda row: seconds(row["tpot_s"])),
                    ("compute", lambda row: seconds(row["compute_s"])),
                    ("communication", lambda row: seconds(row["communication_s"])),
                    ("speed-up", lambda row: number(row["speedup"], 2)),
                    ("efficiency", lambda row: share(row["efficiency"], 1)),
                    ("overhead", lambda row: share(row["overhead"])),
                    ("all-reduce", lambda row: row["algorithm"]),
                    ("legal", lambda row: yes(row["legal"])),
                    ("fits", lambda row: yes(row["fits"])),
                    ("one domain", lambda row: yes(not row["crosses_domain"])),
                ],
                common,
                head,
            )
            unfit = frozenset(row["tp"] for row in own if not (row["fits"] and row["legal"]))
            print_lines(_optima(curve.time_optimal, curve.time_optimal_real, curve.cost_optimal, unfit), common)
    print_diagnostics(notes, common)
    return ExitCode.ANSWERED


def _optima(fastest: int, real: float | None, paying: tuple[tuple[float, int | None], ...], unfit: frozenset[int]) -> list[str]:
    exact = "" if real is None else f" (the formula's optimum is N = {real:.1f})"
    lines = [f"  fastest        TP{fastest}{exact}{_unfit(fastest, unfit)}"]
    for threshold, degree in paying:
        words = f"TP{degree}" if degree is not None else "none of these degrees"
        lines.append(f"  at {threshold:>4.0%}        {words} is the largest at or above {threshold:.0%} efficiency{_unfit(degree, unfit)}")
    return [*lines, ""]


def _unfit(degree: int | None, unfit: frozenset[int]) -> str:
    """What a degree lacks that time alone does not tell."""
    return "; it does not fit or is not legal" if degree in unfit else ""
