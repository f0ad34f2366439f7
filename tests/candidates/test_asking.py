"""What is asked of many deployments at once is answered as of each alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from planner.candidates.asking import Asked, Searched, answered
from planner.candidates.menu import build_menu
from planner.candidates.remembered import Remembered
from planner.problem.load import load_problem
from planner.whatif.menus import MenuMemory
from tests.cost.test_closed_loop import setting_of, shapes_of

PROBLEM = str(Path(__file__).parents[2] / "problems" / "mixed_fleet.yaml")
# A percentile, a least efficiency and a context longer than any request beside plain questions.
OVERRIDES = (
    "deployments.chat.slo.percentile=99",
    "deployments.code.memory={max_model_len: 16384}",
    "deployments.tags.min_efficiency=60%",
)


def test_a_menu_is_that_of_its_deployments_one_by_one():
    loaded = load_problem(PROBLEM, OVERRIDES)
    whole = build_menu(loaded, every_batch=True)
    alone = [build_menu(loaded, every_batch=True, only=(index,)) for index in range(len(loaded.problem.deployments))]
    assert whole.shapes == tuple(shape for menu in alone for shape in menu.shapes)
    assert whole.rejected == tuple(item for menu in alone for item in menu.rejected)


def test_evaluators_with_a_memory_answer_alike():
    loaded = load_problem(PROBLEM)
    plain, remembered, memory = build_menu(loaded), Remembered(), MenuMemory()
    for evaluator in (remembered.evaluate, remembered.evaluate, memory.evaluate, memory.evaluate):
        menu = build_menu(loaded, evaluator=evaluator)
        assert (menu.shapes, menu.rejected) == (plain.shapes, plain.rejected)
    assert memory.reused >= memory.evaluated > 0


def test_searches_go_on_until_the_last_has_ended():
    """Some ask more often than others, some not at all, some to be compared with one GPU; each is sent what it asked for."""
    setting, shapes = setting_of("llama-3.1-8b"), shapes_of([(1, 1, 0, 1, 1, 0), (2, 1, 0, 1, 1, 0)])

    def search(rounds):
        def begin(alike):
            told = []
            for number in range(rounds):
                batch = np.array([number + 1, 2 * number + 1])
                times = yield Asked(np.array([1, 0]), batch, against_one=number % 2 == 1)
                told.append((times.tpot.tolist(), bool(np.isnan(times.efficiency).any())))
            return len(alike[:2]), told

        return Searched(setting, shapes, begin)

    alone = [answered([search(rounds)])[0] for rounds in (3, 0, 1, 5)]
    assert answered([search(rounds) for rounds in (3, 0, 1, 5)]) == alone
    assert [len(told) for _, told in alone] == [3, 0, 1, 5]
    assert [compared for _, compared in alone[0][1]] == [True, False, True]


def test_searches_on_equal_shapes_share_what_is_prepared(monkeypatch):
    from planner.candidates import asking

    calls = []
    monkeypatch.setattr(asking, "prepared", lambda *asked, prepare=asking.prepared: calls.append(asked) or prepare(*asked))

    def begin(alike):
        times = yield Asked(np.arange(2), np.array([4, 5]), against_one=False)
        return times.tpot.tolist()

    asked = [
        Searched(setting_of(name), shapes_of([(1, 1, 0, 1, 1, 0), (2, 1, 0, 1, 1, 0)]), begin)
        for name in ("llama-3.1-8b", "gpt-oss-20b") * 2
    ]
    found = answered(asked)
    assert len(calls) == 2
    assert found[0] == found[2] != found[1] == found[3]
