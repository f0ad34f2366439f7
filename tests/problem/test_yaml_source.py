from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.problem.json_source import json_marks, read_json
from planner.problem.yaml_source import plain_scalar, read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-12", -12),
        ("0o14", 12),
        ("0x1F", 31),
        ("007", 7),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.", 1.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("yes", "yes"),
        ("off", "off"),
        ("1_000", "1_000"),
        ("2026-01-01", "2026-01-01"),
        ("0b1", "0b1"),
        ("12:30", "12:30"),
        ("$24/h", "$24/h"),
        ("70%", "70%"),
        ("<<", "<<"),
    ],
)
def test_plain_scalars_follow_the_core_schema(text, value):
    found = plain_scalar(text)
    assert found == value
    assert type(found) is type(value)
    if text:
        assert read_yaml(f"- {text}", None).data == [value]


def test_quoted_scalars_are_text():
    assert read_yaml('["1", \'true\', ""]', None).data == ["1", "true", ""]
    assert read_yaml("- !!str 1\n- !!float 1\n- !!int 2", None).data == ["1", 1, 2]


def test_json_is_read_with_tabs_and_surrogate_pairs():
    text = '{\n\t"name": "\\ud83d\\ude00",\n\t"list": [1, 2.5, null, true]\n}'
    source = read_yaml(text, None)
    assert source.data == {"name": "😀", "list": [1, 2.5, None, True]}
    assert source.values["list", 1] == (3, 14)


def test_places_in_json_are_found_when_asked_for():
    source = read_yaml('{"a": [1,\n {"b": 2}]}', "f.json")
    assert source.values == {}
    assert str(source.place(("a", 1, "b"))) == "f.json:2:8: a.1.b"
    source = read_yaml('{"a": 1}', "f.json")
    source.put(("a",), 2, "--set a=2")
    assert (source.data, source.place(("a",)).file) == ({"a": 2}, "--set a=2")


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1, "a": 2}', '{"a": 1,}', "{a: 1}", "[1, 2] # end"])
def test_what_is_no_plain_json_is_read_as_yaml(text):
    assert read_json(text) is None
    assert read_yaml(text, None).data


def test_every_key_and_value_has_its_place():
    source = read_yaml("a: 1\nb:\n  - c: x\n    d: [y,\n      z]\n", "f.yaml")
    assert source.keys == {("a",): (1, 1), ("b",): (2, 1), ("b", 0, "c"): (3, 5), ("b", 0, "d"): (4, 5)}
    assert source.values["a",] == (1, 4)
    assert source.values["b", 0, "d", 1] == (5, 7)
    assert str(source.place(("b", 0, "d", 1))) == "f.yaml:5:7: b.0.d.1"
    assert str(source.place(("b", 0, "missing"))) == "f.yaml:3:5: b.0.missing"
    assert str(source.place(("b", 0, "d"), key=True)) == "f.yaml:4:5: b.0.d"


def test_aliases_share_and_keep_the_place_of_the_use():
    source = read_yaml("a: &x {k: 1}\nb: *x\nc: [*x]\n", None)
    assert source.data == {"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}]}
    assert (source.place(("b", "k")).line, source.place(("c", 0, "k")).line) == (2, 3)


def test_setting_a_value_leaves_what_an_alias_shares():
    source = read_yaml("a: &x {k: 1}\nb: *x\n", None)
    source.put(("b", "k"), 2, "--set b.k=2")
    assert source.data == {"a": {"k": 1}, "b": {"k": 2}}
    assert source.place(("b", "k")).file == "--set b.k=2"


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**12), 10**12)
        | st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1, max_size=3), inner, max_size=3),
        max_leaves=8,
    ).filter(lambda data: data is not None)
)
def test_what_json_writes_is_read_the_same(data):
    import json

    for text in (json.dumps(data), json.dumps(data, indent=2, ensure_ascii=False)):
        assert read_yaml(text, None).data == data
        if isinstance(data, dict | list):
            by_yaml = read_yaml(f"--- {text}", None)
            keys, values = json_marks(f"    {text}")
            assert (by_yaml.data, by_yaml.keys, by_yaml.values) == (data, keys, values)
