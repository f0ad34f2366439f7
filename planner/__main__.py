"""`python -m planner` and the installed script are the command `planner`."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command; Ctrl-C while it is still being loaded ends it as later does."""
    try:
        from planner.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
