"""The collector rests while objects are made that stay, and only then."""

from __future__ import annotations

import gc

import pytest

from planner.collector import uncollected


@uncollected
def resting(fail: bool = False) -> bool:
    if fail:
        raise ValueError("no")
    return gc.isenabled()


def test_the_collector_rests_and_works_again() -> None:
    assert gc.isenabled()
    assert not resting()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="no"):
        resting(fail=True)
    assert gc.isenabled()


def test_a_collector_that_rests_already_is_left_to_whoever_stopped_it() -> None:
    gc.disable()
    try:
        assert not resting()
        assert not gc.isenabled()
    finally:
        gc.enable()
