"""Layers per stage of every shape: the one split that memory, times and plans take.

Each distinct choice of degrees is balanced by itself: first by weights, then with the KV cache of the sequences that fit so far, so that the tightest stage holds
as many sequences as it can. Splits are remembered, since times are asked for at many batches of the same degrees; `remember_splits` finds those of many settings at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

import numpy as np

from planner.catalog.engines import engine
from planner.cost.distinct import distinct_rows
from planner.cost.layer_split import balanced_rows
from planner.cost.memory_companions import draft_sequence_bytes
from planner.cost.memory_kv import kind_sequence_bytes
from planner.cost.memory_other import counted, other_terms
from planner.cost.memory_weights import RankWeights, rank_weights
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays
from planner.diagnostics import PlannerError

Split = tuple[int, ...]
Key = tuple[int, ...]  # degrees (tp, pp, ep, dp)

REFITS: Final = 2  # rounds of filling the stages and balancing again with the KV that fits
MOST_REMEMBERED: Final = 100_000
BLOCK: Final = 2048  # rows balanced at once: more of them leave the processor's cache
UNKNOWN_ENGINES_SPLIT_AS: Final = "vllm"
_REMEMBERED: dict[Hashable, dict[tuple[int, ...], Split]] = {}


def rank_weights_of(setting: Setting, shapes: ShapeArrays) -> RankWeights:
    """Weights of the fullest rank of every shape."""
    degrees = shapes.tensor_parallel, shapes.pipeline_parallel, shapes.expert_parallel, shapes.data_parallel
    return rank_weights(setting.architecture, setting.precision, setting.engine_facts, *degrees)


def pipeline_splits(setting: Setting, shapes: ShapeArrays) -> tuple[Split, ...]:
    """Layers per stage of every shape, no stage without a layer.

    Raises
    ------
    ValueError
        If there are more stages than layers.
    """
    found, where = distinct_splits(setting, shapes)
    return tuple(map(found.__getitem__, where.tolist()))


def distinct_splits(setting: Setting, shapes: ShapeArrays) -> tuple[tuple[Split, ...], IntArray]:
    """Splits of all different degrees among the shapes, and which of them each shape has [n].

    Raises
    ------
    ValueError
        If there are more stages than layers.
    """
    layers = setting.architecture.layers
    if shapes.pipeline_parallel.max(initial=1) == 1:
        return ((layers,),), np.zeros(shapes.pipeline_parallel.size, dtype=np.int64)
    keys, where = _keys(shapes)
    known = _known([(setting, keys)])[_question(setting)]
    return tuple(known[key] if key[1] > 1 else (layers,) for key in keys), where


def remember_splits(questions: Iterable[tuple[Setting, ShapeArrays]]) -> None:
    """Balance what was not balanced before of many settings at once, a tenth of the work of one after the other.

    Raises
    ------
    ValueError
        If there are more stages than layers.
    """
    _known([(setting, _keys(shapes)[0]) for setting, shapes in questions])


def _keys(shapes: ShapeArrays) -> tuple[list[Key], IntArray]:
    """Different degrees of shapes, and which of them each shape has [n]."""
    columns = shapes.tensor_parallel, shapes.pipeline_parallel, shapes.expert_parallel, shapes.data_parallel
    rows, where = distinct_rows(*columns)
    return [tuple(row) for row in np.stack([column[rows] for column in columns], axis=1).tolist()], where


def _known(asked: Sequence[tuple[Setting, list[Key]]]) -> Mapping[Hashable, Mapping[Key, Split]]:
    """Splits of at least the degrees of more than one stage that are asked about, by question."""
    missing: dict[Hashable, tuple[Setting, dict[Key, None]]] = {}
    for setting, keys in asked:
        question = _question(setting)
        known = _REMEMBERED.setdefault(question, {})
        if new := [key for key in keys if key[1] > 1 and key not in known]:
            missing.setdefault(question, (setting, {}))[1].update(dict.fromkeys(new))
    if not missing:
        return _REMEMBERED
    remembered = sum(map(len, _REMEMBERED.values()))
    if remembered and remembered + sum(len(keys) for _, keys in missing.values()) > MOST_REMEMBERED:
        _REMEMBERED.clear()
        return _known(asked)
    splits = _balanced([_loads(setting, list(keys)) for setting, keys in missing.values()])
    for (question, (_, new_keys)), found in zip(missing.items(), splits, strict=True):
        _REMEMBERED[question].update(zip(new_keys, found, strict=True))
    return _REMEMBERED


def _answered(setting: Setting) -> Setting:
    """The setting itself, or that of the best-known engine where the catalog lacks the one asked for: times have constants for those too."""
    try:
        engine(setting.engine)
    except PlannerError:
        return replace(setting, engine=UNKNOWN_ENGINES_SPLIT_AS)
    return setting


def _context(setting: Setting) -> float:
    """Tokens of a whole sequence; the longest where a fit asks for rows of many workloads at once."""
    return float(np.max(np.asarray(setting.prompt_tokens) + np.asarray(setting.output_tokens)))


def _question(setting: Setting) -> Hashable:
    """Everything that a split depends on besides the degrees."""
    return (
        setting.architecture,
        setting.precision,
        setting.engine,
        setting.gpu.name,
        setting.gpu.memory.value,
        _context(setting),
        setting.max_batched_tokens,
        setting.gpu_memory_utilization,
        setting.max_num_seqs,
    )


@dataclass(frozen=True)
class _Loads:
    """What layers, ends and stages of n pipelines weigh [B], all of models with as many layers.

    `held` and `kept` [n, layers] are the weights of every layer and what a sequence keeps there, `first` and `end` [n] what the first and the last stage hold
    besides, `room` [n] what each stage has.
    """

    stages: IntArray
    held: FloatArray
    kept: FloatArray
    first: FloatArray
    end: FloatArray
    room: FloatArray

    def at(self, rows: IntArray) -> _Loads:
        """The same for some of the pipelines."""
        return _Loads(**{name: getattr(self, name)[rows] for name in _Loads.__dataclass_fields__})


def _loads(setting: Setting, keys: list[Key]) -> _Loads:
    """What is to be balanced at each choice of degrees."""
    tensor, pipeline, expert, data = np.array(keys, dtype=np.int64).T
    zeros, ones = np.zeros_like(tensor), np.ones_like(tensor)
    shapes = ShapeArrays(tensor, pipeline, expert, data, data, zeros, zeros, ones, zeros)
    setting = _answered(setting)
    facts, weights = setting.engine_facts, rank_weights_of(setting, shapes)
    kv = kind_sequence_bytes(setting.architecture, setting.precision, facts, tensor, _context(setting))
    drafted = draft_sequence_bytes(setting.architecture.draft, setting.precision, facts, tensor, _context(setting))
    expected = other_terms(setting, facts, shapes)[1]
    capacity = setting.gpu.memory.value
    budget = setting.gpu_memory_utilization * capacity
    middle, last = counted(facts, expected, capacity - budget, last=False), counted(facts, expected, capacity - budget, last=True)
    sequence = np.array(setting.architecture.layer_sequence)
    held, kept = weights.layers[:, sequence], kv[:, sequence]
    kept[:, -1] += drafted
    return _Loads(pipeline, held, kept, weights.embedding, weights.end + last - middle, budget - (middle + weights.everywhere))


def _balanced(asked: Sequence[_Loads]) -> list[list[Split]]:
    """Balance many questions, those of as many layers together; pipelines of as many stages stand side by side."""
    found: list[list[Split]] = [[] for _ in asked]
    together: dict[int, list[int]] = {}
    for number, loads in enumerate(asked):
        together.setdefault(loads.held.shape[1], []).append(number)
    for numbers in together.values():
        parts = [asked[number] for number in numbers]
        joined = _Loads(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in _Loads.__dataclass_fields__})
        order = np.argsort(-joined.stages, kind="stable")
        splits: list[Split] = [()] * order.size
        for start in range(0, order.size, BLOCK):
            rows = order[start : start + BLOCK]
            for row, split in zip(rows.tolist(), _refitted(joined.at(rows)), strict=True):
                splits[row] = split
        remaining = iter(splits)
        for number, part in zip(numbers, parts, strict=True):
            found[number] = list(islice(remaining, part.stages.size))
    return found


def _refitted(loads: _Loads) -> list[Split]:
    """Maximise the sequences that the tightest stage of each row holds: balance, fill, balance at that filling (Dinkelbach's iteration)."""
    held, kept, first, end, room, stages = loads.held, loads.kept, loads.first, loads.end, loads.room, loads.stages.tolist()
    found = balanced_rows(held, stages, first, end)
    rows = np.arange(len(found))
    for _ in range(REFITS):
        filled = _filled(held[rows], kept[rows], [found[row] for row in rows], first[rows], end[rows], room[rows])
        rows, filled = rows[filled > 0.0], filled[filled > 0.0]
        if not rows.size:
            break
        refitted = balanced_rows(held[rows] + filled[:, None] * kept[rows], [stages[row] for row in rows], first[rows], end[rows])
        changed = np.array([split != found[row] for row, split in zip(rows, refitted, strict=True)])
        for row, split in zip(rows, refitted, strict=True):
            found[row] = split
        if not changed.any():
            break
        rows = rows[changed]
    return found


def _filled(held: FloatArray, kept: FloatArray, splits: list[Split], first: FloatArray, end: FloatArray, room: FloatArray) -> FloatArray:
    """Sequences that the tightest stage of each row's split holds, negative where the weights alone do not fit [n]."""
    counts = np.array([len(split) for split in splits])
    starts = np.cumsum([0, *chain.from_iterable(splits)])[:-1]
    ends = np.cumsum(counts)
    load, growth = np.add.reduceat(held.ravel(), starts), np.add.reduceat(kept.ravel(), starts)
    load[ends - counts] += first
    load[ends - 1] += end
    return np.asarray(np.minimum.reduceat((np.repeat(room, counts) - load) / np.maximum(growth, 1e-9), ends - counts), dtype=np.float64)
