"""Ranks of a replica on its GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from planner.plan.outcome import RankPlace
from planner.plan.shape import Degrees


def number_ranks(degrees: Degrees, groups: Sequence[Sequence[tuple[str, int, str]]]) -> tuple[RankPlace, ...]:
    """Number the ranks of one replica over its groups of (node, GPU, scope), group after group.

    With t tensor-parallel and d data-parallel ranks in a stage::

        rank = (stage d + dp_rank) t + tp_rank

    so tensor-parallel ranks are neighbours and fill a group before the next begins. Experts are spread over e ranks of a stage, each split over
    t d / e neighbours: ep_rank = (dp_rank t + tp_rank) // (t d / e).
    """
    tensor, stage_gpus = degrees.tensor_parallel, degrees.stage_gpus
    split = stage_gpus // degrees.expert_parallel
    places = [place for group in groups for place in group]
    found = []
    for rank, (node, gpu, scope) in enumerate(places):
        stage, within = divmod(rank, stage_gpus)
        found.append(RankPlace(rank, stage, within % tensor, within // tensor, within // split, node, gpu, scope))
    return tuple(found)
