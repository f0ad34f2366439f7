"""Of shapes that take the same room of a pool, those stay that none before them replaces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.solve.dominance import worth_keeping
from planner.solve.instance import Container, Instance, PoolScopes, ReplicaLimits, ShapeColumns

# Pool, container, capacity, price, communication, token time: few values, so that many are equal in some.
ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([int(Container.ANYWHERE), int(Container.LEAF)]),
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=25,
)


def instance_of(rows):
    """Shapes of two groups of two GPUs on two pools of two scopes, of one deployment."""
    pool, container, capacity, price, comm, token_time = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    same = np.full(len(rows), 2, dtype=np.int64)
    scopes = np.zeros(2, dtype=np.int64)
    places = PoolScopes(np.full(2, 8), np.full(2, 8), scopes, scopes, scopes, np.arange(2), (), ())
    columns = ShapeColumns(
        deployment=0 * same,
        pool=pool,
        size=same,
        groups=same,
        container=container,
        within_part=np.zeros(len(rows), dtype=bool),
        capacity=capacity,
        share=capacity,
        price=price,
        comm=comm,
        tpot=token_time,
        ttft=0 * same,
        form=np.arange(len(rows)),
        token_time=token_time,
    )
    return Instance(columns, np.array([5]), (places, places), (ReplicaLimits(),), source=np.arange(len(rows)))


def replaced(one, other, ties):
    """Whether a shape stands in for another of the same pool that fits where it does: serves as much for no more."""
    figures = 6 if ties else 4
    return (
        one[0] == other[0]
        and one[1] <= other[1]
        and one[2] >= other[2]
        and all(mine <= theirs for mine, theirs in zip(one[3:figures], other[3:figures], strict=True))
    )


@given(rows=ROWS, ties=st.booleans())
def test_what_leaves_has_a_stand_in_that_stays_and_what_stays_has_none(rows, ties):
    keep = worth_keeping(instance_of(rows), ties=ties)
    for row, mine in enumerate(rows):
        stand_ins = [other for other, theirs in enumerate(rows) if other != row and replaced(theirs, mine, ties)]
        if not keep[row]:
            assert any(keep[other] for other in stand_ins)
        else:
            # Of shapes equal in everything the first stays.
            assert not any(keep[other] and not replaced(mine, rows[other], ties) for other in stand_ins)


@given(rows=ROWS)
def test_of_one_shape_for_all_a_form_leaves_whole_and_for_one_form(rows):
    """Replicas on another pool would keep the form: on every pool that it is on, one other form that stays has a stand-in."""
    pairs = replace(instance_of(rows), limits=(ReplicaLimits(one_shape=True),))
    pairs = replace(pairs, shapes=replace(pairs.shapes, form=np.arange(len(rows)) // 2))
    keep = worth_keeping(pairs).tolist()
    forms = [rows[first : first + 2] for first in range(0, len(rows), 2)]
    stays = [all(keep[2 * number : 2 * number + 2]) for number in range(len(forms))]
    for number, form in enumerate(forms):
        assert stays[number] or not any(keep[2 * number : 2 * number + 2])
        assert stays[number] or any(
            stays[other] and all(any(replaced(theirs, mine, ties=True) for theirs in one) for mine in form)
            for other, one in enumerate(forms)
        )
