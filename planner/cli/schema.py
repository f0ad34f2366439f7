"""`planner schema`: the JSON Schema of a problem or a topology, for editors."""

from __future__ import annotations

from typing import Literal

from planner.cli.console import print_json


def schema(kind: Literal["problem", "topology"] = "problem", /) -> int:
    """Print the JSON Schema of problem or topology files.

    Parameters
    ----------
    kind
        Which document: `problem` or `topology`.
    """
    from planner.problem.schema import json_schema

    print_json(json_schema(kind))
    return 0
