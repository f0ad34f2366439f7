"""The garbage collector, held while many objects are made that all stay.

A menu, a plan and its audit make hundreds of thousands of objects, none of them garbage. The collector looks through all there are each time a quarter more have been made, which took longer than
writing a large plan down.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def uncollected(work: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate work whose objects stay: the collector rests until it ends, unless it rested before. What is not part of a cycle is freed as ever."""

    @wraps(work)
    def held(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not gc.isenabled():
            return work(*args, **kwargs)
        gc.disable()
        try:
            return work(*args, **kwargs)
        finally:
            gc.enable()

    return held
