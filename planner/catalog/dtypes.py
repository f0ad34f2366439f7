"""Number formats by name: how many bytes an element takes, scales not counted."""

from __future__ import annotations

from typing import Final

BYTES_PER_ELEMENT: Final[dict[str, float]] = {
    "int64": 8.0,  # tables of indices
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "mxfp8": 1.0,
    "mxfp6": 0.75,
    "int4": 0.5,
    "mxfp4": 0.5,
    "nvfp4": 0.5,
}


def bytes_per_element(dtype: str) -> float:
    """Size of one element of `dtype` [B].

    Raises
    ------
    KeyError
        If the dtype is not in the table; documents are checked against it when they are read.
    """
    return BYTES_PER_ELEMENT[dtype]
