"""Quantities as fields of documents: pydantic types that read text with units.

Numbers without a unit mean SI when they come from code; files must name the unit wherever two readings are possible
(seconds or milliseconds, bytes or gigabytes), and may leave it out for rates [1/s], prices [per hour] and shares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from planner.quantities.reading import parse_quantity, refuse_bare
from planner.quantities.units import BARE_KINDS, EXAMPLES, SI_UNITS, UNITS, Kind

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import core_schema


@dataclass(frozen=True, slots=True)
class QuantityType:
    """Pydantic annotation that reads text of one kind into an SI number.

    A validation context `{"bare_numbers": False}` (files) refuses numbers without a unit where they are ambiguous.
    """

    kind: Kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Validate by `parse_quantity`; the serialized form is the SI number."""
        from pydantic_core import core_schema

        whole = self.kind is Kind.TOKENS

        def read(value: Any, info: core_schema.ValidationInfo) -> float:
            if isinstance(info.context, dict) and info.context.get("bare_numbers") is False:
                refuse_bare(value, self.kind)
            number = parse_quantity(value, self.kind)
            return int(number) if whole else number

        # The number's own schema stays inside, so that bounds of a field hold whichever side of the annotation they stand on.
        return core_schema.with_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe the text form, and the bare number where it is allowed."""
        number: dict[str, Any] = {"minimum": 0} | handler(schema)
        if "exclusiveMinimum" in number:
            del number["minimum"]
        described = {"description": f"{self.kind.value[0].upper()}{self.kind.value[1:]} [{SI_UNITS[self.kind]}]"}
        if self.kind is Kind.TOKENS:
            return described | number | {"examples": [2048]}
        if self.kind is Kind.FRACTION and "exclusiveMaximum" not in number:
            number["maximum"] = 1
        text = {"type": "string", "pattern": json_pattern(self.kind)}
        examples = {"examples": list(EXAMPLES[self.kind])}
        return described | examples | ({"anyOf": [text, number]} if self.kind in BARE_KINDS else text)


def json_pattern(kind: Kind) -> str:
    """Regular expression (ECMA-262) of the text form of a kind, for JSON Schema."""
    number = r"\+?([0-9][0-9_]*(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
    units = "|".join(sorted((re.escape(unit).replace(r"\%", "%") for unit in UNITS[kind]), key=lambda unit: (-len(unit), unit)))
    if kind is Kind.SECONDS:
        units += "|[µμ]s"
    if kind is Kind.MONEY_PER_HOUR:
        return rf"^\s*([$€£¥]\s*{number}\s*({units})|{number}\s*([$€£¥]|[A-Z]{{3}})?\s*({units})|{number})\s*$"
    if kind is Kind.MONEY:
        return rf"^\s*([$€£¥]\s*{number}|{number}\s*([$€£¥]|[A-Z]{{3}})?)\s*$"
    ending = f"({units})?" if kind in BARE_KINDS else f"({units})"
    return rf"^\s*{number}\s*{ending}\s*$"


Bytes = Annotated[float, QuantityType(Kind.BYTES)]
BytesPerSecond = Annotated[float, QuantityType(Kind.BYTES_PER_SECOND)]
Seconds = Annotated[float, QuantityType(Kind.SECONDS)]
PerSecond = Annotated[float, QuantityType(Kind.RATE)]
MoneyPerHour = Annotated[float, QuantityType(Kind.MONEY_PER_HOUR)]
Money = Annotated[float, QuantityType(Kind.MONEY)]
Fraction = Annotated[float, QuantityType(Kind.FRACTION)]
FlopsPerSecond = Annotated[float, QuantityType(Kind.FLOPS)]
Tokens = Annotated[int, QuantityType(Kind.TOKENS)]
