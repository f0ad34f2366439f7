"""The auditor on plans whose load is in buckets: a right plan passes, and every way to spoil one is found."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from planner.answer.answering import Answer, Options, answer
from planner.audit.audit import audit
from planner.plan.document import PlanDocument

PROBLEM = Path(__file__).parents[2] / "problems/melange_toy.yaml"


@cache
def answered(*overrides: str) -> Answer:
    return answer(str(PROBLEM), Options(overrides=overrides))


def codes(change, *overrides: str) -> set[str]:
    found = answered(*overrides)
    data = found.plan.model_dump(mode="json")
    change(data["deployments"][0]["replicas"])
    plan = PlanDocument.model_validate(data)
    loaded = found.loaded
    return {item.code for item in audit(loaded.problem, loaded.fabric, loaded.architectures, plan)}


def bucket(replicas, name):
    return next(item for replica in replicas for item in replica["buckets"] if item["name"] == name)


def scaled(name, key, factor):
    def change(replicas):
        bucket(replicas, name)[key] *= factor

    return change


def served_less(replicas):
    item = bucket(replicas, "long-long")
    item["load"], item["fraction"] = item["load"] * 0.5, item["fraction"] * 0.5


def served_more(replicas):
    for item in replicas[-1]["buckets"]:
        item["load"], item["fraction"] = item["load"] * 2, item["fraction"] * 2


def renamed(replicas):
    bucket(replicas, "long-long")["name"] = "longest"


def dropped(replicas):
    replicas[-1]["buckets"].pop()


def twice(replicas):
    replicas[-1]["buckets"].append(dict(replicas[-1]["buckets"][0]))


def not_a_number(replicas):
    replicas[-1]["buckets"][0]["fraction"] = -0.1


def of_other_lengths(replicas):
    bucket(replicas, "long-long")["prompt_tokens"] += 1


def swapped_batch(replicas):
    replicas[-1]["shape"]["batch"] += 1


def full_room(replicas):
    replicas[0]["capacity"] *= 2


def test_a_right_plan_passes():
    assert codes(list) == set()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (scaled("short-long", "fraction", 0.5), "BUCKET_MISMATCH"),
        (scaled("short-long", "capacity", 2), "CAPACITY_MISMATCH"),
        (scaled("short-long", "throughput_tokens_s", 2), "TIME_MISMATCH"),
        (scaled("short-long", "batch", 2), "KV_MISMATCH"),
        (served_less, "LOAD_NOT_COVERED"),
        (served_more, "REPLICA_OVERFULL"),
        (renamed, "BUCKET_UNKNOWN"),
        (dropped, "LOAD_NOT_COVERED"),
        (twice, "BUCKET_UNKNOWN"),
        (not_a_number, "FIGURE_NOT_VALID"),
        (of_other_lengths, "BUCKET_MISMATCH"),
        (swapped_batch, "BUCKET_MISMATCH"),
        (full_room, "CAPACITY_MISMATCH"),
    ],
)
def test_a_spoilt_plan_is_found(change, code):
    assert code in codes(change)


def test_a_bucket_split_finer_than_asked_is_found():
    """The plan for buckets that may be split is wrong where they may not."""
    split = answered("deployments.chat.workload.slices=5040").plan
    loaded = answered().loaded
    assert split.cost_per_hour == pytest.approx(4.68)
    assert "BUCKET_SPLIT" in {item.code for item in audit(loaded.problem, loaded.fabric, loaded.architectures, split)}
