"""The arithmetic that every quantization rule shares: is the shard of a matrix a whole number of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from planner.candidates.legality.question import LARGEST_HINTED, cut_inputs, cut_width, degrees_that, ranks_of
from planner.cost.tensor import EXPERT_SPLITS, Split, Tensor
from planner.plan.shape import Degrees

MATRICES: Final = {
    "q_proj": "q projection",
    "q_b_proj": "q up projection",
    "kv_b_proj": "kv up projection",
    "k_proj": "k projection",
    "v_proj": "v projection",
    "o_proj": "attention output projection",
    "o_a_proj": "grouped output projection",
    "o_b_proj": "attention output projection",
    "gate_up_proj": "dense gate and up projection",
    "down_proj": "dense down projection",
    "expert_gate_up_proj": "expert gate and up projection",
    "expert_down_proj": "expert down projection",
    "shared_gate_up_proj": "shared-expert gate and up projection",
    "shared_down_proj": "shared-expert down projection",
    "in_proj": "recurrent input projection",
    "in_proj_groups": "recurrent group projection",
    "out_proj": "recurrent output projection",
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A matrix whose shard is no whole number of blocks: the sentence and the degrees that would do."""

    tensor: Tensor
    message: str
    hint: str


def misfits(
    tensors: tuple[Tensor, ...], degrees: Degrees, block_rows: int | None, block_columns: int | None, unit: str
) -> Iterator[Misfit]:
    """Find matrices that are cut within a block.

    A matrix narrower than one block before the cut is one that checkpoints leave unquantized. Matrices of one family and width
    share one sentence.

    Parameters
    ----------
    tensors
        Quantized matrices that ranks cut.
    degrees
        Proposed degrees.
    block_rows, block_columns
        Block along outputs and inputs; None = that axis is not blocked.
    unit
        What to call the block in the sentence.
    """
    seen: set[tuple[str, int, int]] = set()
    for tensor in tensors:
        block = block_columns if cut_inputs(tensor) else block_rows
        width, ranks = cut_width(tensor), ranks_of(tensor, degrees)
        if block is None or ranks == 1 or width < block:
            continue
        if not _misfits(width, ranks, block) or (tensor.family, width, ranks) in seen:
            continue
        seen.add((tensor.family, width, ranks))
        over = "the ranks of an expert" if tensor.split in EXPERT_SPLITS and ranks != degrees.tensor_parallel else "TP"
        shard = f"{width // ranks}" if width % ranks == 0 else f"{width / ranks:.2f}"
        side = "inputs" if cut_inputs(tensor) else "outputs"
        name = MATRICES.get(tensor.name, tensor.name)
        rest = f"{shard} is no multiple of {block}"
        if width % ranks == 0:
            rest = f"{shard} % {block} = {int(shard) % block}"
        message = f"{name}: {width} {side} / {over} {ranks} leaves {shard} a rank, and the {unit} is {block} wide ({rest})"
        most = tensor.units if tensor.split is Split.KV_ROWS else LARGEST_HINTED
        legal = degrees_that(count for count in range(1, LARGEST_HINTED + 1) if not _misfits(width, min(count, most), block))
        if tensor.split in EXPERT_SPLITS:
            legal += ", or expert parallelism over all ranks of the stage, which keeps experts whole"
        yield Misfit(tensor, message, legal)


def _misfits(width: int, ranks: int, block: int) -> bool:
    return ranks > 1 and (width % ranks != 0 or (width // ranks) % block != 0)
