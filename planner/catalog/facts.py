"""A figure together with how it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Basis = Literal["measured", "derived", "datasheet", "assumed"]

BASES: Final[tuple[Basis, ...]] = ("measured", "derived", "datasheet", "assumed")


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure in SI units, how it is known, and which public document says so.

    `basis` is `measured` (read off a machine), `derived` (computed from measured or published figures by a stated rule), `datasheet`
    (the vendor's own figure) or `assumed` (a rule or another part's figure stands in for it). `note` says what a reader must know besides.
    """

    value: float
    basis: Basis
    source: str
    note: str = ""

    def __float__(self) -> float:
        return self.value
