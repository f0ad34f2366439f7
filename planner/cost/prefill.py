"""Prompts inside decode steps: how many prompt tokens a step carries, in what chunks, and how often.

Continuous batching never stops decoding for a prompt: in a closed loop of B sequences every one of the others' prompts is taken up once
while a request decodes its `out` tokens, so on average a step carries

    (B - 1) / B x B_d x S' / out      prompt tokens, S' = S (1 - prefix hits), B_d of the B sequences decoding,

not evenly but in chunks of up to max_batched_tokens: a share of the steps carries a whole chunk, the others none. A chunk is multiplied with the
weights while they are read anyway, so its cost is not the sum of two rooflines but the difference between a step with and one without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.cost.setting import FloatArray, IntArray, Setting, per_row


@dataclass(frozen=True)
class PromptShare:
    """Prompt tokens in the steps of a group of sequences, per shape [n].

    `share` of the steps carry a chunk; in these the busiest rank takes `rank_tokens` prompt tokens and the stage `stage_tokens`.
    """

    share: FloatArray
    rank_tokens: FloatArray
    stage_tokens: FloatArray


def new_prompt_tokens(setting: Setting) -> FloatArray:
    """Prompt tokens of one request that no prefix cache holds [tokens]; the last token is always computed."""
    prompt = np.asarray(setting.prompt_tokens, dtype=np.float64)
    return np.maximum(prompt * (1.0 - setting.prefix_cache_hit_rate), 1.0)


def output_tokens(setting: Setting) -> FloatArray:
    """Output tokens of one request, at least one [tokens]."""
    return np.maximum(np.asarray(setting.output_tokens, dtype=np.float64), 1.0)


@dataclass(frozen=True)
class Requests:
    """Lengths of requests and the bound of a chunk [tokens], one of each for all shapes or one a shape [n].

    `new_prompt` are the tokens of a prompt that no prefix cache holds, `outputs` those of an answer, `bound` is max_batched_tokens.
    """

    new_prompt: FloatArray | float
    outputs: FloatArray | float
    bound: FloatArray | float

    @classmethod
    def of(cls, setting: Setting) -> Requests:
        """Requests that a setting describes."""
        return cls(new_prompt_tokens(setting), output_tokens(setting), float(max(setting.max_batched_tokens, 1)))

    def at(self, rows: IntArray) -> Requests:
        """The same for some of the shapes, in any order and number."""
        return Requests(per_row(self.new_prompt, rows), per_row(self.outputs, rows), per_row(self.bound, rows))

    @property
    def chunk(self) -> FloatArray | float:
        """Prompt tokens of a request's largest chunk [tokens]."""
        return np.minimum(self.new_prompt, self.bound)

    @property
    def chunks(self) -> FloatArray:
        """Steps that one prompt is spread over."""
        return np.ceil(self.new_prompt / self.bound)


def prompt_share(
    requests: Requests, pass_tokens: FloatArray, data_parallel: FloatArray, passes: FloatArray, before: FloatArray | float = 0.0
) -> PromptShare:
    """Spread the prompt tokens of an average pass over chunks.

    Parameters
    ----------
    requests
        Lengths and the bound of a chunk.
    pass_tokens
        Prompt tokens of a stage in the average pass, shape [n].
    data_parallel
        Data-parallel ranks dp: each takes up its own prompts, but all wait at the experts for the one that has a chunk.
    passes
        Microbatches m under way: in a full pipeline every beat lasts as long as the longest of its m passes.
    before
        Prompts that come right before one (`cost.serving.crowd`).

    Returns
    -------
    PromptShare
        With c the chunk of one rank, a share f = min(1, tokens / c) of the passes carries one. Chunks follow each other through a pipeline in trains of n, those of one
        prompt and of the prompts that came with it, so that of its beats 1 - (1 - f / n)^(m + n - 1) hold one. Where even that is not enough, chunks grow up to
        max_batched_tokens; what does not fit then waits (`cost.calibrated` lowers the number of decoding sequences).
    """
    carried = np.minimum(pass_tokens, requests.bound * data_parallel)
    chunk = np.minimum(np.maximum(requests.chunk, carried / data_parallel), requests.bound)
    share = np.minimum(carried / chunk, 1.0)
    piped = np.flatnonzero(passes > 1.0)
    if piped.size:
        train = np.broadcast_to(requests.chunks * (1.0 + before), share.shape)[piped]
        beats = -np.expm1((passes[piped] + train - 1.0) * np.log1p(-np.minimum(share[piped] / train, 1.0 - 1e-12)))
        share[piped] = np.maximum(beats, share[piped])
    return PromptShare(share=share, rank_tokens=chunk, stage_tokens=np.maximum(carried, chunk))


def most_decoding(requests: Requests, batch: FloatArray, passes: FloatArray, data_parallel: FloatArray) -> FloatArray:
    """Most sequences of `batch` that can decode at once when every pass carries a full chunk, per shape [n].

    Each request needs S' prompt tokens for `out` steps; with more sequences decoding than the prompts taken up can replace, some would run dry.
    """
    bound = requests.bound * data_parallel * passes
    others = np.maximum(1.0 - 1.0 / batch, 1e-12)
    return np.maximum(bound * requests.outputs / (requests.new_prompt * others), 1.0)
