"""Times of several settings that are asked at once are those that each setting has alone, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.architecture import Adapters
from planner.catalog.models import model
from planner.cost.evaluation import prepared, together
from planner.cost.setting import TimesTable
from tests.cost.conftest import make_setting
from tests.cost.test_closed_loop import DEGREES, MODELS, setting_of, shapes_of

QUESTIONS = st.tuples(
    st.sampled_from(["h100-sxm-80gb", "a100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "l40s-48gb"]),
    st.sampled_from([1.0, 700.0, 20000.0]),
    st.sampled_from([1.0, 300.0]),
    st.sampled_from([512, 8192]),
    st.sampled_from([0.0, 0.5]),
    st.lists(DEGREES, min_size=1, max_size=5),
)


def asked(name, questions):
    """Settings of one model on several cards and their shapes."""
    for card, prompt, output, batched, hits, rows in questions:
        setting = make_setting(model(name), card, prompt=prompt, output=output)
        yield (
            replace(setting, max_batched_tokens=batched, prefix_cache_hit_rate=hits),
            shapes_of([(*row[:5], min(row[5], 2)) for row in rows]),
        )


def assert_together_as_alone(questions, *, against_one=True):
    times = [prepared(setting, shapes) for setting, shapes in questions]
    groups = together(times)
    assert sorted(number for group in groups for number in group.members) == list(range(len(times)))
    for group in groups:
        own = [np.arange(questions[number][1].batch.size)[::-1] for number in group.members]
        batch = np.concatenate([questions[number][1].batch[rows] for number, rows in zip(group.members, own, strict=True)])
        rows = np.concatenate([rows + first for rows, first in zip(own, group.first, strict=True)])
        found, start = group.times.at(rows, batch, against_one=against_one), 0
        for number, mine in zip(group.members, own, strict=True):
            alone = times[number].at(mine, questions[number][1].batch[mine], against_one=against_one)
            for column in TimesTable.__dataclass_fields__:
                told = getattr(found, column)[start : start + mine.size]
                np.testing.assert_array_equal(told, getattr(alone, column), err_msg=column)
            start += mine.size
    return groups


@settings(max_examples=8, deadline=None)
@given(name=st.sampled_from(MODELS), questions=st.lists(QUESTIONS, min_size=2, max_size=4), against_one=st.booleans())
def test_settings_asked_together_have_the_times_of_each_alone(name, questions, against_one):
    assert_together_as_alone([*asked(name, questions)], against_one=against_one)


def test_one_model_on_many_cards_is_one_group_and_another_model_another():
    cards = ("h100-sxm-80gb", "a100-sxm-80gb", "l40s-48gb")
    shapes = shapes_of([(2, 2, 0, 1, 8, 1), (1, 1, 0, 1, 3, 0)])
    questions = [(make_setting(model(name), card), shapes) for name in ("llama-3.1-8b", "llama-3.1-70b") for card in cards]
    assert [group.members for group in assert_together_as_alone(questions)] == [(0, 1, 2), (3, 4, 5)]


def test_adapters_are_joined_and_what_cannot_be_is_asked_alone():
    """An offered rate makes requests wait, the textbook has no loop: both keep to themselves."""
    adapted = replace(model("llama-3.1-8b"), adapters=Adapters(slots=4, rank=16))
    shapes = shapes_of([(2, 2, 0, 1, 8, 1), (4, 1, 0, 1, 30, 0)])
    settings_asked = [make_setting(adapted, card) for card in ("h100-sxm-80gb", "a100-sxm-80gb")]
    settings_asked += [replace(settings_asked[0], request_rate=3.0), replace(settings_asked[0], profile="hockney")]
    groups = assert_together_as_alone([(setting, shapes) for setting in settings_asked])
    assert [group.members for group in groups] == [(0, 1), (2,), (3,)]


@pytest.mark.parametrize("name", ["gpt-oss-20b", "deepseek-v3"])
def test_experts_filled_to_tiles_stand_beside_those_that_are_not(name):
    """Some cards multiply tiles of experts without tokens, some do not; some shapes exchange tokens with experts, some do not."""
    questions = [
        (replace(setting_of(name), engine=engine), shapes_of([(1, 1, 1, 16, 64, 0), (8, 2, 0, 1, 100, 2)][:count]))
        for engine, count in (("vllm 0.12", 2), ("vllm 0.12", 1), ("vllm", 2))
    ]
    assert_together_as_alone(questions)
