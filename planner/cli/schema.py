"""`planner schema`: the JSON Schema of a problem, a topology or a profile, for editors."""

from __future__ import annotations

from typing import Literal

from planner.cli.console import print_json


def schema(kind: Literal["problem", "topology", "profile"] = "problem", /) -> int:
    """Print the JSON Schema of problem, topology or profile files.

    Parameters
    ----------
    kind
        Which document: `problem`, `topology` or `profile`.
    """
    from planner.problem.schema import json_schema

    print_json(json_schema(kind))
    return 0
