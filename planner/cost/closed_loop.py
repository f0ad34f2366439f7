"""The mean step of a closed loop: passes with and without prompts, over the stages of a pipeline, with as many sequences decoding as Little's law leaves."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.step_times import StepConstants
from planner.cost.alike import alike
from planner.cost.compute import Matrices
from planner.cost.loop_layouts import LoopLayouts, joined_layouts, loop_layouts
from planner.cost.prefill import Requests, most_decoding, prompt_share
from planner.cost.serving import crowd, prefill_wait_seconds
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays, per_row
from planner.cost.speculation import Drafting
from planner.cost.steps import (
    COMPUTE,
    FIXED,
    TP_COMM,
    LayerTerms,
    Passes,
    StageSort,
    head_seconds,
    layer_parts,
    pipeline,
)
from planner.cost.traffic import Traffic

# Rounds of Little's law after the first guess that all sequences decode; the third changes nothing above 0.1 % in practice.
ROUNDS = 3


@dataclass(frozen=True)
class Step:
    """Mean step and first token of n shapes [s]; `parts` are compute, tp_comm, ep_comm and fixed, shape [4, n].

    `hops` is the time between pipeline stages in a step, `prompt_parts` the parts of taking up one prompt, `prompt_hops` its hops, `wait` the wait for the
    prefill, `decoding` the sequences that decode on average.
    """

    parts: FloatArray
    hops: FloatArray
    prompt_parts: FloatArray
    prompt_hops: FloatArray
    wait: FloatArray
    decoding: FloatArray

    @property
    def tpot(self) -> FloatArray:
        """Mean time per output token [s]."""
        return np.asarray(self.parts.sum(axis=0) + self.hops, dtype=np.float64)

    @property
    def first_token(self) -> FloatArray:
        """Time to the first token, the wait for a slot apart [s]."""
        return np.asarray(self.wait + self.prompt_parts.sum(axis=0) + self.prompt_hops, dtype=np.float64)


@dataclass(frozen=True)
class _Work:
    """What does not change with the number of decoding sequences: terms of layers and head, stages, traffic, and the shapes as floats [n].

    `rank` and `stage` are the sequences of the largest microbatch on the busiest rank and on its stage, `passes` the microbatches. `each` [s] is spent once in every pass of every
    stage and `sequence` [s] for every sequence of it, `first_token` [s] once a request. A step computes `queries` tokens of a sequence and yields `gained` of them, both 1 but for
    speculative decoding.
    """

    constants: StepConstants
    requests: Requests
    prefill_exchange: FloatArray | float
    each: FloatArray | float
    sequence: FloatArray | float
    first_token: FloatArray | float
    terms: tuple[LayerTerms, ...]
    head: Matrices
    sorts: tuple[StageSort, ...]
    traffic: Traffic
    batch: FloatArray
    expert_parallel: FloatArray
    data_parallel: FloatArray
    further_stages: FloatArray
    passes: FloatArray
    rank: FloatArray
    stage: FloatArray
    prompts_per_step: FloatArray
    decode_exchange: FloatArray
    crowd: FloatArray
    queries: float
    gained: FloatArray
    draft: Drafting | None


class ClosedLoop:
    """Shapes ready to be asked for their mean step at any batch: what the batch does not change is worked out once, and once for shapes alike.

    `alike` [n] numbers the shapes, with one number for those whose times are the same at every batch; it is the row of their layout in `columns`.
    """

    def __init__(self, columns: LoopLayouts, alike: IntArray) -> None:
        self.columns = columns
        self._layouts = columns.layouts
        self.alike = alike
        speculation = columns.architecture.speculation
        self._queries = 1.0 if speculation is None else speculation.queries
        self._yielded = 1.0 if speculation is None else speculation.yielded

    @classmethod
    def of(cls, setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> ClosedLoop:
        """Prepare shapes of one setting."""
        requests = Requests.of(setting)
        # Fits ask for rows of many workloads at once: each has a context of its own.
        if np.ndim(setting.prompt_tokens) or np.ndim(setting.output_tokens):
            return cls(*loop_layouts(setting, shapes, constants, requests))
        rows, where = alike(setting, shapes)
        columns, place = loop_layouts(setting, shapes.at(rows), constants, requests)
        return cls(columns, place[where])

    @classmethod
    def joined(cls, loops: Sequence[ClosedLoop]) -> ClosedLoop:
        """One loop for the shapes of several of one `sort`, those of the first before those of the second: each is asked what it would answer alone."""
        columns, place = joined_layouts([loop.columns for loop in loops])
        first = np.cumsum([0, *(loop.columns.size for loop in loops)]).tolist()
        return cls(columns, np.concatenate([place[loop.alike + start] for loop, start in zip(loops, first, strict=False)]))

    @property
    def sort(self) -> Hashable:
        """What loops must have in common to be joined; None where they are never joined."""
        return self.columns.sort

    def step(self, rows: IntArray, batch: IntArray) -> Step:
        """Mean step of some shapes [n], by their row and in any order and number, each at a batch of its own."""
        layouts = self.alike[rows]
        if (layouts[1:] >= layouts[:-1]).all():
            return self._step(layouts, batch)
        order = np.argsort(layouts.astype(np.uint16) if self.columns.size < 1 << 16 else layouts, kind="stable")
        found = self._step(layouts[order], batch[order])
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return Step(**{name: getattr(found, name)[..., place] for name in Step.__dataclass_fields__})

    def algorithm(self, rows: IntArray, batch: IntArray) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """Name of the all-reduce of a decode step of some shapes [n]."""
        layouts = self.alike[rows]
        rank, _ = _sequences(batch, self._layouts.pipeline_parallel[layouts], self._layouts.data_parallel[layouts])
        return self.columns.traffic.at(layouts).algorithm(self._queries * rank)

    def _step(self, layouts: IntArray, batch: IntArray) -> Step:
        """Mean step of layouts whose numbers do not fall."""
        work = self._work(layouts, batch)
        outputs = work.requests.outputs
        most = np.maximum(most_decoding(work.requests, work.batch, work.passes, work.data_parallel) / work.gained, 1.0)
        most = np.minimum(most, work.batch)
        decoding = most
        step = _step(work, decoding)
        for _ in range(ROUNDS):
            served = outputs * step.tpot
            decoding = np.minimum(work.batch * served / (served + step.first_token), most)
            step = _step(work, decoding)
        # Where prompts do not fit into the steps, those that wait for one make up the rest of the batch.
        starved = np.maximum(work.batch / np.maximum(step.decoding, 1e-12) - 1.0, 0.0) * outputs * step.tpot - step.first_token
        waiting = np.where(most < work.batch, np.maximum(starved, 0.0), 0.0)
        return replace(step, wait=step.wait + waiting)

    def _work(self, layouts: IntArray, batch: IntArray) -> _Work:
        columns = self.columns
        constants, requests = columns.constants, columns.requests.at(layouts)
        stages, ranks = self._layouts.pipeline_parallel[layouts], self._layouts.data_parallel[layouts]
        rank, stage = _sequences(batch, stages, ranks)
        sequences, passes = np.maximum(batch, 1).astype(np.float64), microbatches(batch, stages)
        gained = np.minimum(self._yielded, requests.outputs)
        most_sorts = int(columns.counts[layouts[0]]) if layouts.size else 0
        return _Work(
            constants=constants,
            requests=requests,
            prefill_exchange=per_row(columns.prefill_exchange, layouts),
            each=per_row(columns.step, layouts),
            sequence=per_row(columns.sequence, layouts),
            first_token=per_row(columns.first_token, layouts),
            terms=tuple(one.at(layouts) for one in columns.terms),
            head=columns.head.at(layouts),
            sorts=tuple(sort.at(layouts) for sort in columns.sorts[:most_sorts]),
            traffic=columns.traffic.at(layouts),
            batch=sequences,
            expert_parallel=self._layouts.expert_parallel[layouts].astype(np.float64),
            data_parallel=ranks.astype(np.float64),
            further_stages=stages.astype(np.float64) - 1.0,
            passes=passes,
            rank=rank,
            stage=stage,
            prompts_per_step=(1.0 - 1.0 / sequences) / passes * requests.new_prompt / (requests.outputs / gained),
            decode_exchange=columns.decode_exchange[layouts],
            crowd=crowd(sequences, constants.prompt_queue, constants.prompt_crowding),
            queries=self._queries,
            gained=gained,
            draft=None if columns.draft is None else columns.draft.at(layouts),
        )


def step_times(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> Step:
    """Mean step of every shape with given constants, the number of decoding sequences found by Little's law.

    `setting.prompt_tokens` and `setting.output_tokens` may be arrays [n] here: fits evaluate rows of many workloads at once.
    """
    return ClosedLoop.of(setting, shapes, constants).step(np.arange(shapes.batch.size), shapes.batch)


def microbatches(batch: IntArray, stages: IntArray) -> FloatArray:
    """Microbatches in flight, m = min(p, B)."""
    return np.minimum(stages, np.maximum(batch, 1)).astype(np.float64)


def _sequences(batch: IntArray, stages: IntArray, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sequences of the largest microbatch on the busiest rank, and on its whole stage."""
    stage = np.ceil(np.maximum(batch, 1) / microbatches(batch, stages))
    return np.ceil(stage / ranks), stage


def _step(work: _Work, decoding: FloatArray) -> Step:
    constants, sent = work.constants, work.traffic
    # A step that a sequence takes part in holds that sequence, and of the others those that decode on average.
    active = (1.0 + (work.batch - 1.0) * decoding / work.batch) / work.batch
    rank, stage = work.rank * active, work.stage * active
    share = prompt_share(work.requests, work.prompts_per_step * decoding, work.data_parallel, work.passes, work.crowd)
    tokens, stage_tokens = work.queries * rank, work.queries * stage
    logits = head_seconds(work.head, tokens, work.expert_parallel)
    tokens, stage_tokens = np.stack((tokens, tokens + share.rank_tokens)), np.stack((stage_tokens, stage_tokens + share.stage_tokens))
    reduce = sent.reduce(tokens)
    decoded, full = reduce[0].copy(), np.maximum(reduce[1], reduce[0])
    reduce[0] = work.decode_exchange * decoded
    reduce[1] = reduce[0] + work.prefill_exchange * (full - decoded)
    exchanged = sent.exchanges or (work.draft is not None and work.draft.sent.exchanges)
    both = Passes(rank, share.rank_tokens, tokens, stage_tokens, reduce, sent.exchange(stage_tokens) if exchanged else None)
    layers = [layer_parts(one, both, work.expert_parallel, constants) for one in work.terms]
    for parts in layers:
        parts[0] += share.share * (parts[1] - parts[0])
    if work.draft is not None:
        logits = _with_proposals(logits, work.draft.parts(rank, stage, share, exchanged=exchanged), share.share)
    # Every stage prepares every sequence of its passes anew: that does not shrink with the layers on it.
    each = work.each + work.sequence * rank
    over = pipeline(layers, logits, work.sorts, work.passes, each)
    further = work.requests.chunks - 1.0  # later chunks follow one stage behind the other
    prompt_parts = over.through * (1.0 + further * over.slowest / over.through.sum(axis=0))
    prompt_seconds = prompt_parts.sum(axis=0)
    prompt_parts[-1] += work.first_token
    hops = work.further_stages * sent.hop(np.stack((tokens[0] + share.share * share.rank_tokens, tokens[1])))
    return Step(
        parts=_all_parts(over.parts / work.gained),
        hops=hops[0] / work.gained,
        prompt_parts=_all_parts(prompt_parts),
        prompt_hops=hops[1],
        wait=prefill_wait_seconds(work.batch, over.parts.sum(axis=0), prompt_seconds, work.crowd),
        decoding=decoding,
    )


def _with_proposals(logits: FloatArray, proposals: FloatArray, share: FloatArray) -> FloatArray:
    """Parts of the head and the proposals of a draft, in the mean pass and in one with a chunk of a prompt, shape [2, parts, n]."""
    last = np.zeros_like(proposals)
    last[:, COMPUTE] = logits
    last += proposals
    last[0] += share * (proposals[1] - proposals[0])
    return last


def _all_parts(parts: FloatArray) -> FloatArray:
    """Parts [4, n] where those of `layer_parts` may lack what nothing is exchanged for."""
    if len(parts) > FIXED:
        return parts
    whole = np.zeros((FIXED + 1, parts.shape[1]))
    whole[[COMPUTE, TP_COMM, FIXED]] = parts
    return whole
