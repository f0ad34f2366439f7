"""The mean step of a closed loop: passes with and without prompts, over the stages of a pipeline, with as many sequences decoding as Little's law leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.step_times import StepConstants
from planner.cost.alike import alike
from planner.cost.compute import Matrices, head_matrices
from planner.cost.prefill import chunks, most_decoding, new_prompt_tokens, output_tokens, prompt_share
from planner.cost.serving import crowd, prefill_wait_seconds
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays
from planner.cost.speculation import Drafting, drafting
from planner.cost.steps import (
    COMPUTE,
    FIXED,
    TP_COMM,
    LayerTerms,
    Passes,
    StageSort,
    head_seconds,
    layer_parts,
    layer_terms,
    pipeline,
    stage_sorts,
)
from planner.cost.traffic import Traffic, traffic

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

    `rank` and `stage` are the sequences of the largest microbatch on the busiest rank and on its stage, `passes` the microbatches. A step computes `queries` tokens of a sequence
    and yields `gained` of them, both 1 but for speculative decoding.
    """

    setting: Setting
    constants: StepConstants
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
    """Shapes of one setting, ready to be asked for their mean step at any batch: what the batch does not change is worked out once, and once for shapes alike.

    `alike` [n] numbers the shapes, with one number for those whose times are the same at every batch.
    """

    def __init__(self, setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> None:
        self._setting, self._constants = setting, constants
        # Fits ask for rows of many workloads at once: each has a context of its own.
        each = np.arange(shapes.batch.size)
        rows, where = (each, each) if self._by_row else alike(setting, shapes)
        sorts = stage_sorts(setting, shapes.at(rows))
        counts = np.sum([sort.stages > 0.0 for sort in sorts], axis=0)
        # Pipelines add up the sorts of stages one after the other, for the shapes that have as many; those with most come first.
        order = np.argsort(-counts, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        self.alike: IntArray = place[where]
        self._rows = rows[order]
        self._layouts = shapes.at(self._rows)
        self._sorts = tuple(sort.at(order) for sort in sorts)
        self._counts = counts[order]
        prepared = self._at_rows(self._rows)
        self._terms = layer_terms(prepared, self._layouts, constants)
        self._head = head_matrices(prepared, self._layouts, constants)
        self._traffic = traffic(setting, self._layouts)
        lanes = np.array([path.link.kind == "pcie" for path in setting.paths])
        # Over PCIe the lanes set the pace, inside a scale-up scope the engine's own factor on measured all-reduces of decoding tokens.
        self._decode_exchange = np.where(lanes[self._layouts.tp_level], 1.0, constants.decode_exchange)
        self._draft = drafting(prepared, self._layouts, constants, self._decode_exchange)
        speculation = setting.architecture.speculation
        self._queries = 1.0 if speculation is None else speculation.queries
        self._yielded = 1.0 if speculation is None else speculation.yielded

    @property
    def _by_row(self) -> bool:
        return bool(np.ndim(self._setting.prompt_tokens) or np.ndim(self._setting.output_tokens))

    def _at_rows(self, rows: IntArray) -> Setting:
        """The setting with the lengths of some rows where each row has its own."""
        if not self._by_row:
            return self._setting
        lengths = np.broadcast_arrays(self._setting.prompt_tokens, self._setting.output_tokens)
        return replace(self._setting, prompt_tokens=lengths[0][rows], output_tokens=lengths[1][rows])  # type: ignore[arg-type]

    def step(self, rows: IntArray, batch: IntArray) -> Step:
        """Mean step of some shapes [n], by their row and in any order and number, each at a batch of its own."""
        layouts = self.alike[rows]
        if (layouts[1:] >= layouts[:-1]).all():
            return self._step(layouts, batch)
        order = np.argsort(layouts.astype(np.uint16) if self._rows.size < 1 << 16 else layouts, kind="stable")
        found = self._step(layouts[order], batch[order])
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return Step(**{name: getattr(found, name)[..., place] for name in Step.__dataclass_fields__})

    def algorithm(self, rows: IntArray, batch: IntArray) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """Name of the all-reduce of a decode step of some shapes [n]."""
        layouts = self.alike[rows]
        rank, _ = _sequences(batch, self._layouts.pipeline_parallel[layouts], self._layouts.data_parallel[layouts])
        return self._traffic.at(layouts).algorithm(self._queries * rank)

    def _step(self, layouts: IntArray, batch: IntArray) -> Step:
        """Mean step of layouts whose numbers do not fall."""
        work = self._work(layouts, batch)
        setting = work.setting
        outputs = output_tokens(setting)
        most = np.maximum(most_decoding(setting, work.batch, work.passes, work.data_parallel) / work.gained, 1.0)
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
        setting, constants = self._at_rows(self._rows[layouts]), self._constants
        stages, ranks = self._layouts.pipeline_parallel[layouts], self._layouts.data_parallel[layouts]
        rank, stage = _sequences(batch, stages, ranks)
        sequences, passes = np.maximum(batch, 1).astype(np.float64), microbatches(batch, stages)
        gained = np.minimum(self._yielded, output_tokens(setting))
        most_sorts = int(self._counts[layouts[0]]) if layouts.size else 0
        return _Work(
            setting=setting,
            constants=constants,
            terms=tuple(one.at(layouts) for one in self._terms),
            head=self._head.at(layouts),
            sorts=tuple(sort.at(layouts) for sort in self._sorts[:most_sorts]),
            traffic=self._traffic.at(layouts),
            batch=sequences,
            expert_parallel=self._layouts.expert_parallel[layouts].astype(np.float64),
            data_parallel=ranks.astype(np.float64),
            further_stages=stages.astype(np.float64) - 1.0,
            passes=passes,
            rank=rank,
            stage=stage,
            prompts_per_step=(1.0 - 1.0 / sequences) / passes * new_prompt_tokens(setting) / (output_tokens(setting) / gained),
            decode_exchange=self._decode_exchange[layouts],
            crowd=crowd(sequences, constants.prompt_queue, constants.prompt_crowding),
            queries=self._queries,
            gained=gained,
            draft=None if self._draft is None else self._draft.at(layouts),
        )


def step_times(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> Step:
    """Mean step of every shape with given constants, the number of decoding sequences found by Little's law.

    `setting.prompt_tokens` and `setting.output_tokens` may be arrays [n] here: fits evaluate rows of many workloads at once.
    """
    return ClosedLoop(setting, shapes, constants).step(np.arange(shapes.batch.size), shapes.batch)


def microbatches(batch: IntArray, stages: IntArray) -> FloatArray:
    """Microbatches in flight, m = min(p, B)."""
    return np.minimum(stages, np.maximum(batch, 1)).astype(np.float64)


def _sequences(batch: IntArray, stages: IntArray, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sequences of the largest microbatch on the busiest rank, and on its whole stage."""
    stage = np.ceil(np.maximum(batch, 1) / microbatches(batch, stages))
    return np.ceil(stage / ranks), stage


def _step(work: _Work, decoding: FloatArray) -> Step:
    setting, constants, sent = work.setting, work.constants, work.traffic
    # A step that a sequence takes part in holds that sequence, and of the others those that decode on average.
    active = (1.0 + (work.batch - 1.0) * decoding / work.batch) / work.batch
    rank, stage = work.rank * active, work.stage * active
    share = prompt_share(setting, work.prompts_per_step * decoding, work.data_parallel, work.passes, work.crowd)
    tokens, stage_tokens = work.queries * rank, work.queries * stage
    logits = head_seconds(work.head, tokens, work.expert_parallel)
    tokens, stage_tokens = np.stack((tokens, tokens + share.rank_tokens)), np.stack((stage_tokens, stage_tokens + share.stage_tokens))
    reduce = sent.reduce(tokens)
    decoded, full = reduce[0].copy(), np.maximum(reduce[1], reduce[0])
    reduce[0] = work.decode_exchange * decoded
    reduce[1] = reduce[0] + constants.prefill_exchange * (full - decoded)
    exchanged = sent.exchanges or (work.draft is not None and work.draft.sent.exchanges)
    both = Passes(rank, share.rank_tokens, tokens, stage_tokens, reduce, sent.exchange(stage_tokens) if exchanged else None)
    layers = [layer_parts(one, both, work.expert_parallel, constants) for one in work.terms]
    for parts in layers:
        parts[0] += share.share * (parts[1] - parts[0])
    if work.draft is not None:
        logits = _with_proposals(logits, work.draft.parts(rank, stage, share, exchanged=exchanged), share.share)
    # Every stage prepares every sequence of its passes anew: that does not shrink with the layers on it.
    each = constants.step + setting.architecture.layers * constants.sequence * rank
    over = pipeline(layers, logits, work.sorts, work.passes, each)
    further = chunks(setting) - 1.0  # later chunks follow one stage behind the other
    prompt_parts = over.through * (1.0 + further * over.slowest / over.through.sum(axis=0))
    prompt_seconds = prompt_parts.sum(axis=0)
    prompt_parts[-1] += constants.first_token
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
