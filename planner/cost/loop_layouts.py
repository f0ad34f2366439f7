"""Layouts of a closed loop with everything that no batch changes, of one setting or of several that are asked together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.step_times import StepConstants
from planner.cost.adapters import AdapterTerms
from planner.cost.compute import Matrices, head_matrices
from planner.cost.prefill import Requests
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays, joined_shapes
from planner.cost.speculation import Drafting, drafting
from planner.cost.steps import LayerTerms, StageSort, layer_terms, stage_sorts
from planner.cost.traffic import NOTHING, Curves, Hops, Traffic, traffic


@dataclass(frozen=True)
class LoopLayouts:
    """Layouts as columns of equal length k, those with most sorts of stages first, since pipelines add up the sorts one after the other.

    `counts` [k] are the sorts of stages of each layout. `decode_exchange` [k] multiplies all-reduces of decoding tokens. What may differ between settings is one value or
    one a layout: `requests`, `prefill_exchange` of `constants`, `step` and `first_token` [s], and `sequence` [s], what every sequence adds to a pass in all layers.
    """

    architecture: ModelArchitecture
    constants: StepConstants
    layouts: ShapeArrays
    counts: IntArray
    sorts: tuple[StageSort, ...]
    terms: tuple[LayerTerms, ...]
    head: Matrices
    traffic: Traffic
    decode_exchange: FloatArray
    requests: Requests
    prefill_exchange: FloatArray | float
    step: FloatArray | float
    sequence: FloatArray | float
    first_token: FloatArray | float
    draft: Drafting | None

    @property
    def size(self) -> int:
        """Number of layouts k."""
        return self.counts.size

    @property
    def sort(self) -> Hashable:
        """What layouts must have in common to be joined: the model, and constants that are the same for all of a loop; None where they are never joined."""
        constants = self.constants
        if self.draft is not None:
            return None
        return self.architecture, constants.evenness, constants.expert_tile, constants.prompt_queue, constants.prompt_crowding


def loop_layouts(setting: Setting, shapes: ShapeArrays, constants: StepConstants, requests: Requests) -> tuple[LoopLayouts, IntArray]:
    """Prepare the layouts of shapes, and tell where each shape stands among them [n]; `setting` and `requests` have lengths for all shapes or one a shape."""
    sorts = stage_sorts(setting, shapes)
    counts = np.sum([sort.stages > 0.0 for sort in sorts], axis=0)
    order, place = _ranked(counts)
    shapes = shapes.at(order)
    if np.ndim(setting.prompt_tokens) or np.ndim(setting.output_tokens):
        lengths = np.broadcast_arrays(setting.prompt_tokens, setting.output_tokens)
        setting = replace(setting, prompt_tokens=lengths[0][order], output_tokens=lengths[1][order])  # type: ignore[arg-type]
    lanes = np.array([path.link.kind == "pcie" for path in setting.paths])
    # Over PCIe the lanes set the pace, inside a scale-up scope the engine's own factor on measured all-reduces of decoding tokens.
    decode_exchange = np.where(lanes[shapes.tp_level], 1.0, constants.decode_exchange)
    found = LoopLayouts(
        architecture=setting.architecture,
        constants=constants,
        layouts=shapes,
        counts=counts[order],
        sorts=tuple(sort.at(order) for sort in sorts),
        terms=layer_terms(setting, shapes, constants),
        head=head_matrices(setting, shapes, constants),
        traffic=traffic(setting, shapes),
        decode_exchange=decode_exchange,
        requests=requests.at(order),
        prefill_exchange=constants.prefill_exchange,
        step=constants.step,
        sequence=setting.architecture.layers * constants.sequence,
        first_token=constants.first_token,
        draft=drafting(setting, shapes, constants, decode_exchange),
    )
    return found, place


def _ranked(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Order of layouts by falling number of sorts of stages, and where each of them stands in it."""
    order = np.argsort(-counts, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return order, place


def joined_layouts(parts: Sequence[LoopLayouts]) -> tuple[LoopLayouts, IntArray]:
    """Layouts of several settings of one `sort` as one, and where each of them stands there, those of the first part before those of the second [k]."""
    sizes = [part.size for part in parts]
    counts = np.concatenate([part.counts for part in parts])
    order, place = _ranked(counts)
    one = parts[0]
    most = max(len(part.sorts) for part in parts)
    sorts = [_sort(parts, rank) for rank in range(most)]
    found = replace(
        one,
        layouts=joined_shapes([part.layouts for part in parts]).at(order),
        counts=counts[order],
        sorts=tuple(sort.at(order) for sort in sorts),
        terms=tuple(_terms([part.terms[kind] for part in parts], sizes).at(order) for kind in range(len(one.terms))),
        head=_matrices([part.head for part in parts], sizes).at(order),
        traffic=_traffic([part.traffic for part in parts], sizes).at(order),
        decode_exchange=np.concatenate([part.decode_exchange for part in parts])[order],
        requests=Requests(**_joined(_names(one.requests), [part.requests for part in parts], sizes)).at(order),
        prefill_exchange=_values([part.prefill_exchange for part in parts], sizes)[order],
        step=_values([part.step for part in parts], sizes)[order],
        sequence=_values([part.sequence for part in parts], sizes)[order],
        first_token=_values([part.first_token for part in parts], sizes)[order],
    )
    return found, place


def _names(columns: object) -> list[str]:
    return [field.name for field in fields(columns)]  # type: ignore[arg-type]


def _values(parts: Sequence[FloatArray | float], sizes: Sequence[int]) -> FloatArray:
    """One value a row, from parts that have one value or one a row."""
    return np.concatenate([np.broadcast_to(part, size) for part, size in zip(parts, sizes, strict=True)])


def _joined(names: Sequence[str], parts: Sequence[object], sizes: Sequence[int]) -> dict[str, Any]:
    """Columns of these names, one value a row."""
    return {name: _values([getattr(part, name) for part in parts], sizes) for name in names}


def _sort(parts: Sequence[LoopLayouts], rank: int) -> StageSort:
    """Sort number `rank` of the stages of all layouts, empty where a part has fewer."""
    found = []
    for part in parts:
        nothing = np.zeros(part.size)
        found.append(part.sorts[rank] if rank < len(part.sorts) else StageSort((nothing,) * len(part.terms), nothing, nothing))
    return StageSort(
        layers=tuple(np.concatenate(columns) for columns in zip(*(sort.layers for sort in found), strict=True)),
        head=np.concatenate([sort.head for sort in found]),
        stages=np.concatenate([sort.stages for sort in found]),
    )


def _terms(parts: Sequence[LayerTerms], sizes: Sequence[int]) -> LayerTerms:
    columns = _joined(("attend", "prompt_attend", "reductions", "exchanges", "layer", "prompt_layer"), parts, sizes)
    adapters = [part.adapters for part in parts if part.adapters is not None]
    return replace(
        parts[0],
        matrices=_matrices([part.matrices for part in parts], sizes),
        adapters=_adapters(adapters) if adapters else None,
        **columns,
    )


def _adapters(parts: Sequence[AdapterTerms]) -> AdapterTerms:
    return replace(parts[0], read=np.concatenate([part.read for part in parts]), multiply=np.concatenate([part.multiply for part in parts]))


def _matrices(parts: Sequence[Matrices], sizes: Sequence[int]) -> Matrices:
    columns = _joined(("read", "multiply", "expert_read", "expert_multiply", "expert_largest", "expert_move"), parts, sizes)
    # Without tiles for experts that are not used, 0 tokens are multiplied besides.
    filled = [0.0 if part.filled is None else part.filled for part in parts]
    return replace(
        parts[0],
        filled=None if all(part.filled is None for part in parts) else _values(filled, sizes),
        **columns,
    )


def _traffic(parts: Sequence[Traffic], sizes: Sequence[int]) -> Traffic:
    curves: dict[str, Any] = {
        name: _curves([getattr(part, name) for part in parts], sizes) for name in ("reductions", "dispatches", "gathers", "scatters")
    }
    hops = [
        part.hops if part.hops is not None else Hops(np.zeros(size), np.full(size, np.inf), np.zeros(size))
        for part, size in zip(parts, sizes, strict=True)
    ]
    return replace(
        parts[0],
        data_parallel=np.concatenate([part.data_parallel for part in parts]),
        hops=None
        if all(part.hops is None for part in parts)
        else Hops(*(np.concatenate([getattr(part, name) for part in hops]) for name in _names(hops[0]))),
        **curves,
    )


def _curves(parts: Sequence[Curves | None], sizes: Sequence[int]) -> Curves | None:
    """Curves of all groups, nothing where a part has none of this sort; None where no part has."""
    if all(part is None for part in parts):
        return None
    found = [NOTHING]
    where = []
    for part, size in zip(parts, sizes, strict=True):
        where.append(np.zeros(size, dtype=np.int64) if part is None else part.where + len(found))
        found += () if part is None else part.found
    return Curves.of(found, np.concatenate(where))
