"""Versions as people write them: comparable keys, and bounds that a version lies within."""

from __future__ import annotations

import re
from functools import lru_cache


def version_key(version: str) -> tuple[int, ...]:
    """Turn `0.9.1rc2` into (0, 9, 1); what follows the numbers of a part is ignored."""
    numbers = []
    for part in version.lstrip("v").split("+")[0].split("."):
        found = re.match(r"\d+", part)
        if found is None:
            break
        numbers.append(int(found.group()))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@lru_cache(maxsize=4096)
def matches(version: str, bounds: str) -> bool:
    """Tell whether a version lies within comma-separated bounds such as `>=0.9,<0.17`; `+name` matches a build carrying that patch."""
    builds = version.split("+")[1:]
    for bound in filter(None, (part.strip() for part in bounds.split(","))):
        if bound.startswith("+"):
            if bound[1:] not in builds:
                return False
            continue
        operator, limit = re.match(r"(>=|<=|<|>|==)(.*)", bound).groups()  # type: ignore[union-attr]  # a test reads every bound of the table
        key, other = version_key(version), version_key(limit)
        held = {">=": key >= other, "<=": key <= other, "<": key < other, ">": key > other, "==": key == other}[operator]
        if not held:
            return False
    return True
