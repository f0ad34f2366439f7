"""One weight tensor, and the axes along which ranks may divide it; the table of `cost.tensors` gives each share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Split(StrEnum):
    """Axis of a tensor that ranks divide among themselves; the table of the module gives each share."""

    ROWS = "rows"
    COLUMNS = "columns"
    KV_ROWS = "kv_rows"
    REPLICATED = "replicated"
    EXPERT_ROWS = "expert_rows"
    EXPERT_COLUMNS = "expert_columns"
    VOCABULARY = "vocabulary"


EXPERT_SPLITS: Final = frozenset({Split.EXPERT_ROWS, Split.EXPERT_COLUMNS})


@dataclass(frozen=True, slots=True)
class Tensor:
    """`count` weight matrices of one name.

    `family` is attention, mlp, expert, shared_expert, router, norm (norms and biases), recurrent, embedding or head: quantization keeps whole
    families at the model's own dtype. `units` counts what cannot be cut further along the split axis: heads, kv heads, groups, or
    experts for the expert splits. `kept_high` tensors stay at the model's own dtype whatever the rest of their family does, those with a
    `dtype` at that one whatever the precision is.
    """

    name: str
    family: str
    rows: int
    columns: int
    count: int
    split: Split
    units: int = 1
    kept_high: bool = False
    dtype: str | None = None

    @property
    def parameters(self) -> int:
        """Elements of all `count` matrices."""
        return self.rows * self.columns * self.count
