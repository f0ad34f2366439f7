"""Questions by name: the greatest load is what bisection finds, the smallest fleet what counting finds."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.answer.answering import answer_loaded
from planner.diagnostics import PlannerError
from planner.whatif.patching import open_base, patched
from planner.whatif.questions.asked import read_questions
from planner.whatif.questions.threshold import greatest, least
from planner.whatif.scenario_file import QuestionPart
from planner.whatif.scenarios import Change, Scenario
from planner.whatif.solving import Limits
from planner.whatif.store import Store
from planner.whatif.study import open_study

from .conftest import NICS, write

FLEETS = [pytest.param(seed, marks=() if seed < 2 else pytest.mark.thorough) for seed in range(100)]


def random_fleet(seed: int):
    """One to three nodes of one or two types, one or two deployments, sometimes with bounds of their own."""
    draw = random.Random(seed)
    gpus = draw.sample(["h100-sxm-80gb", "a100-sxm-80gb", "l40s-48gb"], draw.randint(1, 2))
    nodes = [
        {
            "name": f"{gpu[:4]}-[1-{draw.randint(2, 3)}]",
            "gpu": gpu,
            "gpus": draw.choice([4, 8]),
            "nics": NICS,
            "leaf": f"leaf-{gpu[:4]}",
            "price": f"${10 + index}/h",
        }
        for index, gpu in enumerate(gpus)
    ]
    deployments = []
    for name in ["chat", "tags"][: draw.randint(1, 2)]:
        load = {"concurrency": draw.randint(5, 60)} if draw.random() < 0.6 else {"request_rate": f"{draw.randint(1, 20)}/s"}
        workload = {"prompt_tokens": draw.choice([256, 1024]), "output_tokens": draw.choice([64, 256]), **load}
        deployment = {
            "name": name,
            "model": draw.choice(["llama-3.1-8b", "qwen3-32b", "llama-3.1-70b"]),
            "workload": workload,
            "slo": {"tpot": f"{draw.choice([40, 60, 100])}ms"},
        }
        if draw.random() < 0.3:
            deployment["replicas"] = {"max": draw.randint(1, 4)}
        if draw.random() < 0.3:
            deployment["headroom"] = "10%"
        deployment["parallelism"] = {"tp": [1, 2, 4, 8], "pp": 1}
        deployments.append(deployment)
    objective = draw.choice(["cost", "gpus"])
    topology = {
        "name": "drawn",
        "nodes": nodes,
        "fabric": {"kind": "infiniband"},
        "taken": [f"{gpus[0][:4]}-1:[0,1]"] if draw.random() < 0.5 else [],
    }
    return {"name": f"drawn-{seed}", "topology": topology, "deployments": deployments, "objective": objective}


def asked(path, **questions):
    base = open_base(path)
    with Store() as store:
        study = open_study(base, store, Limits())
        return [question(study) for question in read_questions(base, QuestionPart(**questions))]


def fits(base, *changes: Change) -> bool:
    """Solved from scratch, without any memory."""
    return answer_loaded(patched(base, Scenario("tried", changes))).plan.status in {"optimal", "feasible"}


def greatest_load(tmp_path, seed):
    """What is told as the greatest load of the first deployment, in steps of its last digit, and whether so many steps fit."""
    path = write(tmp_path / "problem.json", random_fleet(seed))
    base = open_base(path)
    deployment = base.loaded.problem.deployments[0]
    (answer,) = asked(path, max_load=(deployment.name,))
    assert answer.proved
    if deployment.workload.concurrency is not None:
        key, step = "concurrency", 1.0
    else:
        key, step = "request_rate", 10.0 ** -max(0, 3 - len(str(int(deployment.workload.request_rate))) + 1)

    def change(number: int) -> Change:
        return Change(f"deployments.{deployment.name}.workload.{key}", str(number) if step == 1.0 else f"{number * step:.6f}/s")

    told = round(answer.value / step)
    assert answer.value == pytest.approx(told * step, abs=step / 100)
    return told, lambda number: fits(base, change(number))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_greatest_load_fits_and_no_more_does(tmp_path, seed):
    told, fit = greatest_load(tmp_path, seed)
    assert told == 0 or fit(told)
    assert not fit(told + 1)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100))
def test_the_greatest_load_is_what_bisection_finds(tmp_path, seed):
    told, fit = greatest_load(tmp_path, seed)
    low, high = 0, 1
    while fit(high):
        low, high = high, high * 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    assert told == low


@pytest.mark.parametrize("seed", FLEETS)
def test_the_smallest_fleet_is_what_counting_finds(tmp_path, seed):
    path = write(tmp_path / "problem.json", random_fleet(seed + 1000))
    base = open_base(path)
    group = base.data["topology"]["nodes"][0]["name"]
    (answer,) = asked(path, smallest_fleet=(group,))
    several = len(base.data["topology"]["nodes"]) > 1
    counted = next((count for count in range(0 if several else 1, 7) if fits(base, Change(f"nodes.{group}.count", str(count)))), None)
    assert answer.proved
    if counted is None:
        assert answer.value is None or answer.value > 6
    else:
        assert answer.value == counted


@given(st.integers(-5, 60), st.integers(-5, 60), st.integers(0, 20), st.integers(20, 50))
def test_the_threshold_is_found_from_any_guess(threshold, guess, lowest, most):
    expected = None if threshold < lowest else min(threshold, most)
    assert greatest(lambda number: number <= threshold, guess, lowest, most) == expected
    expected = None if threshold > most else max(threshold, lowest)
    assert least(lambda number: number >= threshold, guess, lowest, most) == expected


def test_a_right_guess_takes_two_tests():
    tried = []
    greatest(lambda number: not tried.append(number) and number <= 104, 104, 1, 10**6)
    assert tried == [104, 105]


def test_the_fleet_runs_out_where_no_month_fits_any_more(fleet):
    (answer,) = asked(fleet, growth="20%/month")
    base = open_base(fleet)
    assert fits(base, Change("load", f"x{1.2**answer.value:.9f}"))
    assert not fits(base, Change("load", f"x{1.2 ** (answer.value + 1):.9f}"))
    assert answer.rows[-1]["status"] == "infeasible"
    assert answer.rows[0]["load"] == 1


def test_all_loads_together_are_scaled_as_far_as_they_fit(fleet):
    (answer,) = asked(fleet, max_load=("all",))
    base = open_base(fleet)
    assert fits(base, Change("load", f"x{answer.value:.3f}"))
    assert not fits(base, Change("load", f"x{answer.value + 0.001:.3f}"))


def test_every_node_fails_in_turn(fleet):
    (answer,) = asked(fleet, worst_failure="node")
    assert sum(row["alike"] for row in answer.rows) == 5
    base = open_base(fleet)
    cost = {
        name: answer_loaded(patched(base, Scenario("lost", (Change("lose", name),)))).plan.cost_per_hour
        for name in base.loaded.fabric.nodes
    }
    assert max(row["cost_per_hour"] for row in answer.rows) == pytest.approx(max(cost.values()))
    assert min(row["cost_per_hour"] for row in answer.rows) == pytest.approx(min(cost.values()))
    assert answer.rows[0]["fails"] == answer.value


def test_leaves_fail_with_their_nodes(fleet):
    (answer,) = asked(fleet, worst_failure="leaf")
    assert {row["fails"] for row in answer.rows} == {"leaf-1", "leaf-2"}


def test_what_to_buy_is_told_by_what_it_carries_for_its_price(fleet):
    (answer,) = asked(fleet, buy=("h100-[01-03]:2", "a100-[01-02]", "h200-sxm-141gb:1"))
    assert len(answer.rows) == 4
    assert answer.rows[1]["price"] == pytest.approx(48.0)
    assert all(row["load"] >= answer.rows[0]["load"] for row in answer.rows)
    assert answer.value == max(answer.rows[1:], key=lambda row: row["load_per_money"])["buy"]


def test_one_more_node_is_never_worth_less_than_nothing(fleet):
    (answer,) = asked(fleet, node_value=True)
    assert {row["group"] for row in answer.rows} == {"h100-[01-03]", "a100-[01-02]"}
    assert all(row["saves_per_hour"] >= -1e-9 and row["load_gained"] >= -1e-9 for row in answer.rows)


def test_everything_wrong_with_the_questions_is_told_at_once(fleet):
    with pytest.raises(PlannerError) as caught:
        asked(fleet, max_load=("chatt",), smallest_fleet=("h100",), growth="fast", worst_failure="rack", buy=("b300:0", "nothing-known"))
    codes = [item.code for item in caught.value.diagnostics]
    assert codes == [
        "UNKNOWN_DEPLOYMENT",
        "UNKNOWN_PATH",
        "GROWTH_NOT_UNDERSTOOD",
        "FAILURE_KIND_UNKNOWN",
        "PURCHASE_NOT_UNDERSTOOD",
        "UNKNOWN_PATH",
    ]
    assert "chat" in caught.value.diagnostics[0].hint
