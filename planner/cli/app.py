"""The command `planner`: which commands there are, and what happens when one ends badly."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from planner import __version__
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import PlannerError
from planner.quantities import QuantityError

# pydantic would scan every installed distribution for plug-ins when the first document class is made.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

EPILOGUE = (
    "Exit codes: 0 answered, 1 invalid input or a missed target, 2 usage, 3 proved infeasible, 4 limit reached without a plan, "
    "70 internal, 130 interrupted."
)

STDIN_PATH = "/dev/stdin"

app = App(
    name="planner",
    help="Plan LLM inference deployments: parallelism, GPU placement, cost and proof.",
    help_epilogue=EPILOGUE,
    version=__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
# Import strings keep the commands unloaded: `--version`, completion and `validate` never import the solver.
app.command("planner.cli.solve:solve", name="solve")
app.command("planner.cli.validate:validate", name="validate")
app.command("planner.cli.catalog:catalog", name="catalog")
app.command("planner.cli.schema:schema", name="schema")
app.command("planner.cli.reference:reference", name="reference")
app.command("planner.cli.init:init", name="init")
app.command("planner.cli.whatif:whatif", name="whatif")
app.command("planner.cli.diff:diff", name="diff")
app.command("planner.cli.launch:launch", name="launch")
app.command("planner.cli.report:report", name="report")
app.command("planner.cli.ui:ui", name="ui")
app.command("planner.cli.plot:plot", name="plot")
app.command("planner.cli.topology:topology", name="topology")
app.command("planner.cli.estimate:estimate", name="estimate")
app.command("planner.cli.scaling:scaling", name="scaling")
app.command("planner.cli.crossover:crossover", name="crossover")
app.command("planner.cli.regimes:regimes", name="regimes")
app.command("planner.cli.memory:memory", name="memory")
app.command("planner.cli.fit:fit", name="fit")
app.command("planner.cli.measure:measure", name="measure")
app.register_install_completion_command(name="--install-completion")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; bad input ends in diagnostics on stderr, never in a traceback."""
    from planner.cli.console import diagnostics_document, print_json

    # A lone `-` is standard input, not an option without a name.
    words = [STDIN_PATH if word == "-" else word for word in arguments]
    try:
        result = app(words, exit_on_error=False, print_error=True)
    except CycloptsError:
        return ExitCode.USAGE
    except PlannerError as error:
        if "--json" in arguments:
            print_json(diagnostics_document("invalid", error.diagnostics))
        for diagnostic in error.diagnostics:
            sys.stderr.write(f"{diagnostic.severity.value}: {diagnostic}\n")
        return ExitCode.INVALID
    except QuantityError as error:
        sys.stderr.write(f"error: {error}\n")
        return ExitCode.USAGE
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our pipe went away; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ANSWERED
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EIO}:
            return _unforeseen(error, arguments)
        # What is still buffered cannot be written either; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"error: the answer cannot be written: {error.strerror}; make room, or write it elsewhere [OUTPUT_NOT_WRITABLE]\n")
        return ExitCode.INVALID
    except Exception as error:  # noqa: BLE001 - the last line of defence: a person on call gets a sentence, not a traceback
        return _unforeseen(error, arguments)
    return int(result) if isinstance(result, int) else ExitCode.ANSWERED


def _unforeseen(error: Exception, arguments: Sequence[str]) -> int:
    if {"-v", "--verbose"} & set(arguments):
        import traceback

        traceback.print_exc()
    sys.stderr.write(f"internal error: {type(error).__name__}: {error}; run again with --verbose and report it with your files\n")
    return ExitCode.INTERNAL


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))
