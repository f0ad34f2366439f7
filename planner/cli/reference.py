"""`planner reference`: the pages of the documentation that the program knows best itself, as Markdown."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError

Page = Literal["keys", "codes", "commands"]


def reference(
    page: Page | None = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> int:
    """Print a page of the reference as Markdown: file keys, diagnostic codes, or commands.

    Parameters
    ----------
    page
        keys, codes or commands; without it all three, which needs `--output`.
    output
        Write the pages into this folder, as keys.md, codes.md and commands.md.
    """
    chosen: tuple[Page, ...] = ("keys", "codes", "commands") if page is None else (page,)
    if output is None:
        if page is None:
            sys.stderr.write("error: name a page (keys, codes or commands), or a folder for all of them with --output\n")
            return ExitCode.USAGE
        sys.stdout.write(page_text(page))
        return ExitCode.ANSWERED
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name in chosen:
            (output / f"{name}.md").write_text(page_text(name), encoding="utf-8")
    except OSError as error:
        message = f"cannot write into {output}: {error.strerror or error}"
        raise PlannerError([Diagnostic("OUTPUT_NOT_WRITABLE", message, "name a folder that may be written")]) from error
    return ExitCode.ANSWERED


def page_text(page: Page) -> str:
    """Markdown of one page."""
    from planner.cli.command_pages import commands_page
    from planner.problem.key_pages import keys_page

    pages: dict[Page, Callable[[], str]] = {"keys": keys_page, "codes": codes_page, "commands": commands_page}
    return pages[page]()


CODES_INTRODUCTION = """# Diagnostic codes

Every fault, warning and note carries one of these codes, at the end of its line and in `--json`. All faults of an input come at once:

```console
# exit 1
$ planner validate problems/two_node_h100.yaml --set deployments.chat.slo.tpot=60 --set deployments.chat.model=llama-3.1-405
```

    error: --set deployments.chat.slo.tpot=60: deployments.chat.slo.tpot: `60` has no unit; write 60ms or 60s [MISSING_UNIT]
    error: --set deployments.chat.model=llama-3.1-405: deployments.chat.model: model 'llama-3.1-405' is not in the catalog; nearest: llama-3.1-405b, ... [UNKNOWN_MODEL]

In a file the place is `file:line:column` and the dotted path. The message holds the figures of the case and what to write instead; this page says what a code means and what usually mends it. Which degrees a rule refuses, and why, is told the same way:

```console
$ planner solve problems/two_node_h100.yaml --explain tp3
```

`planner reference codes` prints this page, `planner catalog codes` the same as a table, CSV or JSON. A code once given is kept, so programs may rely on it. Where there is no plan, see [what would help](../rules.md#when-there-is-no-plan).
"""


def codes_page() -> str:
    """Markdown page of every diagnostic code."""
    from planner.catalog.codes import codes

    lines = [CODES_INTRODUCTION, "| code | means | repair |", "| --- | --- | --- |"]
    lines.extend(f"| `{code}` | {cell(meaning)} | {cell(repair)} |" for code, (meaning, repair) in sorted(codes().items()))
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Text of one cell of a Markdown table."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(_plain(part) if number % 2 == 0 else part for number, part in enumerate(parts)).replace("|", "\\|")


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a docstring, each on one line."""
    for paragraph in text.strip().split("\n\n"):
        yield " ".join(paragraph.split())
