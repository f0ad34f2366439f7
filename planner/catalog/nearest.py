"""Names as people write them: compared without case and punctuation, refused with the nearest known ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from planner.diagnostics import Diagnostic, PlannerError


@cache
def plain(name: str) -> str:
    """Reduce a name to what tells names apart: lower-case letters, digits, dots and the slash of an organisation."""
    return re.sub(r"[^a-z0-9./+]", "", name.lower())


def nearest(name: str, known: Iterable[str], limit: int = 5) -> tuple[str, ...]:
    """Find the known names most like `name`: those that contain it or begin alike first, then by similarity of letters.

    Parameters
    ----------
    name
        What was asked for.
    known
        Names that exist, in the order in which equals are shown.
    limit
        At most so many are returned.
    """
    import difflib

    wanted = plain(name)
    by_plain = {plain(candidate): candidate for candidate in reversed(tuple(known))}
    inside = [candidate for key, candidate in sorted(by_plain.items(), key=lambda item: len(item[0])) if wanted and wanted in key]
    alike = [by_plain[key] for key in difflib.get_close_matches(wanted, list(by_plain), n=limit, cutoff=0.6)]
    return tuple(dict.fromkeys(inside[:limit] + alike))[:limit]


def unknown_name(code: str, what: str, name: str, known: Sequence[str], listing: str) -> PlannerError:
    """Make the error for a name that is in no table: it says what is closest, or where the list is."""
    close = nearest(name, known)
    hint = f"nearest: {', '.join(close)}" if close else f"`{listing}` lists what is known"
    return PlannerError([Diagnostic(code, f"{what} {name!r} is not in the catalog", hint)])
