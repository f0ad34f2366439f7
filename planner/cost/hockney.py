"""Times of shapes by the textbook profile: alpha x hops + beta x volume, weights read once, nothing else.

A step is W / (N BW) plus the communication of the alpha-beta calculator notes with the links' `hockney_*` constants. What the notes leave out is left out here too: KV reads,
launch overhead, queueing, overlap. Use it to rank shapes as on paper; the `calibrated` profile predicts times.

====================== =======================================================================================================
term                   form
====================== =======================================================================================================
compute                W / (t BW), a MoE's routed experts W_k / (t dp BW) with only the k active ones of each layer counted
tensor parallelism     two all-reduces a layer of B d b bytes: the fastest legal of ring, tree and one-shot
... across scopes      half of the ring's hops and bytes over the network, never less than the same group inside one scope
pipeline               (P - 1)(alpha + B d b / bandwidth)
experts                two all-to-alls a MoE layer of B k d b bytes without (e - 1) / e, alpha for each of e - 1 peers
prefill                2 P S / (t F), F = 600 / 989 of the data sheet's FLOP/s
bubble                 (P - 1) / (B + P - 1), reported beside the time
adapters               those that the batch uses, read once a step (`cost.adapters`)
speculation            k passes through the draft and one of k + 1 tokens a sequence, over the tokens gained (`cost.speculation`)
====================== =======================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import Adapters
from planner.catalog.dtypes import bytes_per_element
from planner.cost.adapters import used
from planner.cost.collectives import all_to_all, point_to_point, ring_all_reduce, tree_all_reduce, two_shot_all_reduce
from planner.cost.compute import peak_flops
from planner.cost.memory_companions import adapter_bytes, draft_ranks
from planner.cost.memory_weights import model_bytes, tensor_bytes
from planner.cost.paper import ONE_SHOT_START, bubble
from planner.cost.setting import FloatArray, IntArray, Setting, ShapeArrays, TimesTable
from planner.cost.speculation import draft_setting
from planner.cost.tensor import EXPERT_SPLITS
from planner.cost.tensors import layer_tensors, model_parameters
from planner.topology.paths import LinkPath

ACHIEVED_FLOPS: Final = 600.0 / 989.0  # 600 TFLOP/s reached on an H100 whose data sheet says 989, alpha-beta calculator notes
SMALL_MESSAGE: Final = 8.0 * 2**20  # trees and one-shot kernels serve messages up to here; engines cap their kernels at 8 MiB
ONE_SHOT_KINDS: Final = ("nvlink", "xgmi")  # kernels that write straight into peers' memory


def evaluate_hockney(setting: Setting, shapes: ShapeArrays) -> TimesTable:
    """Times of all shapes by the textbook profile.

    Parameters
    ----------
    setting : Setting
        `paths` carry the links; each link's `hockney_alpha` and `hockney_bandwidth` are used, the latter narrowed as the path narrows its nominal one.
    shapes : ShapeArrays
        n shapes as columns; `batch` sequences are in one step, spread over the data-parallel ranks.

    Returns
    -------
    TimesTable
        `fixed` and `queueing` are 0. `efficiency` is throughput per GPU over that of one GPU, T(1) (1 - bubble) / (n T(n)); `latency_efficiency` leaves the bubble out.
    """
    architecture = setting.architecture
    hidden = architecture.hidden_size
    token = hidden * bytes_per_element(setting.precision.activations)
    tensor, data = shapes.tensor_parallel.astype(np.float64), shapes.data_parallel.astype(np.float64)
    stages, batch = shapes.pipeline_parallel.astype(np.float64), np.maximum(shapes.batch, 1).astype(np.float64)
    rank_batch = np.ceil(batch / data)
    speculation = setting.architecture.speculation
    queries, gained = (1.0, 1.0) if speculation is None else (speculation.queries, speculation.yielded)
    proposals = _proposals(setting, shapes, rank_batch)
    prompt = np.full(batch.shape, setting.prompt_tokens * (1.0 - setting.prefix_cache_hit_rate))

    plain, routed = active_bytes(setting)
    adapters = _adapters(setting, shapes, rank_batch)
    memory_bandwidth = setting.gpu.memory_bandwidth.value
    compute = ((plain / tensor + routed / (tensor * data)) / memory_bandwidth + proposals.compute + adapters) / gained
    alone = _adapters(setting, replace(shapes, tensor_parallel=np.ones_like(shapes.tensor_parallel)), batch)
    single = ((plain + routed) / memory_bandwidth + proposals.alone + alone) / gained

    tp_comm, algorithm = _tensor_parallel(setting, shapes, queries * rank_batch * token)
    tp_comm = (tp_comm + proposals.tp_comm) / gained
    prefill_tp, _ = _tensor_parallel(setting, shapes, prompt * token)
    handed = token * architecture.residual_streams
    pp_comm = _pipeline(setting, shapes, queries * rank_batch * handed) / gained
    ep_comm = _experts(setting, shapes, queries * rank_batch * token) / gained
    tpot = compute + tp_comm + pp_comm + ep_comm

    plain_parameters, routed_parameters = active_parameters(setting)
    rate = ACHIEVED_FLOPS * peak_flops(setting.gpu, setting.precision.weights)
    prefill_compute = 2.0 * prompt * (plain_parameters / tensor + routed_parameters / (tensor * data)) / rate
    prefill_comm = prefill_tp + _pipeline(setting, shapes, prompt * handed) + _experts(setting, shapes, prompt * token)

    idle = bubble(stages, batch)
    latency_efficiency = single / (tensor * data * stages * tpot)
    zeros = np.zeros(batch.shape)
    return TimesTable(
        tpot=tpot,
        ttft=prefill_compute + prefill_comm,
        compute=compute,
        tp_comm=tp_comm,
        pp_comm=pp_comm,
        ep_comm=ep_comm,
        fixed=zeros,
        prefill_compute=prefill_compute,
        prefill_comm=prefill_comm,
        queueing=zeros,
        overhead=(tp_comm + pp_comm + ep_comm) / compute,
        efficiency=latency_efficiency * (1.0 - idle),
        latency_efficiency=latency_efficiency,
        bubble=idle,
        throughput=batch / tpot,
        algorithm=algorithm,
    )


def _adapters(setting: Setting, shapes: ShapeArrays, rank_batch: FloatArray) -> FloatArray:
    """Reading the adapters that a step's requests use [s], shape [n]."""
    architecture, adapters = setting.architecture, setting.architecture.adapters
    if adapters is None:
        return np.zeros(rank_batch.shape)
    one, hidden = Adapters(1, adapters.rank), architecture.hidden_size
    size = sum(count * adapter_bytes(kind, hidden, one, shapes.tensor_parallel) for kind, count in architecture.kind_counts())
    return used(adapters.slots, rank_batch) * size / setting.gpu.memory_bandwidth.value


@dataclass(frozen=True)
class _Proposals:
    """Passes through a draft in one step: reading its weights on its ranks and on one GPU, and its all-reduces [s]."""

    compute: FloatArray
    tp_comm: FloatArray
    alone: float


def _proposals(setting: Setting, shapes: ShapeArrays, rank_batch: FloatArray) -> _Proposals:
    zeros = np.zeros(rank_batch.shape)
    speculation, draft = setting.architecture.speculation, setting.architecture.draft
    if speculation is None or draft is None:
        return _Proposals(zeros, zeros, 0.0)
    own = draft_setting(setting, draft)
    if draft.shares_ends:  # one prediction layer a pass
        own = replace(own, architecture=replace(own.architecture, layer_sequence=own.architecture.layer_sequence[:1]))
    cut = replace(shapes, tensor_parallel=draft_ranks(draft, shapes.tensor_parallel))
    read = speculation.tokens * sum(active_bytes(own)) / own.gpu.memory_bandwidth.value
    message = rank_batch * own.architecture.hidden_size * bytes_per_element(own.precision.activations)
    return _Proposals(read / cut.tensor_parallel, speculation.tokens * _tensor_parallel(own, cut, message)[0], read)


def active_bytes(setting: Setting) -> tuple[float, float]:
    """Weights read for one token [B]: everything but routed experts, and the routed experts that are active (k of E in each layer)."""
    architecture, precision = setting.architecture, setting.precision
    routed = active = 0.0
    for kind, count in architecture.kind_counts():
        part = kind.feed_forward
        for tensor in layer_tensors(kind, architecture.hidden_size):
            if part is not None and tensor.split in EXPERT_SPLITS:
                size = count * tensor_bytes(tensor, precision, architecture.dtype)
                routed += size
                active += size * part.experts_per_token / part.experts
    return model_bytes(architecture, precision) - routed, active


def active_parameters(setting: Setting) -> tuple[float, float]:
    """Parameters one token multiplies with as the notes count them (embedding included): without routed experts, and the active routed experts."""
    architecture = setting.architecture
    routed = active = 0.0
    for kind, count in architecture.kind_counts():
        part = kind.feed_forward
        for tensor in layer_tensors(kind, architecture.hidden_size):
            if part is not None and tensor.split in EXPERT_SPLITS:
                routed += count * tensor.parameters
                active += count * tensor.parameters * part.experts_per_token / part.experts
    return model_parameters(architecture) - routed, active


def link_constants(path: LinkPath) -> tuple[float, float]:
    """Alpha [s] and bandwidth of one rank [B/s] of a path in the textbook profile."""
    entry = path.link
    return entry.hockney_alpha.value, entry.hockney_bandwidth.value * path.bandwidth / entry.bandwidth.value


def best_all_reduce(path: LinkPath, ranks: IntArray, message: FloatArray) -> tuple[FloatArray, NDArray[np.str_]]:
    """Fastest legal all-reduce inside a scope [s] and its name: ring always, tree and (on NVLink or xGMI) one-shot up to 8 MiB."""
    alpha, bandwidth = link_constants(path)
    ring = ring_all_reduce(ranks, message, alpha, bandwidth)
    small = message <= SMALL_MESSAGE
    tree = np.where(small, tree_all_reduce(ranks, message, alpha, bandwidth), np.inf)
    direct = small & (path.link.kind in ONE_SHOT_KINDS)
    one_shot = np.where(direct, two_shot_all_reduce(ranks, message, ONE_SHOT_START, bandwidth), np.inf)
    times = np.stack([ring, tree, one_shot])
    choice = np.argmin(times, axis=0)
    names = np.where(ranks > 1, np.array(["ring", "tree", "one-shot"])[choice], "none")
    return np.min(times, axis=0), names


def _inside(setting: Setting) -> LinkPath | None:
    inside = [path for path in setting.paths if not path.across_scopes and path.level != "gpu"]
    return inside[-1] if inside else None


def _tensor_parallel(setting: Setting, shapes: ShapeArrays, message: FloatArray) -> tuple[FloatArray, NDArray[np.str_]]:
    """All all-reduces of one pass [s] and the algorithm, shape [n]."""
    calls = sum(
        count * ((kind.attention is not None or kind.recurrent is not None) + (kind.feed_forward is not None))
        for kind, count in setting.architecture.kind_counts()
    )
    seconds = np.zeros(message.shape)
    names = np.full(message.shape, "none", dtype="<U20")
    for level in np.unique(shapes.tp_level[shapes.tensor_parallel > 1]):
        rows = (shapes.tp_level == level) & (shapes.tensor_parallel > 1)
        path, ranks = setting.paths[int(level)], shapes.tensor_parallel[rows]
        seconds[rows], names[rows] = best_all_reduce(path, ranks, message[rows])
        if path.across_scopes:
            half = 0.5 * ring_all_reduce(ranks, message[rows], *link_constants(path))
            inner = _inside(setting)
            seconds[rows] = half if inner is None else np.maximum(half, best_all_reduce(inner, ranks, message[rows])[0])
            names[rows] = "half-ring-across"
    return calls * seconds, names


def _pipeline(setting: Setting, shapes: ShapeArrays, message: FloatArray) -> FloatArray:
    seconds = np.zeros(message.shape)
    for level in np.unique(shapes.replica_level[shapes.pipeline_parallel > 1]):
        rows = (shapes.replica_level == level) & (shapes.pipeline_parallel > 1)
        hop = point_to_point(message[rows], *link_constants(setting.paths[int(level)]))
        seconds[rows] = (shapes.pipeline_parallel[rows] - 1.0) * hop
    return seconds


def _experts(setting: Setting, shapes: ShapeArrays, message: FloatArray) -> FloatArray:
    """Dispatch and combine of all MoE layers [s]; experts merely cut over data-parallel ranks cost a gather and a scatter, a ring all-reduce in all."""
    seconds = np.zeros(message.shape)
    routed = [
        (kind.feed_forward.experts_per_token, count)
        for kind, count in setting.architecture.kind_counts()
        if kind.feed_forward and kind.feed_forward.experts
    ]
    if not routed:
        return seconds
    group = np.where(
        shapes.expert_parallel > 1,
        shapes.expert_parallel,
        np.where(shapes.data_parallel > 1, shapes.tensor_parallel * shapes.data_parallel, 1),
    )
    for level in np.unique(shapes.stage_level[group > 1]):
        rows = (shapes.stage_level == level) & (group > 1)
        alpha, bandwidth = link_constants(setting.paths[int(level)])
        ranks = group[rows]
        # The notes' volume has no (e - 1) / e: undo what the textbook form takes off.
        whole = ranks / (ranks - 1.0)
        for chosen, layers in routed:
            exchange = 2.0 * all_to_all(ranks, chosen * message[rows] * whole, alpha, bandwidth)
            cut = ring_all_reduce(ranks, message[rows] * shapes.data_parallel[rows], alpha, bandwidth)
            seconds[rows] += layers * np.where(shapes.expert_parallel[rows] > 1, exchange, cut)
    return seconds
