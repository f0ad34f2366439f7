"""Forms of replicas that another form can always stand in for, where all replicas of a deployment have one form.

A shape alone cannot give way there: replicas of its form on other pools, or those that run, would stay. A form leaves as a whole, where on every
pool that it is offered on one and the same other form has a shape that stands in for its own. All replicas then change at once, so that there is still one form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.solve.instance import BoolArray, Instance, IntArray

MOST_PAIRS = 100_000
"""Pairs of shapes that are compared at once."""

StandsIn = Callable[[IntArray, IntArray], BoolArray]
"""Which winners stand in for which losers [losers, winners], shapes of one pool."""


def lasting_forms(instance: Instance, own: IntArray, figures: IntArray, stands_in: StandsIn) -> BoolArray:
    """Mask of the shapes that stay [n], of the shapes `own` [n] of one deployment that are placed anew.

    Parameters
    ----------
    instance, own
        The question, and indices of the shapes.
    figures
        What a shape that stands in must not have more of [n, figures], its capacity negated among them.
    stands_in
        Tells which shapes of a pool stand in for which others.
    """
    columns = instance.shapes
    form = columns.form[own]
    of_form: dict[int, list[int]] = {}
    for place in np.lexsort((own, columns.pool[own], form)).tolist():
        of_form.setdefault(int(form[place]), []).append(place)
    running = set(columns.form[instance.kept & (columns.deployment == columns.deployment[own[0]])].tolist()) if len(own) else set()
    stays = _best_of_alike(instance, own, figures, of_form, running)
    left = np.array(sorted(place for one in stays for place in of_form[one]), dtype=np.int64)
    numbers = {one: number for number, one in enumerate(stays)}
    # Whether every shape of a form [forms] has one of another form [forms] to stand in for it.
    every = np.ones((len(stays), len(stays)), dtype=bool)
    for pool in sorted(set(columns.pool[own[left]].tolist())):
        places = left[columns.pool[own[left]] == pool]
        by_form = np.array([numbers[one] for one in form[places].tolist()], dtype=np.int64)
        for start in range(0, len(places), rows := max(1, MOST_PAIRS // len(places))):
            found = stands_in(own[places[start : start + rows]], own[places])
            for row, one in enumerate(by_form[start : start + rows].tolist()):
                able = np.zeros(len(stays), dtype=bool)
                able[by_form[found[row]]] = True
                every[one] &= able
    keep = np.ones(len(stays), dtype=bool)
    for number, one in enumerate(stays):
        keep[number] = one in running or not (every[number] & keep).any()
    mask = np.zeros(len(own), dtype=bool)
    for number, one in enumerate(stays):
        mask[of_form[one]] = keep[number]
    return mask


def _best_of_alike(instance: Instance, own: IntArray, figures: IntArray, of_form: dict[int, list[int]], running: set[int]) -> list[int]:
    """Forms that none of the same groups on the same pools replaces one for one; the first of equals stays."""
    columns = instance.shapes
    alike: dict[tuple[object, ...], list[tuple[tuple[int, ...], int]]] = {}
    for one, places in of_form.items():
        shapes = own[places]
        kind = tuple(tuple(getattr(columns, name)[shapes].tolist()) for name in ("pool", "size", "groups", "container", "within_part"))
        alike.setdefault(kind, []).append((tuple(figures[places].ravel().tolist()), one))
    stays = []
    for forms in alike.values():
        best: list[tuple[int, ...]] = []
        for mine, one in sorted(forms):
            beaten = bool(best) and bool((np.array(best) <= np.array(mine)).all(axis=1).any())
            if not beaten:
                best.append(mine)
            if not beaten or one in running:
                stays.append(one)
    return sorted(stays)
