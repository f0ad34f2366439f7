"""The batch at which communication takes as long as reading a layer's weights, by fabric, in two conventions that are never mixed.

* `notes`: the crossover batch notes' own, B* = P_layer BW_link / (2 d BW_hbm): one all-reduce a layer of 4 B d bytes, 16-bit weights not divided by tensor
  parallelism, no latency, P_layer = 4 d^2 + 3 d f without grouped kv heads.
* `full`: every all-reduce of a layer, weights in their own format divided by N, alpha, the model's real layers; the fastest algorithm in the textbook profile,
  measured times in the calibrated one. 0 = the latency alone already takes longer.

Prefill: messages carry the prompt, so both sides grow with it. In the notes' convention a column-parallel all-gather of t d elements crosses at t = 2 B*; in the
full one communication takes longer than multiplying up to some prompt length, or at any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.calculators.communication import all_reduce_calls
from planner.calculators.layouts import shape_arrays
from planner.calculators.question import Case, Question
from planner.catalog.dtypes import bytes_per_element
from planner.catalog.step_times import of_dtype, step_constants
from planner.cost import paper
from planner.cost.collectives import all_reduce_volume, ring_hops, tree_hops
from planner.cost.compute import layer_matrices, peak_flops
from planner.cost.hockney import ACHIEVED_FLOPS, ONE_SHOT_KINDS, SMALL_MESSAGE, active_bytes, active_parameters, link_constants
from planner.cost.tensors import layer_tensors
from planner.cost.traffic import traffic
from planner.plan.shape import Degrees

DEGREES: Final = (8,)
BATCHES: Final = ("1", "32", "256")
MOST_TOKENS: Final = 1 << 24


@dataclass(frozen=True)
class Crossover:
    """One model on one fabric at one degree: crossover batches and prompts of both conventions, and milliseconds at the batches asked.

    `batch_full` is infinite with one rank. `prompt_full` is the prompt from which on multiplying takes longer than communicating, infinite when it never does.
    `decode` and `prefill` hold (batch or prompt tokens, notes' convention [s], full convention [s]).
    """

    case: Case
    link: str
    link_bandwidth: float
    degree: int
    layer_parameters_notes: float
    layer_parameters: float
    batch_notes: float
    batch_full: float
    algorithm: str
    decode: tuple[tuple[int, float, float], ...]
    prompt_notes: float
    prompt_full: float
    prefill: tuple[int, float, float]


def crossovers(question: Question) -> tuple[Crossover, ...]:
    """Crossover batches of every case and TP degree."""
    return tuple(_crossover(case, degree, question.batches) for case in question.cases for degree in question.tp or DEGREES)


def notes_layer_parameters(case: Case) -> float:
    """P_layer as the notes count it, 4 d^2 + 3 d f (f = active experts' width of a mixture), mean over the layers."""
    hidden, total = case.setting.architecture.hidden_size, 0.0
    for kind, count in case.setting.architecture.kind_counts():
        part = kind.feed_forward
        width = 0 if part is None else part.width + part.shared_width + part.experts_per_token * part.expert_width
        total += count * paper.layer_parameters(hidden, width)
    return total / case.setting.architecture.layers


def real_layer_parameters(case: Case) -> float:
    """Parameters of the matrices one token reads in a layer, grouped kv heads and active experts counted, mean over the layers."""
    architecture, total = case.setting.architecture, 0.0
    for kind, count in architecture.kind_counts():
        part = kind.feed_forward
        share = part.experts_per_token / part.experts if part is not None and part.experts else 1.0
        for tensor in layer_tensors(kind, architecture.hidden_size):
            if tensor.columns > 1:
                total += count * tensor.parameters * (share if tensor.family == "expert" else 1.0)
    return total / architecture.layers


def _crossover(case: Case, degree: int, batches: tuple[int, ...]) -> Crossover:
    setting = case.setting
    architecture, read = setting.architecture, setting.gpu.memory_bandwidth.value
    path = case.hardware.path(case.hardware.level_of(max(degree, 2)))
    nominal = path.bandwidth
    hidden, layers = architecture.hidden_size, architecture.layers
    paper_parameters = notes_layer_parameters(case)
    notes = float(paper.crossover_batch(paper_parameters, hidden, nominal, read))
    measured = setting.profile == "calibrated"
    full, algorithm = _measured_batch(case, degree) if measured else _paper_batch(case, degree)
    decode = tuple(
        (batch, float(paper.communication_per_token(batch, hidden, layers, nominal)), _exchange(case, degree, batch)) for batch in batches
    )
    prompt = int(setting.prompt_tokens)
    gather = prompt * hidden * paper.BF16 * layers / nominal
    return Crossover(
        case,
        path.link.name,
        nominal,
        degree,
        paper_parameters,
        real_layer_parameters(case),
        notes,
        full,
        algorithm,
        decode,
        2.0 * notes,
        _prompt_crossover(case, degree),
        (prompt, gather, _exchange(case, degree, prompt)),
    )


def _calls(case: Case, degree: int) -> float:
    return all_reduce_calls(case, Degrees(degree)) / case.setting.architecture.layers


def _token(case: Case) -> float:
    return case.setting.architecture.hidden_size * bytes_per_element(case.setting.precision.activations)


def _starts(case: Case, degree: int) -> list[tuple[str, float]]:
    """Start of an all-reduce by algorithm [s], in the textbook profile; ring first, then those for small messages only."""
    path = case.hardware.path(case.hardware.level_of(degree))
    alpha = link_constants(path)[0]
    starts = [("ring", alpha * float(ring_hops(degree))), ("tree", alpha * float(tree_hops(degree)))]
    if path.link.kind in ONE_SHOT_KINDS:
        starts.append(("one-shot", paper.ONE_SHOT_START))
    return starts


def _exchange(case: Case, degree: int, tokens: float) -> float:
    """All-reduces of one pass of `tokens` tokens through all layers in the full convention [s]."""
    if degree <= 1:
        return 0.0
    calls = all_reduce_calls(case, Degrees(degree))
    if case.setting.profile == "calibrated":
        shapes = shape_arrays(case, [(Degrees(degree), 1)])
        return calls * float(traffic(case.setting, shapes).reduce(np.array([float(tokens)]))[0])
    message = tokens * _token(case)
    bandwidth = link_constants(case.hardware.path(case.hardware.level_of(degree)))[1]
    starts = _starts(case, degree)
    start = min(seconds for _, seconds in (starts if message <= SMALL_MESSAGE else starts[:1]))
    return calls * (start + float(all_reduce_volume(degree, message)) / bandwidth)


def _weight_seconds(case: Case, degree: int) -> float:
    """Reading the weights of a mean layer on one of the ranks by the textbook [s]; the ends of the model are not among them."""
    setting = case.setting
    per_weight = sum(active_bytes(setting)) / sum(active_parameters(setting))
    return real_layer_parameters(case) * per_weight / (degree * setting.gpu.memory_bandwidth.value)


def _paper_batch(case: Case, degree: int) -> tuple[float, str]:
    """Crossover batch of the fastest legal algorithm, and its name: the smallest batch at which communication is no longer shorter."""
    if degree <= 1:
        return math.inf, "none"
    bandwidth = link_constants(case.hardware.path(case.hardware.level_of(degree)))[1]
    calls, read = _calls(case, degree), _weight_seconds(case, degree)
    slope = calls * float(all_reduce_volume(degree, _token(case))) / bandwidth
    starts = _starts(case, degree)
    batches = {name: max(read - calls * start, 0.0) / slope for name, start in starts}
    small = min(starts, key=lambda item: item[1])[0]
    edge = SMALL_MESSAGE / _token(case)
    if batches[small] <= edge or small == "ring":
        return batches[small], small
    return max(edge, batches["ring"]), "ring"


def _measured_batch(case: Case, degree: int) -> tuple[float, str]:
    """Crossover batch by measured all-reduces against measured reading of the weights, interpolated on a fine grid of batches."""
    if degree <= 1:
        return math.inf, "none"
    setting = case.setting
    shapes = shape_arrays(case, [(Degrees(degree), 1)])
    constants = step_constants(setting.engine, setting.gpu.architecture)
    read = 0.0
    for kind, count in setting.architecture.kind_counts():
        matrices = layer_matrices(kind, setting, shapes, constants)
        active = matrices.experts_per_token / matrices.experts if matrices.experts else 0.0
        read += count * float(matrices.read[0] + active * matrices.expert_read[0])
    calls = all_reduce_calls(case, Degrees(degree))
    sent = traffic(setting, shapes)
    low, high = 0, MOST_TOKENS

    def longer(batch: int) -> bool:
        return calls * float(sent.reduce(np.array([float(batch)]))[0]) >= read

    if longer(1):
        return 0.0, "measured"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if longer(middle) else (middle, high)
    return float(high), "measured"


def _prompt_crossover(case: Case, degree: int) -> float:
    """Prompt from which on multiplying takes longer than communicating [tokens], in the full convention; 0 = always, infinite = never."""
    if degree <= 1:
        return 0.0
    setting = case.setting
    layers = setting.architecture.layers
    dtype = setting.precision.weights
    if setting.profile == "calibrated":
        share = of_dtype(step_constants(setting.engine, setting.gpu.architecture).multiply, dtype)
    else:
        share = ACHIEVED_FLOPS
    per_token = 2.0 * layers * real_layer_parameters(case) / (degree * share * peak_flops(setting.gpu, dtype))
    sizes = np.unique(np.geomspace(1, 1 << 22, 400).astype(np.int64))
    shorter = np.array([_exchange(case, degree, int(size)) <= per_token * size for size in sizes])
    if not shorter[-1]:
        return math.inf
    last = np.flatnonzero(~shorter)
    return 0.0 if not last.size else float(sizes[last[-1] + 1])
