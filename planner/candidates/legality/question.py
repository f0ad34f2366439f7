"""What a legality rule is asked, and the words all rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from planner.catalog.architecture import Attention, FeedForward, ModelArchitecture, Quantization, RecurrentState
from planner.catalog.engines import Engine, EngineRule
from planner.catalog.gpus import Gpu
from planner.cost.setting import Precision
from planner.cost.tensor import EXPERT_SPLITS, Split, Tensor
from planner.cost.tensors import layer_tensors
from planner.diagnostics import Diagnostic, Severity
from planner.plan.shape import Degrees

LARGEST_HINTED: Final = 64  # hints list legal degrees up to this one


@dataclass(frozen=True)
class Question:
    """A model in a precision under one engine version on one kind of GPU; rules ask it for what they need."""

    architecture: ModelArchitecture
    precision: Precision
    engine: Engine
    gpu: Gpu

    def attentions(self) -> tuple[Attention, ...]:
        """Distinct attentions of the model, in order of first appearance."""
        return tuple(dict.fromkeys(kind.attention for kind, _ in self.architecture.kind_counts() if kind.attention is not None))

    def recurrents(self) -> tuple[RecurrentState, ...]:
        """Distinct recurrent mixers."""
        return tuple(dict.fromkeys(kind.recurrent for kind, _ in self.architecture.kind_counts() if kind.recurrent is not None))

    def expert_parts(self) -> tuple[FeedForward, ...]:
        """Distinct feed-forward parts with routed experts."""
        parts = (kind.feed_forward for kind, _ in self.architecture.kind_counts())
        return tuple(dict.fromkeys(part for part in parts if part is not None and part.experts))

    def schemes(self) -> tuple[tuple[Quantization, tuple[Tensor, ...]], ...]:
        """Every scheme of the checkpoint with the matrices of the layers that it stores and that ranks cut, each shape once.

        A mixer known by its number of weights alone (`mixer`) is no matrix, so no width of it can be judged.
        """
        main = self.precision.quantization
        if main is None:
            return ()
        kept = {*main.kept_high, "norm"}
        found: dict[Quantization, dict[tuple[str, int, int], Tensor]] = {}
        for kind, _ in self.architecture.kind_counts():
            for tensor in layer_tensors(kind, self.architecture.hidden_size):
                if tensor.kept_high or tensor.dtype is not None or tensor.family in kept or tensor.name in kept or tensor.name == "mixer":
                    continue
                if tensor.split is Split.REPLICATED or tensor.columns == 1:
                    continue
                found.setdefault(main.of(tensor.family), {}).setdefault((tensor.name, tensor.rows, tensor.columns), tensor)
        return tuple((scheme, tuple(tensors.values())) for scheme, tensors in found.items())


Rule = Callable[[Question, Degrees], Iterator[Diagnostic]]


def ranks_of(tensor: Tensor, degrees: Degrees) -> int:
    """Number of ranks that cut one matrix of `tensor`: t, or the ranks that share an expert."""
    if tensor.split in EXPERT_SPLITS:
        return max(degrees.stage_gpus // degrees.expert_parallel, 1)
    if tensor.split is Split.KV_ROWS:
        return min(degrees.tensor_parallel, tensor.units)
    return degrees.tensor_parallel


def cut_inputs(tensor: Tensor) -> bool:
    """Tell whether the inputs are cut (row-parallel layers in the engines' words), as opposed to the outputs."""
    return tensor.split in (Split.COLUMNS, Split.EXPERT_COLUMNS)


def cut_width(tensor: Tensor) -> int:
    """Width of the axis that ranks cut, before the cut."""
    return tensor.columns if cut_inputs(tensor) else tensor.rows


def finding(rule: EngineRule | None, code: str, message: str, hint: str) -> Iterator[Diagnostic]:
    """Give the diagnostic of a broken rule with the engine's effect and source; nothing where the engine has no such rule."""
    if rule is None or rule.effect == "none":
        return
    severity = Severity.ERROR if rule.effect == "error" else Severity.WARNING
    yield Diagnostic(code, message, f"{hint} (rule: {rule.source})", severity)


def degrees_that(allowed: Iterable[int]) -> str:
    """Say which tensor-parallel degrees are legal."""
    listed = [f"TP{degree}" for degree in allowed]
    return f"legal: {', '.join(listed)}" if listed else "no tensor-parallel degree is legal"


def divisors(number: int, limit: int = LARGEST_HINTED) -> list[int]:
    """Divisors of `number` up to `limit`."""
    return [degree for degree in range(1, min(number, limit) + 1) if number % degree == 0]
