from __future__ import annotations

import json
import math
import re
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from planner.quantities import (
    GIBIBYTE,
    Bytes,
    BytesPerSecond,
    Fraction,
    Kind,
    MoneyPerHour,
    PerSecond,
    QuantityError,
    Seconds,
    Tokens,
    currency_of,
    format_bandwidth,
    format_bytes,
    format_flops,
    format_fraction,
    format_money,
    format_rate,
    format_seconds,
    parse_quantity,
)
from planner.quantities.fields import json_pattern
from planner.quantities.units import BARE_KINDS, EXAMPLES, UNITS


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("80GB", Kind.BYTES, 80e9),
        ("80 GiB", Kind.BYTES, 80 * 2**30),
        ("1e3GB", Kind.BYTES, 1e12),
        ("1.5 TiB", Kind.BYTES, 1.5 * 2**40),
        ("12kB", Kind.BYTES, 12_000),
        ("12KB", Kind.BYTES, 12_000),
        ("12KiB", Kind.BYTES, 12_288),
        ("400Gb/s", Kind.BYTES_PER_SECOND, 5e10),
        ("400Gbps", Kind.BYTES_PER_SECOND, 5e10),
        ("400 Gbit/s", Kind.BYTES_PER_SECOND, 5e10),
        ("50GB/s", Kind.BYTES_PER_SECOND, 5e10),
        ("3.35TB/s", Kind.BYTES_PER_SECOND, 3.35e12),
        ("2us", Kind.SECONDS, 2e-6),
        ("2µs", Kind.SECONDS, 2e-6),
        ("2μs", Kind.SECONDS, 2e-6),
        ("60ms", Kind.SECONDS, 0.06),
        ("3s", Kind.SECONDS, 3.0),
        (".5s", Kind.SECONDS, 0.5),
        ("2 min", Kind.SECONDS, 120.0),
        ("1h", Kind.SECONDS, 3600.0),
        ("4/s", Kind.RATE, 4.0),
        ("240/min", Kind.RATE, 4.0),
        ("4 requests/s", Kind.RATE, 4.0),
        ("4", Kind.RATE, 4.0),
        (4, Kind.RATE, 4.0),
        ("$24/h", Kind.MONEY_PER_HOUR, 24.0),
        ("$ 24.5 / h", Kind.MONEY_PER_HOUR, 24.5),
        ("24 USD/h", Kind.MONEY_PER_HOUR, 24.0),
        ("24$/hour", Kind.MONEY_PER_HOUR, 24.0),
        ("€2/h", Kind.MONEY_PER_HOUR, 2.0),
        ("24", Kind.MONEY_PER_HOUR, 24.0),
        (24, Kind.MONEY_PER_HOUR, 24.0),
        ("70%", Kind.FRACTION, 0.7),
        ("70 %", Kind.FRACTION, 0.7),
        ("0.7", Kind.FRACTION, 0.7),
        (1, Kind.FRACTION, 1.0),
        ("989 TFLOP/s", Kind.FLOPS, 989e12),
        ("1_024", Kind.TOKENS, 1024.0),
    ],
)
def test_reads_as_si(text, kind, value):
    assert parse_quantity(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind", "code", "said"),
    [
        ("400Gb", Kind.BYTES, "WRONG_UNIT", "400GB if bytes were meant, or 50GB"),
        ("80mB", Kind.BYTES, "WRONG_UNIT", "80MB"),
        ("80 gb", Kind.BYTES, "WRONG_UNIT", "80GB"),
        ("80G", Kind.BYTES, "WRONG_UNIT", "80GB or 80GiB"),
        ("80GB/s", Kind.BYTES, "WRONG_UNIT", "bandwidth"),
        ("80", Kind.BYTES, "MISSING_UNIT", "80GB"),
        ("-80GB", Kind.BYTES, "OUT_OF_RANGE", "negative"),
        ("400Gb", Kind.BYTES_PER_SECOND, "WRONG_UNIT", "400Gb/s"),
        ("400GB", Kind.BYTES_PER_SECOND, "WRONG_UNIT", "400GB/s"),
        ("50GBps", Kind.BYTES_PER_SECOND, "WRONG_UNIT", "50GB/s for bytes or 50Gb/s for bits"),
        ("60m", Kind.SECONDS, "WRONG_UNIT", "60ms or 60min"),
        ("60", Kind.SECONDS, "MISSING_UNIT", "60ms or 60s"),
        ("1,5s", Kind.SECONDS, "WRONG_UNIT", "60ms"),
        ("4ms", Kind.RATE, "WRONG_UNIT", "a time"),
        ("$24", Kind.MONEY_PER_HOUR, "MISSING_UNIT", "24 USD/h"),
        ("$24/day", Kind.MONEY_PER_HOUR, "WRONG_UNIT", "per hour"),
        (70, Kind.FRACTION, "OUT_OF_RANGE", "70%"),
        ("120%", Kind.FRACTION, "OUT_OF_RANGE", "100%"),
        ("8k", Kind.TOKENS, "WRONG_UNIT", "8192"),
        (2048.5, Kind.TOKENS, "NOT_AN_INTEGER", "2049"),
        (math.nan, Kind.FRACTION, "NOT_FINITE", "finite"),
        ("nan", Kind.SECONDS, "NOT_FINITE", "finite"),
        ("inf", Kind.SECONDS, "NOT_FINITE", "finite"),
        (math.inf, Kind.RATE, "NOT_FINITE", "finite"),
        ("1e999s", Kind.SECONDS, "NOT_FINITE", "finite"),
        (10**400, Kind.RATE, "OUT_OF_RANGE", "large"),
        ("", Kind.SECONDS, "NOT_A_QUANTITY", "60ms"),
        ("fast", Kind.BYTES_PER_SECOND, "NOT_A_QUANTITY", "400Gb/s"),
        (True, Kind.FRACTION, "NOT_A_QUANTITY", "70%"),
        ("1" * 100_000, Kind.RATE, "NOT_A_QUANTITY", "4/s"),
    ],
)
def test_refuses_and_says_what_to_write(text, kind, code, said):
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text, kind)
    assert caught.value.code == code
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("kind", list(Kind))
def test_every_unit_is_read_and_belongs_to_one_kind(kind):
    for unit in UNITS[kind]:
        value = parse_quantity(f"1{unit}", kind)
        assert value > 0
        assert parse_quantity(f"1e0 {unit}", kind) == pytest.approx(value, rel=1e-12)
        others = [other for other in Kind if other is not kind and unit in UNITS[other]]
        # "/h" follows a count of requests in a rate and an amount of money in a price; all else is of one kind only.
        assert others == [] or {kind, *others} == {Kind.RATE, Kind.MONEY_PER_HOUR}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.TOKENS])
def test_examples_and_units_match_the_json_pattern(kind):
    pattern = re.compile(json_pattern(kind))
    for text in (*EXAMPLES[kind], *(f"1.5 {unit}" for unit in UNITS[kind]), *(f".5{unit}" for unit in UNITS[kind])):
        assert pattern.search(text), text
    for text in ("", "x", "-1", "1.2.3"):
        assert not pattern.search(text)


@given(st.text(max_size=80), st.sampled_from(list(Kind)))
def test_any_text_is_read_or_refused(text, kind):
    try:
        assert parse_quantity(text, kind) >= 0
    except QuantityError as error:
        said = (error.message, error.hint)
        assert all(said)


@given(st.floats(1e-7, 1e7), st.sampled_from([(kind, unit) for kind in Kind for unit in UNITS[kind] if kind is not Kind.FRACTION]))
def test_scales_in_proportion(number, kind_and_unit):
    kind, unit = kind_and_unit
    one = parse_quantity(f"1{unit}", kind)
    assert parse_quantity(f"{number!r}{unit}", kind) == pytest.approx(number * one, rel=1e-12)


@given(st.floats(1e-3, 1e6))
def test_written_and_read_again(number):
    assert parse_quantity(format_bytes(number * GIBIBYTE, digits=6), Kind.BYTES) == pytest.approx(number * GIBIBYTE, rel=1e-6)
    assert parse_quantity(format_bandwidth(number * 1e6, digits=9), Kind.BYTES_PER_SECOND) == pytest.approx(number * 1e6, rel=1e-8)
    assert parse_quantity(format_flops(number * 1e12, digits=9), Kind.FLOPS) == pytest.approx(number * 1e12, rel=1e-8)
    assert parse_quantity(format_seconds(number, digits=9), Kind.SECONDS) == pytest.approx(number, rel=1e-5)
    assert parse_quantity(f"{number!r}/s", Kind.RATE) == number


def test_forms_for_reports():
    assert format_bytes(47.31 * GIBIBYTE) == "47.3 GiB"
    assert format_bytes(1023.99 * 2**20) == "1.0 GiB"
    assert format_bytes(100) == "100 B"
    assert format_seconds(0.041) == "41.0 ms"
    assert format_seconds(3e-6) == "3.0 us"
    assert format_seconds(0.99999) == "1.0 s"
    assert format_seconds(0) == "0 s"
    assert format_rate(4.0) == "4/s"
    assert format_money(24) == "$24.00/h"
    assert format_money(24, "CHF") == "24.00 CHF/h"
    assert format_money(8.541, per="") == "$8.54"
    assert format_bandwidth(4.5e11) == "450 GB/s"
    assert format_bandwidth(999_999) == "1 MB/s"
    assert format_fraction(0.73) == "73 %"


def test_currency_of_a_price():
    assert currency_of("$24/h") == "USD"
    assert currency_of("24 EUR/h") == "EUR"
    assert currency_of("24/h") is None
    assert currency_of(24) is None


class Sheet(BaseModel):
    memory: Bytes | None = None
    link: BytesPerSecond | None = None
    start: Seconds | None = None
    load: PerSecond | None = None
    price: MoneyPerHour | None = None
    share: Fraction | None = None
    length: Tokens | None = None


def test_fields_read_text_and_their_own_output():
    sheet = Sheet.model_validate(
        {"memory": "80GB", "link": "400Gb/s", "start": "2us", "load": "240/min", "price": "$24/h", "share": "70%", "length": 2048}
    )
    assert sheet.model_dump() == {"memory": 80e9, "link": 5e10, "start": 2e-6, "load": 4.0, "price": 24.0, "share": 0.7, "length": 2048}
    assert Sheet.model_validate(sheet.model_dump()) == sheet
    assert Sheet.model_validate(json.loads(sheet.model_dump_json())) == sheet


def test_files_must_name_ambiguous_units():
    context = {"bare_numbers": False}
    assert Sheet.model_validate({"load": 4, "price": 24, "share": 0.7}, context=context).load == 4.0
    for field in ("memory", "link", "start"):
        with pytest.raises(ValidationError) as caught:
            Sheet.model_validate({field: 60}, context=context)
        (error,) = caught.value.errors()
        assert error["ctx"]["error"].code == "MISSING_UNIT"


class Bounded(BaseModel):
    inside: Annotated[Seconds, Field(gt=0, le=60)] | None = None
    outside: Tokens = Field(default=1, ge=1, le=100)


@pytest.mark.parametrize(("field", "value"), [("inside", "0s"), ("inside", "61s"), ("outside", 0), ("outside", 101)])
def test_bounds_of_a_field_hold_on_either_side_of_the_annotation(field, value):
    with pytest.raises(ValidationError) as caught:
        Bounded.model_validate({field: value})
    assert caught.value.errors()[0]["loc"] == (field,)


def test_schema_of_bounded_fields():
    assert Bounded.model_json_schema()["properties"]["outside"].items() >= {"minimum": 1, "maximum": 100, "type": "integer"}.items()


def test_schema_of_fields_allows_numbers_only_where_they_are_clear():
    properties = Sheet.model_json_schema()["properties"]
    for field, kind in (("memory", Kind.BYTES), ("start", Kind.SECONDS), ("load", Kind.RATE), ("share", Kind.FRACTION)):
        types = re.findall(r"'type': '(number|string)'", str(properties[field]))
        assert types == (["string", "number"] if kind in BARE_KINDS else ["string"])
