"""A deployment has no fewer and no more replicas than asked, all of one shape where asked.

::

    min_m <= sum_{s of m} n_s <= max_m                    every deployment m
    n_s <= U_s b_f(s),   sum_{f of m} b_f <= 1            where all replicas must have one shape

========== ========== =====================================================================
symbol     unit       meaning
========== ========== =====================================================================
n_s        replicas   replicas of shape s
min_m      replicas   least replicas of deployment m
max_m      replicas   most replicas of deployment m
b_f        0 or 1     whether form f is the one used; f(s) is the form of shape s
U_s        replicas   upper bound of n_s
========== ========== =====================================================================

Source: the problem's own `replicas`; the switch b_f is the usual fixed-charge linking of Nemhauser and Wolsey (1988).
"""

from __future__ import annotations

from planner.solve.model import Model

NAME = "replicas"


def apply(model: Model) -> None:
    """Write the rows of every deployment that limits its replicas."""
    program = model.program
    for deployment, limits in enumerate(model.instance.limits):
        own = model.instance.serving(deployment)
        counts = [model.count[shape] for shape in own.tolist()]
        if limits.minimum > 0 or limits.maximum is not None:
            program.add_row(NAME, dict.fromkeys(counts, 1), lower=limits.minimum, upper=limits.maximum)
        forms = model.instance.shapes.form[own].tolist()
        if limits.one_shape and len(set(forms)) > 1:
            switches = {form: program.add_variable(0, 1) for form in sorted(set(forms))}
            for count, form in zip(counts, forms, strict=True):
                program.add_row(NAME, {count: 1, switches[form]: -program.upper[count]}, upper=0)
            program.add_row(NAME, dict.fromkeys(switches.values(), 1), upper=1)
