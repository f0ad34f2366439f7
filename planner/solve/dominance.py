"""Shapes that another shape of the same deployment can always stand in for leave before the solver sees them."""

from __future__ import annotations

import numpy as np

from planner.solve.buckets import NOT_SERVED
from planner.solve.instance import BoolArray, Container, Instance, IntArray, ShapeColumns
from planner.solve.one_form import MOST_PAIRS, lasting_forms


def dominators(
    instance: Instance, losers: IntArray, winners: IntArray, ties: bool = True, worst: IntArray | None = None, *, one_for_one: bool = False
) -> BoolArray:
    """Tell whether copies of a winner fit into the GPUs of a loser, serve as much, and cost no more (with `ties`: nor communicate more or answer slower).

    With `worst` [n], one figure of every shape, the winner's must not be larger either. With `one_for_one` a single copy must do.

    The copies use GPUs of the loser only, so no row of `occupancy`, `locality`, `billing` or `budget` can get worse; `replicas` and `spread` can, where there are several
    copies. Of two equal shapes the first stays.

    Returns
    -------
    array of bool
        [losers, winners]
    """
    lost, won = instance.shapes.take(losers), instance.shapes.take(winners)

    def column(values: IntArray) -> IntArray:
        return values[:, None]

    keeps_together = np.where(lost.groups == 1, int(Container.LEAF), lost.container)
    fits = (column(lost.size) % won.size == 0) & (won.capacity > 0)
    fits &= (won.groups == 1) | (won.container <= column(keeps_together))
    fits &= ~won.within_part | lost.within_part[:, None]
    copies = -(-column(lost.capacity) // np.maximum(won.capacity, 1))
    if lost.use is not None and won.use is not None:
        serves, copies = _of_buckets(instance, lost, won, copies, ties)
        fits &= serves
    fits &= copies * won.groups <= column(lost.groups) * (column(lost.size) // won.size)
    if instance.move_price is not None or one_for_one:
        # Every replica that is placed anew is a move, so that only one may stand in for one.
        fits &= copies <= 1
    # Copies that do not fit may be so many that money times them leaves 64 bits.
    copies = np.where(fits, copies, 0)
    better = (winners < column(losers)) | (copies * won.capacity > column(lost.capacity)) | (copies * won.gpus < column(lost.gpus))
    better |= (won.container < column(lost.container)) | (won.within_part < lost.within_part[:, None])
    for mine, theirs in ((lost.price, won.price), *(((lost.comm, won.comm), (lost.token_time, won.token_time)) if ties else ())):
        gain = copies * theirs - column(mine)
        fits &= gain <= 0
        better |= gain < 0
    if worst is not None:
        fits &= worst[winners] <= column(worst[losers])
        better |= worst[winners] < column(worst[losers])
    answer: BoolArray = fits & better & (winners != column(losers))
    return answer


def _of_buckets(instance: Instance, lost: ShapeColumns, won: ShapeColumns, copies: IntArray, ties: bool) -> tuple[BoolArray, IntArray]:
    """Whether a winner serves all buckets that a loser does (with `ties`: none slower), and how many copies have the room of one loser.

    Both [losers, winners]; loads that are not in buckets keep their `copies`. A winner takes over all slices of the loser, so that a bucket that is not
    to be split stays whole.
    """
    assert lost.use is not None
    assert won.use is not None
    sliced = np.array([instance.slicing_of(number) is not None for number in lost.deployment.tolist()], dtype=bool)[:, None]
    mine, theirs = lost.use[:, None, :], won.use[None, :, :]
    asked = mine != NOT_SERVED
    good = theirs != NOT_SERVED
    if ties and lost.bucket_tpot is not None and won.bucket_tpot is not None:
        good = good & (won.bucket_tpot[None, :, :] <= lost.bucket_tpot[:, None, :])
    serves: BoolArray = (good | ~asked).all(axis=2) | ~sliced
    needed = np.where(asked & good, -(-theirs // np.maximum(mine, 1)), 0).max(axis=2)
    # A replica that serves nothing may still be asked for by `replicas`: one stands in for it, not none.
    return serves, np.where(sliced, np.maximum(needed, 1), copies)


def worth_keeping(instance: Instance, ties: bool = True, worst: IntArray | None = None) -> BoolArray:
    """Mask of the shapes that the answer may need: those that fit somewhere and no other dominates.

    With `ties` the mask is exact for the tie-breaking stages too, without it for the objective alone, which leaves fewer shapes. Dominance
    counts only for `cost` and `gpus`: worst-case times and served shares compare shapes differently. Limits on the number of replicas
    may need the larger shape, so that only one replica stands in for one there. With `worst` [n] the mask holds under any limit on that figure of the shapes used.
    """
    columns = instance.shapes
    covers = instance.objective in {"cost", "gpus"}
    slots = [instance.pools[pool].slots(size) for pool, size in zip(columns.pool.tolist(), columns.size.tolist(), strict=True)]
    # Replicas that stay need no slot; there are only so many of them, so that they replace nothing and nothing replaces them.
    keep = (np.array(slots, dtype=np.int64) >= columns.groups) | instance.kept
    if covers:
        keep &= (columns.capacity > 0) | instance.spare
    else:
        return keep
    for deployment, limits in enumerate(instance.limits):
        # Copies of a smaller shape keep what survives a failure, as they use GPUs of the larger only, but they are more replicas.
        rules = instance.rules_of(deployment)
        one_for_one = limits.maximum is not None or rules.spread is not None or rules.placed_apart is not None
        if limits.one_shape and instance.slicing_of(deployment) is None:
            own = np.flatnonzero((columns.deployment == deployment) & ~instance.kept & ~instance.spare & keep)
            keep[own] = _lasting_forms(instance, own, ties, worst, one_for_one=one_for_one)
            continue
        if one_for_one and instance.slicing_of(deployment) is not None:
            continue
        by_pool: dict[int, list[int]] = {}
        own = np.flatnonzero((columns.deployment == deployment) & ~instance.kept & ~instance.spare)
        if limits.one_shape:
            own = own[_at_home(instance, deployment, own)]
        sliced = instance.slicing_of(deployment) is not None
        for shape in own[keep[own]].tolist() if sliced else _best_of_equals(instance, own, keep, ties, worst):
            by_pool.setdefault(int(columns.pool[shape]), []).append(shape)
        for together in by_pool.values():
            others = np.array(together, dtype=np.int64)
            for start in range(0, len(others), rows := max(1, MOST_PAIRS // len(others))):
                losers = others[start : start + rows]
                found = dominators(instance, losers, others, ties, worst, one_for_one=one_for_one)
                for row in np.flatnonzero(found.any(axis=1)).tolist():
                    keep[losers[row]] &= not (found[row] & keep[others]).any()
    if columns.spare_of is not None:
        # Copies of a winner fit into the spares of the shape they stand in for, so that spares need no shapes but those of what is left.
        keep &= ~instance.spare | np.isin(columns.spare_of, instance.source[keep & ~instance.spare])
    return keep


def _at_home(instance: Instance, deployment: int, shapes: IntArray) -> BoolArray:
    """Mask of the shapes whose form exists on their pool only [shapes].

    All replicas of such a form can give way to another form at once; others, on further pools or running already, would keep the form that was replaced here.
    """
    columns, own = instance.shapes, instance.of_deployment(deployment)
    where = np.unique(np.column_stack((columns.form[own], columns.pool[own], instance.kept[own])), axis=0)
    forms, times = np.unique(where[:, 0], return_counts=True)
    home: BoolArray = np.isin(columns.form[shapes], forms[times == 1])
    return home


def _lasting_forms(instance: Instance, own: IntArray, ties: bool, worst: IntArray | None, *, one_for_one: bool) -> BoolArray:
    """Mask of the shapes `own` that stay, of a deployment whose replicas all have one form."""
    columns = instance.shapes
    figures = [-columns.capacity, columns.price, *((columns.comm, columns.token_time) if ties else ())]
    if worst is not None:
        figures.append(worst)

    def stands_in(losers: IntArray, winners: IntArray) -> BoolArray:
        return dominators(instance, losers, winners, ties, worst, one_for_one=one_for_one)

    return lasting_forms(instance, own, np.column_stack(figures)[own], stands_in)


def _best_of_equals(instance: Instance, shapes: IntArray, keep: BoolArray, ties: bool, worst: IntArray | None) -> list[int]:
    """Drop from `keep` the shapes that one of the same pool, groups and container replaces one for one; give those that stay, in order.

    Most of a long menu goes here, without comparing every pair.
    """
    columns = instance.shapes
    shapes = shapes[keep[shapes]]
    alike = np.zeros(len(shapes), dtype=np.int64)
    for name in ("pool", "size", "groups", "container", "within_part"):
        column = getattr(columns, name)[shapes].astype(np.int64)
        alike = alike * (int(column.max(initial=0)) + 1) + column
    lost = [columns.price[shapes], *((columns.comm[shapes], columns.token_time[shapes]) if ties else ())]
    if worst is not None:
        lost.append(worst[shapes])
    # Those that serve most come first, so that a shape can only be replaced by one before it.
    order = np.lexsort((shapes, *reversed(lost), -columns.capacity[shapes], alike))
    alike, figures = alike[order], np.column_stack(lost)[order]
    left = np.arange(len(order))
    while left.size:
        # The first that is left of every sort stays, and replaces those that are better in nothing.
        first = np.ones(left.size, dtype=bool)
        np.not_equal(alike[left[1:]], alike[left[:-1]], out=first[1:])
        replaced = (figures[left[first]][np.cumsum(first) - 1] <= figures[left]).all(axis=1)
        keep[shapes[order[left[replaced & ~first]]]] = False
        left = left[~replaced]
    stays: list[int] = shapes[keep[shapes]].tolist()
    return stays
