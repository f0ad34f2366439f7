"""The mean step of a closed loop: passes with and without prompts, over the stages of a pipeline, with as many sequences decoding as Little's law leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.step_times import StepConstants
from planner.cost.compute import Matrices, head_matrices
from planner.cost.prefill import chunks, most_decoding, new_prompt_tokens, output_tokens, prompt_share
from planner.cost.serving import crowd, prefill_wait_seconds
from planner.cost.setting import FloatArray, Setting, ShapeArrays
from planner.cost.speculation import Drafting, drafting
from planner.cost.steps import FIXED, LayerTerms, Pass, StageSort, head_parts, layer_parts, layer_terms, pipeline, stage_sorts
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
    stages: FloatArray
    passes: FloatArray
    rank: FloatArray
    stage: FloatArray
    prompts_per_step: FloatArray
    decode_exchange: FloatArray
    crowd: FloatArray
    queries: float
    gained: FloatArray
    draft: Drafting | None


def step_times(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> Step:
    """Mean step of every shape with given constants, the number of decoding sequences found by Little's law.

    `setting.prompt_tokens` and `setting.output_tokens` may be arrays [n] here: fits evaluate rows of many workloads at once.
    """
    return step_and_traffic(setting, shapes, constants)[0]


def step_and_traffic(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> tuple[Step, Traffic]:
    """The step of `step_times` together with the traffic it was computed from."""
    rank, stage = sequences(shapes)
    batch = np.maximum(shapes.batch, 1).astype(np.float64)
    passes, outputs = microbatches(shapes), output_tokens(setting)
    speculation = setting.architecture.speculation
    gained = np.minimum(1.0 if speculation is None else speculation.yielded, outputs)
    decode_exchange = _decode_exchange(setting, shapes, constants)
    work = _Work(
        setting=setting,
        constants=constants,
        terms=layer_terms(setting, shapes, constants),
        head=head_matrices(setting, shapes, constants),
        sorts=stage_sorts(setting, shapes),
        traffic=traffic(setting, shapes),
        batch=batch,
        expert_parallel=shapes.expert_parallel.astype(np.float64),
        data_parallel=shapes.data_parallel.astype(np.float64),
        stages=shapes.pipeline_parallel.astype(np.float64),
        passes=passes,
        rank=rank,
        stage=stage,
        prompts_per_step=(1.0 - 1.0 / batch) / passes * new_prompt_tokens(setting) / (outputs / gained),
        decode_exchange=decode_exchange,
        crowd=crowd(batch, constants.prompt_queue, constants.prompt_crowding),
        queries=1.0 if speculation is None else speculation.queries,
        gained=gained,
        draft=drafting(setting, shapes, constants, decode_exchange),
    )
    most = np.minimum(np.maximum(most_decoding(setting, batch, passes, work.data_parallel) / gained, 1.0), batch)
    decoding = most
    step = _step(work, decoding)
    for _ in range(ROUNDS):
        served = outputs * step.tpot
        decoding = np.minimum(batch * served / (served + step.first_token), most)
        step = _step(work, decoding)
    # Where prompts do not fit into the steps, those that wait for one make up the rest of the batch.
    starved = np.maximum(batch / np.maximum(step.decoding, 1e-12) - 1.0, 0.0) * outputs * step.tpot - step.first_token
    waiting = np.where(most < batch, np.maximum(starved, 0.0), 0.0)
    return replace(step, wait=step.wait + waiting), work.traffic


def _decode_exchange(setting: Setting, shapes: ShapeArrays, constants: StepConstants) -> FloatArray:
    """What all-reduces of decoding tokens take over the measured ones: the engine's factor inside a scale-up scope, 1 where PCIe lanes set the pace."""
    lanes = np.array([path.link.kind == "pcie" for path in setting.paths])
    return np.where(lanes[shapes.tp_level], 1.0, constants.decode_exchange)


def microbatches(shapes: ShapeArrays) -> FloatArray:
    """Microbatches in flight, m = min(p, B)."""
    return np.minimum(shapes.pipeline_parallel, np.maximum(shapes.batch, 1)).astype(np.float64)


def sequences(shapes: ShapeArrays) -> tuple[FloatArray, FloatArray]:
    """Sequences of the largest microbatch on the busiest rank, and on its whole stage."""
    passes = microbatches(shapes)
    stage = np.ceil(np.maximum(shapes.batch, 1) / passes)
    return np.ceil(stage / shapes.data_parallel), stage


def _step(work: _Work, decoding: FloatArray) -> Step:
    setting, constants, sent = work.setting, work.constants, work.traffic
    # A step that a sequence takes part in holds that sequence, and of the others those that decode on average.
    active = (1.0 + (work.batch - 1.0) * decoding / work.batch) / work.batch
    rank, stage = work.rank * active, work.stage * active
    share = prompt_share(setting, work.prompts_per_step * decoding, work.data_parallel, work.passes, work.crowd)
    zeros = np.zeros_like(rank)
    tokens, stage_tokens = work.queries * rank, work.queries * stage
    reduce = sent.reduce(tokens)
    full_reduce = np.maximum(sent.reduce(tokens + share.rank_tokens), reduce)
    decode_reduce = work.decode_exchange * reduce
    mixed_reduce = decode_reduce + constants.prefill_exchange * (full_reduce - reduce)
    plain = Pass(rank, stage, zeros, zeros, decode_reduce, sent.exchange(stage_tokens), queries=work.queries)
    full_exchange = sent.exchange(stage_tokens + share.stage_tokens)
    mixed = Pass(
        rank, stage, share.rank_tokens, share.stage_tokens, mixed_reduce, full_exchange, carries_prompts=True, queries=work.queries
    )
    plain_layers = [layer_parts(one, plain, work.expert_parallel, constants) for one in work.terms]
    mixed_layers = tuple(layer_parts(one, mixed, work.expert_parallel, constants) for one in work.terms)
    mean_layers = tuple(low + share.share * (high - low) for low, high in zip(plain_layers, mixed_layers, strict=True))
    logits = mixed_logits = head_parts(work.head, tokens, work.expert_parallel)
    if work.draft is not None:
        proposals, mixed_proposals = work.draft.parts(rank, stage, share)
        mixed_logits = logits + mixed_proposals
        logits = logits + proposals + share.share * (mixed_proposals - proposals)
    # Every stage prepares every sequence of its passes anew: that does not shrink with the layers on it.
    each = constants.step + setting.architecture.layers * constants.sequence * rank
    mean = pipeline(mean_layers, logits, work.sorts, work.passes, each)
    prompt = pipeline(mixed_layers, mixed_logits, work.sorts, np.ones_like(rank), each)
    further = chunks(setting) - 1.0  # later chunks follow one stage behind the other
    prompt_parts = prompt.through * (1.0 + further * prompt.slowest / prompt.through.sum(axis=0))
    prompt_seconds = prompt_parts.sum(axis=0)
    prompt_parts[FIXED] += constants.first_token
    return Step(
        parts=mean.parts / work.gained,
        hops=(work.stages - 1.0) * sent.hop(tokens + share.share * share.rank_tokens) / work.gained,
        prompt_parts=prompt_parts,
        prompt_hops=(work.stages - 1.0) * sent.hop(tokens + share.rank_tokens),
        wait=prefill_wait_seconds(work.batch, mean.parts.sum(axis=0), prompt_seconds, work.crowd),
        decoding=decoding,
    )
