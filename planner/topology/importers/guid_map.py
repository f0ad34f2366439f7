"""A map of GUIDs to hosts, for adapters whose description names none."""

from __future__ import annotations

import re
from typing import Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.topology.importers.hosts import usable_name
from planner.topology.importers.lines import clean_lines

MOST_FAULTS: Final = 50


def read_guid_map(text: str, file: str) -> dict[str, str]:
    """Host of each GUID, from lines `GUID HOST` or `GUID,HOST`.

    Raises
    ------
    PlannerError
        GUID_MAP_INVALID with every line that is neither.
    """
    found: dict[str, str] = {}
    faults: list[Diagnostic] = []
    for number, line in enumerate(clean_lines(text, file), start=1):
        words = re.split(r"[\s,;=]+", line.partition("#")[0].strip())
        if words == [""] or words[0].lower() == "guid":
            continue
        digits = words[0].lower().removeprefix("0x").replace(":", "")
        if len(words) != 2 or not re.fullmatch(r"[0-9a-f]{1,16}", digits) or not usable_name(words[1]):
            faults.append(
                Diagnostic(
                    "GUID_MAP_INVALID",
                    f"`{line[:60].strip()}` is no GUID with its host",
                    "write e09d730300858d88 node-07",
                    place=Place(file, number),
                )
            )
            if len(faults) >= MOST_FAULTS:
                break
            continue
        found[digits.rjust(16, "0")] = words[1]
    if faults:
        raise PlannerError(faults)
    return found
