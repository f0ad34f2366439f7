"""What is written as YAML is read back the same, by YAML 1.1 and by the reader of problem files (1.2)."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.launch.yaml_text import yaml_documents, yaml_text
from planner.problem.yaml_source import read_yaml

TEXT = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="\x7f\x85\u2028\u2029", exclude_categories=["Cc", "Cs", "Cn"]),
    max_size=12,
)
WORDS = st.sampled_from(
    [
        "no",
        "on",
        "~",
        "1e3",
        "0x1f",
        "22:22",
        "2026-11-29",
        "- a",
        "a: b",
        "a #b",
        "",
        " a",
        "null",
        "$(X):1",
        "[1]",
        "{a}",
        "*a",
        "--x=1",
        "1_000",
        ".5",
    ]
)
VALUES = st.recursive(
    st.one_of(TEXT, WORDS, st.integers(-1000, 10**6), st.booleans(), st.none(), st.just("a\nb\n"), st.just("x\n\n  y")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(WORDS, TEXT), inner, max_size=3)),
    max_leaves=8,
)


DOCUMENTS = st.dictionaries(st.sampled_from(["a", "no", "b-c", "k/x", "1"]), VALUES, min_size=1, max_size=4)


def comes_back(data):
    text = yaml_text(data)
    assert yaml.load(text, Loader=yaml.CSafeLoader) == data
    assert read_yaml(text, "x.yaml").data == data


@settings(max_examples=15, deadline=None)
@given(DOCUMENTS)
def test_what_is_written_is_read(data):
    comes_back(data)


@pytest.mark.parametrize(
    "word", ["no", "1e3", "22:22", "2026-11-29", "- a", "a: b", "a #b", "", " a", "null", "1_000", "a\nb\n", "x\n\n  y"]
)
def test_words_that_mean_something_else_come_back(word):
    comes_back({"a": word, "no": [word, {"k/x": word}]})


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(DOCUMENTS)
def test_whatever_is_written_is_read(data):
    comes_back(data)


def test_documents_keep_their_comments_apart():
    text = yaml_documents([("one\ntwo", {"a": 1}), ("", {"b": ["x"]})])
    assert list(yaml.safe_load_all(text)) == [{"a": 1}, {"b": ["x"]}]
    assert text.startswith("# one\n# two\na: 1\n---\nb:\n")
