"""Seeded synthetic fleets for the solver's benchmarks: GPU types in leaves, random holes, many models, roofline shapes.

Nothing here was measured on a real deployment: GPU figures are data-sheet roundings, prices and loads are drawn. The fleets resemble real ones in what
makes the choice hard: scopes of 8 with holes, sizes 1 to 8, pipelines over scopes, several GPU types, loads near the fleet's capacity.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np

from planner.solve.instance import Container, Instance, PoolScopes, ReplicaLimits, ShapeColumns
from planner.solve.scaling import ceil_money, load_scale


@dataclass(frozen=True)
class GpuKind:
    """Memory [GB], bandwidth [GB/s], dense 16-bit TFLOP/s, scale-up bandwidth [GB/s], price [$/h], whether FP8 runs."""

    memory: float
    bandwidth: float
    teraflops: float
    scale_up: float
    price: float
    fp8: bool


GPUS = (
    GpuKind(80, 3350, 990, 450, 2.99, fp8=True),
    GpuKind(80, 2000, 312, 300, 1.69, fp8=False),
    GpuKind(141, 4800, 990, 450, 3.79, fp8=True),
    GpuKind(48, 864, 362, 25, 0.99, fp8=True),
)
MIX = (0.35, 0.25, 0.15, 0.25)


@dataclass(frozen=True)
class ModelKind:
    """Parameters and active parameters [1e9], layers, key-value heads, hidden size, bytes of KV cache a token."""

    parameters: float
    active: float
    layers: int
    kv_heads: int
    hidden: int
    kv_bytes: float


MODELS = (
    ModelKind(8, 8, 32, 8, 4096, 131_072),
    ModelKind(14.8, 14.8, 48, 8, 5120, 196_608),
    ModelKind(32.8, 32.8, 64, 8, 5120, 262_144),
    ModelKind(70.6, 70.6, 80, 8, 8192, 327_680),
    ModelKind(405, 405, 126, 8, 16384, 516_096),
    ModelKind(46.7, 12.9, 32, 8, 4096, 131_072),
    ModelKind(141, 39, 56, 8, 6144, 229_376),
    ModelKind(30.5, 3.3, 48, 4, 2048, 98_304),
    ModelKind(235, 22, 94, 4, 4096, 192_512),
)


def pools_of(gpus: int, draw: random.Random) -> tuple[PoolScopes, ...]:
    """Leaves of 4 to 32 nodes of one type, 12 % of GPUs taken in random holes."""
    nodes = max(1, gpus // 8)
    per_leaf = 4 if nodes <= 16 else 8 if nodes <= 256 else 16 if nodes <= 2000 else 32
    free: list[list[int]] = [[] for _ in GPUS]
    leaves: list[list[int]] = [[] for _ in GPUS]
    leaf = 0
    while nodes > 0:
        kind = draw.choices(range(len(GPUS)), MIX)[0]
        for _ in range(min(per_leaf, nodes)):
            taken = draw.choice([1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8]) if draw.random() < 0.24 else 0
            free[kind].append(8 - taken)
            leaves[kind].append(leaf)
        nodes -= per_leaf
        leaf += 1
    return tuple(
        PoolScopes(
            free=np.array(own, dtype=np.int64),
            capacity=np.full(len(own), 8, dtype=np.int64),
            leaf=np.array(where, dtype=np.int64),
            spine=np.array(where, dtype=np.int64) // 16,
            fabric=np.zeros(len(own), dtype=np.int64),
            order=np.arange(len(own), dtype=np.int64),
            parts=(),
            nodes=(),
        )
        for own, where in zip(free, leaves, strict=True)
    )


def shapes_of(model: ModelKind, fp8: bool, context: int, target: float) -> list[tuple[int, int, int, float, float, float]]:
    """(pool, tensor parallel, stages, tokens/s, time per token [s], communication [s]) of every shape within memory and target."""
    found = []
    batches = np.unique(np.round(np.geomspace(1, 512, 40)))
    for pool, gpu in enumerate(GPUS):
        if fp8 and not gpu.fp8:
            continue
        width = 1 if fp8 else 2
        for tensor in (1, 2, 4, 8):
            if max(model.kv_heads, tensor) % min(model.kv_heads, tensor):
                continue
            for stages in (1, 2, 4):
                if stages > 1 and tensor < 4:
                    continue
                kv = model.kv_bytes * context * 1e-9 / min(tensor, model.kv_heads)
                fits = (model.parameters * width / tensor + batches * kv) / stages <= 0.88 * gpu.memory
                read = (model.parameters * width / tensor + batches * kv) / stages / gpu.bandwidth
                compute = 2 * batches * model.active / tensor / stages / gpu.teraflops * 1e-3 / 0.6
                exchange = 0.0 if tensor == 1 else 2 * model.layers / stages * (8e-6 + 2 * batches * model.hidden * 2e-9 / gpu.scale_up)
                stage = np.maximum(read, compute) + exchange + 30e-6
                hops = (stages - 1) * (8e-6 + batches * model.hidden * 2e-9 / 45)
                step = stages * stage + hops
                rate = np.where(fits & (step <= target), batches / (stage + hops / stages), 0)
                best = int(rate.argmax())
                if rate[best] >= 1:
                    communication = float((stages * exchange + hops)[best]) if tensor * stages > 1 else 0.0
                    found.append((pool, tensor, stages, float(rate[best]), float(step[best]), communication))
    return found


def synthetic(gpus: int, models: int, seed: int, filled: float = 0.75) -> Instance:
    """One instance: `gpus` GPUs, `models` deployments with log-normal loads that need about `filled` of the free GPUs."""
    draw = random.Random(seed * 104_729 + gpus * 31 + models)
    pools = pools_of(gpus, draw)
    room = [int(pool.free.sum()) for pool in pools]
    weights = [draw.lognormvariate(0, 0.9) for _ in range(models)]
    rows: list[tuple[int, int, int, int, float, float, float]] = []
    loads: list[float] = []
    for deployment, weight in enumerate(weights):
        wanted = filled * sum(room) * weight / sum(weights)
        shapes: list[tuple[int, int, int, float, float, float]] = []
        while len({shape[0] for shape in shapes if room[shape[0]]}) < min(2, sum(1 for count in room if count)):
            model = draw.choice(MODELS[:4] + MODELS[5:6] if wanted < 24 else MODELS)
            shapes = shapes_of(model, draw.random() < 0.4, draw.choice([1500, 3000, 6000, 12000]), draw.choice([0.015, 0.025, 0.04, 0.06]))
        per_gpu: dict[int, float] = {}
        for pool, tensor, stages, rate, _, _ in shapes:
            per_gpu[pool] = max(per_gpu.get(pool, 0.0), rate / (tensor * stages))
        usable = sum(room[pool] for pool in per_gpu)
        loads.append(math.floor(wanted * sum(rate * room[pool] for pool, rate in per_gpu.items()) / usable) or 1.0)
        rows.extend((deployment, *shape) for shape in shapes)
    return _instance(rows, loads, pools)


def _instance(rows: list[tuple[int, int, int, int, float, float, float]], loads: list[float], pools: tuple[PoolScopes, ...]) -> Instance:
    scales = [load_scale(load, [row[4] for row in rows if row[0] == number]) for number, load in enumerate(loads)]

    def column(values: list[int]) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    deployment, pool, size, groups = (column([row[position] for row in rows]) for position in range(4))
    return Instance(
        shapes=ShapeColumns(
            deployment=deployment,
            pool=pool,
            size=size,
            groups=groups,
            container=np.full(len(rows), int(Container.ANYWHERE)),
            within_part=np.zeros(len(rows), dtype=bool),
            capacity=column([math.floor(row[4] * scales[row[0]]) for row in rows]),
            share=column([math.floor(row[4] / loads[row[0]] * 1e6) for row in rows]),
            price=column([ceil_money(GPUS[row[1]].price * row[2] * row[3]) for row in rows]),
            comm=column([round(row[6] * 1e9) for row in rows]),
            tpot=column([round(row[5] * 1e9) for row in rows]),
            ttft=column([10**9] * len(rows)),
            form=np.arange(len(rows), dtype=np.int64),
        ),
        loads=column([math.ceil(load * scale) for load, scale in zip(loads, scales, strict=True)]),
        pools=pools,
        limits=tuple(ReplicaLimits() for _ in loads),
        source=np.arange(len(rows), dtype=np.int64),
    )
