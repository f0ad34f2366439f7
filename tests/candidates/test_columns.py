"""Laws of the evaluated menu: what an engine would refuse at its start is refused by the menu."""

from __future__ import annotations

from pathlib import Path

from planner.candidates.menu import build_menu
from planner.plan.shape import Degrees
from planner.problem.load import load_problem

PROBLEM = str(Path(__file__).parents[2] / "problems" / "one_node_70b_efficiency.yaml")


def test_a_cache_that_holds_no_context_of_the_asked_length_is_refused():
    """With 70 % of the memory TP2 holds a request of the workload, but no context of 131,072 tokens (20 GiB of cache a GPU)."""
    free = "deployments.assistant.min_efficiency=1%"
    short = build_menu(load_problem(PROBLEM, [free, "deployments.assistant.memory={gpu_memory_utilization: 0.7}"]))
    long = build_menu(load_problem(PROBLEM, [free, "deployments.assistant.memory={gpu_memory_utilization: 0.7, max_model_len: 131072}"]))
    tp2 = Degrees(2)
    assert tp2 in {shape.degrees for shape in short.shapes}
    assert tp2 not in {shape.degrees for shape in long.shapes}
    (refused,) = [item for item in long.rejected if item.degrees == tp2]
    assert refused.code == "KV_DOES_NOT_FIT"
    assert "131,072 tokens" in refused.message


def test_a_longer_context_never_adds_a_shape():
    counts = [
        len(build_menu(load_problem(PROBLEM, [f"deployments.assistant.memory={{max_model_len: {length}}}"])).shapes)
        for length in (2048, 32768, 131072)
    ]
    assert counts == sorted(counts, reverse=True)
