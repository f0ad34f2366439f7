"""Speculative decoding: what proposing tokens costs, beside verifying them.

A step proposes k tokens of every sequence and verifies them at once, with the one it would have taken anyway: k + 1 tokens of each pass through the model, whose weights
and cache are read once. Where a proposed token is accepted with probability a when those before it were, a sequence gains

    1 + a + ... + a^k = (1 - a^(k + 1)) / (1 - a)

tokens a step (Leviathan, Kalman and Matias, "Fast Inference from Transformers via Speculative Decoding", arXiv 2211.17192). The k proposals are k passes through
the draft, one after the other on the last stage: its own layers and head, or one prediction layer of the checkpoint with the model's head. The first pass also takes up what the last step
gained, so that a pass holds (k - 1 + gained) / k tokens of a sequence. Every pass is prepared like a step of the model; prompts go through the draft as well. N-grams are looked up, which is free here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.architecture import Draft, Speculation
from planner.catalog.step_times import StepConstants
from planner.cost.compute import Matrices, head_matrices
from planner.cost.memory_companions import draft_precision, draft_ranks
from planner.cost.prefill import PromptShare
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays
from planner.cost.steps import COMPUTE, LayerTerms, Passes, head_seconds, layer_parts, layer_terms
from planner.cost.traffic import Traffic, traffic


@dataclass(frozen=True)
class Drafting:
    """A draft as n shapes run it: terms of its layers with how many of each a pass goes through, its head, and what its ranks send.

    `passes` proposals are made in a step, of `tokens` tokens a sequence each. `exchange` multiplies the all-reduces of decoding tokens. Experts of a draft that `follows` the
    model's layout are shared by the whole stage, a model of its own stays within the tensor-parallel group.
    """

    constants: StepConstants
    layers: tuple[tuple[LayerTerms, float], ...]
    head: Matrices
    sent: Traffic
    expert_parallel: FloatArray
    exchange: FloatArray
    passes: float
    tokens: float
    follows: bool

    def at(self, rows: IntArray) -> Drafting:
        """The same for some of the shapes, in any order and number."""
        return replace(
            self,
            layers=tuple((terms.at(rows), count) for terms, count in self.layers),
            head=self.head.at(rows),
            sent=self.sent.at(rows),
            expert_parallel=self.expert_parallel[rows],
            exchange=self.exchange[rows],
        )

    def parts(self, rank: FloatArray, stage: FloatArray, share: PromptShare, *, exchanged: bool) -> FloatArray:
        """Parts of all proposals of a step without and with a chunk of a prompt [s], shape [2, parts, n], as `layer_parts` counts them.

        Parameters
        ----------
        rank, stage
            Sequences that decode on the busiest rank and on its whole stage.
        share
            Prompt tokens of a step that carries some.
        exchanged
            Whether parts of exchanges with experts are told.
        """
        stage, stage_prompt = (stage, share.stage_tokens) if self.follows else (rank, share.rank_tokens)
        tokens, stage_tokens = self.tokens * rank, self.tokens * stage
        all_tokens, all_stage_tokens = np.stack((tokens, tokens + share.rank_tokens)), np.stack((stage_tokens, stage_tokens + stage_prompt))
        reduce = self.sent.reduce(all_tokens)
        further = np.maximum(reduce[1] - reduce[0], 0.0)
        reduce[0] = self.exchange * reduce[0]
        reduce[1] = reduce[0] + self.constants.prefill_exchange * further
        exchange = self.sent.exchange(all_stage_tokens) if exchanged else None
        both = Passes(rank, share.rank_tokens, all_tokens, all_stage_tokens, reduce, exchange)
        layers = [count * layer_parts(terms, both, self.expert_parallel, self.constants) for terms, count in self.layers]
        without, with_prompts = np.asarray(sum(layers), dtype=np.float64)
        proposal = without.copy()
        proposal[COMPUTE] += head_seconds(self.head, rank, self.expert_parallel)
        proposal[-1] += self.constants.step
        proposals = self.passes * proposal
        return np.stack((proposals, proposals + with_prompts - without))


def drafting(setting: Setting, shapes: ShapeArrays, constants: StepConstants, exchange: FloatArray) -> Drafting | None:
    """Lay out the draft of every shape; None where proposals cost nothing, or nothing is said of how many are accepted.

    `exchange` multiplies the model's own all-reduces of decoding tokens, shape [n].
    """
    speculation, draft = setting.architecture.speculation, setting.architecture.draft
    if speculation is None or draft is None:
        return None
    own = draft_setting(setting, draft)
    ones = np.ones_like(shapes.tensor_parallel)
    cut = replace(shapes, pipeline_parallel=ones)
    if not draft.shares_ends:
        cut = replace(cut, tensor_parallel=draft_ranks(draft, shapes.tensor_parallel), expert_parallel=ones, data_parallel=ones)
    sequence = own.architecture.layer_sequence
    per_pass = 1.0 / len(sequence) if draft.shares_ends else 1.0
    counts = (sequence.count(index) * per_pass for index in range(len(own.architecture.layer_kinds)))
    return Drafting(
        constants=constants,
        layers=tuple((terms, count) for terms, count in zip(layer_terms(own, cut, constants), counts, strict=True) if count),
        head=head_matrices(own, cut, constants),
        sent=traffic(own, cut),
        expert_parallel=cut.expert_parallel.astype(np.float64),
        exchange=exchange,
        passes=float(speculation.tokens),
        tokens=tokens_a_pass(speculation),
        follows=draft.shares_ends,
    )


def draft_setting(setting: Setting, draft: Draft) -> Setting:
    """The setting a draft runs in: its own layers and number formats, everything else as the model it serves."""
    return replace(setting, architecture=draft.architecture, precision=draft_precision(draft, setting.precision))


def tokens_a_pass(speculation: Speculation) -> float:
    """Tokens of a sequence that a pass through the draft holds on average."""
    return (speculation.tokens - 1.0 + speculation.yielded) / speculation.tokens
