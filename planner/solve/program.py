"""An integer linear program in plain lists, which either solver can take and which checks a solution exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

Terms = Mapping[int, int]
"""A linear expression: variable index -> integer coefficient."""


def add_term(terms: dict[int, int], variable: int, coefficient: int) -> None:
    """Add `coefficient` x `variable` to an expression in place."""
    if coefficient:
        terms[variable] = terms.get(variable, 0) + coefficient


def evaluate(terms: Terms, values: Sequence[int]) -> int:
    """Value of a linear expression at a solution, in exact integers."""
    return sum(coefficient * values[variable] for variable, coefficient in terms.items())


def rounded_up(bound: int, objective: Terms) -> int:
    """Least value that an expression without a constant can have at or above a bound: a multiple of what divides all its coefficients."""
    step = gcd(*objective.values()) or 1
    return -(-bound // step) * step


@dataclass(frozen=True, slots=True)
class Row:
    """One linear row `lower <= sum coefficient x variable <= upper` (None: no bound), named after the rule it states."""

    rule: str
    variables: tuple[int, ...]
    coefficients: tuple[int, ...]
    lower: int | None
    upper: int | None


@dataclass
class Program:
    """Integer variables with bounds, and rows over them; mutable while a model is being built."""

    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def add_variable(self, lower: int, upper: int) -> int:
        """Add an integer variable in `lower..upper`, giving its index."""
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.lower) - 1

    def add_row(self, rule: str, terms: Terms, lower: int | None = None, upper: int | None = None) -> None:
        """Add `lower <= terms <= upper`; a row that its variables' bounds already keep is left out."""
        least = greatest = 0
        for variable, coefficient in terms.items():
            ends = (coefficient * self.lower[variable], coefficient * self.upper[variable])
            least += min(ends)
            greatest += max(ends)
        if (lower is None or least >= lower) and (upper is None or greatest <= upper):
            return
        self.rows.append(Row(rule, tuple(terms), tuple(terms.values()), lower, upper))

    def copy(self) -> Program:
        """Give an independent program with the same variables and rows."""
        return Program(list(self.lower), list(self.upper), list(self.rows))

    def within(self, variables: Sequence[int], low: Sequence[int], high: Sequence[int]) -> Program:
        """Give a copy in which variables stay within narrower bounds; bounds that exclude each other are left as they were."""
        found = self.copy()
        for variable, least, most in zip(variables, low, high, strict=True):
            ends = max(found.lower[variable], least), min(found.upper[variable], most)
            if ends[0] <= ends[1]:
                found.lower[variable], found.upper[variable] = ends
        return found

    def greatest(self, terms: Terms) -> int:
        """Largest absolute value that an expression can reach within the variables' bounds."""
        return sum(abs(coefficient) * max(abs(self.lower[v]), abs(self.upper[v])) for v, coefficient in terms.items())

    def violated(self, values: Sequence[int]) -> tuple[str, ...]:
        """Names of the rules that a solution breaks, in exact integers; empty when it satisfies all."""
        broken: dict[str, None] = {}
        if len(values) != len(self.lower):
            broken["bounds"] = None
            return tuple(broken)
        for value, lower, upper in zip(values, self.lower, self.upper, strict=True):
            if not lower <= value <= upper:
                broken["bounds"] = None
        for row in self.rows:
            total = sum(c * values[v] for v, c in zip(row.variables, row.coefficients, strict=True))
            if (row.lower is not None and total < row.lower) or (row.upper is not None and total > row.upper):
                broken[row.rule] = None
        return tuple(broken)


def total(expressions: Iterable[Terms]) -> dict[int, int]:
    """Sum of linear expressions."""
    result: dict[int, int] = {}
    for terms in expressions:
        for variable, coefficient in terms.items():
            add_term(result, variable, coefficient)
    return result
