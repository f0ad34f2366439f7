"""`python -m planner` is the command `planner`."""

from __future__ import annotations

from planner.cli.app import main

main()
