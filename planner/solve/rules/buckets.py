"""Every bucket of a load is served, slice by slice, by shapes that may serve it, and no replica is asked for more than it has room for.

::

    sum_s x[s,b] = S_m                                   every bucket b of deployment m, cut into S_m slices
    sum_b w[s,b] x[s,b] <= U_m n_s                       every shape s of m,   w[s,b] = ceil(U_m L_b / (S_m q[s,b]))

With S_m = 1 a bucket goes whole to one shape, as a request size goes to one GPU type in the paper; many slices split it as a router does. The
replicas of a shape share its slices evenly, so that each has room when all together have.

Where load may go unserved, u[b] slices of a bucket do, and what they add up to counts as the load that does::

    sum_s x[s,b] + u[b] = S_m,   S_m u_m >= sum_b L_b u[b]

When the load served is to be greatest, the bucket served least tells the share::

    10^6 sum_s x[s,b] >= S_m lambda,   sum_{s of m} n_s >= 1

========== ================ ===============================================================
symbol     unit             meaning
========== ================ ===============================================================
n_s        replicas         replicas of shape s
x[s,b]     slices           slices of bucket b that shape s serves
L_b        sequences or     load of bucket b
           requests/s
q[s,b]     as L_b           what one replica of shape s serves of bucket b alone within memory and targets
w[s,b]     1 / U_m          what a slice of b takes of one replica of s, rounded up; no x[s,b] where s may not serve b
U_m        1                units of room of one replica
u_m        as L_b           load that goes unserved
lambda     1e-6             share of every load that is served
========== ================ ===============================================================

Source: Griggs et al., "Melange: Cost Efficient Large Language Model Serving by Exploiting GPU Heterogeneity" (arXiv 2404.14527), section 5; its
variables for single slices are added up here, as slices of one bucket are alike.
"""

from __future__ import annotations

from planner.solve.buckets import Slicing
from planner.solve.model import Model, most_slices
from planner.solve.scaling import SHARE_UNITS

NAME = "buckets"


def apply(model: Model) -> None:
    """Write the rows of every deployment whose load is in buckets."""
    for deployment, slicing in enumerate(model.instance.slicing):
        if slicing is not None:
            _serve(model, deployment, slicing)


def _serve(model: Model, deployment: int, slicing: Slicing) -> None:
    program, instance = model.program, model.instance
    shapes = instance.serving(deployment).tolist()
    served: list[dict[int, int]] = [{} for _ in slicing.buckets]
    for shape in shapes:
        room = {model.count[shape]: -slicing.unit}
        for bucket, use in instance.served_buckets(shape).items():
            most = most_slices(instance, shape, use, program.upper[model.count[shape]])
            if most:
                variable = program.add_variable(0, most)
                model.slices[shape, bucket] = variable
                served[bucket][variable] = 1
                room[variable] = use
        program.add_row(NAME, room, upper=0)
    if model.share is not None:
        for terms in served:
            program.add_row(NAME, {**dict.fromkeys(terms, SHARE_UNITS), model.share: -slicing.slices}, lower=0)
        program.add_row(NAME, {model.count[shape]: 1 for shape in shapes}, lower=1)
        return
    left: dict[int, int] = {}
    for terms, load in zip(served, slicing.loads, strict=True):
        if deployment in model.unserved:
            missing = program.add_variable(0, slicing.slices)
            left[missing] = -load
            terms[missing] = 1
        program.add_row(NAME, terms, lower=slicing.slices, upper=slicing.slices)
    if left:
        program.add_row(NAME, {**left, model.unserved[deployment]: slicing.slices}, lower=0)
