"""Seeded synthetic fleets: GPU types in leaves, random holes, many models with roofline shapes and log-normal loads.

    fleet(gpus, seed)                 nodes of 8 GPUs, a type a leaf, about 12 % of the GPUs taken in random holes
    instance(gpus, models, seed)      the solver's question over such a fleet

Nothing here was measured on a real deployment. GPU figures are data-sheet roundings, prices, targets and loads are drawn. What makes real fleets hard to
plan is there: scopes of 8 with holes, group sizes 1 to 8, pipelines over several scopes, four GPU types, loads of about three quarters of the free GPUs.
The same seed gives the same fleet, models and loads on every machine.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from planner.solve.instance import Container, DeploymentRules, Instance, PoolScopes, ReplicaLimits, Resilience, ShapeColumns
from planner.solve.token_time import TimedShapes, token_times

NODE_GPUS = 8
SIZES = (1, 2, 4, 8)
STAGES = (1, 2, 4)
NETWORK_ALPHA_US, NETWORK_GB_S = 8.0, 45.0
"""Latency [us] and bandwidth [GB/s] of one hop of a pipeline between scopes."""


@dataclass(frozen=True)
class GpuKind:
    """Memory [GB], bandwidth [GB/s], dense 16-bit TFLOP/s, scale-up bandwidth [GB/s], price [cents/h], whether FP8 runs, share of the fleet."""

    memory: float
    bandwidth: float
    teraflops: float
    scale_up: float
    cents: int
    fp8: bool
    share: float


# In the order in which leaves are dealt; pools are numbered by name.
GPUS = {
    "H100": GpuKind(80, 3350, 990, 450, 299, fp8=True, share=0.35),
    "A100": GpuKind(80, 2000, 312, 300, 169, fp8=False, share=0.25),
    "H200": GpuKind(141, 4800, 990, 450, 379, fp8=True, share=0.15),
    "L40S": GpuKind(48, 864, 362, 25, 99, fp8=True, share=0.25),
}
POOLS = tuple(sorted(GPUS))


@dataclass(frozen=True)
class ModelKind:
    """Parameters and active ones [1e9], layers, heads, KV heads, hidden size, KV bytes a token (0: from the heads), head size, experts, experts a token."""

    parameters: float
    active: float
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    kv_bytes: int = 0
    head_size: int = 0
    experts: int = 0
    chosen: int = 0

    def kv_gigabytes(self) -> float:
        """KV cache of one token in 16 bits [GB]."""
        head = self.head_size or self.hidden // self.heads
        return (self.kv_bytes or 2 * self.layers * self.kv_heads * head * 2) * 1e-9

    def weights_read(self, batch: np.ndarray) -> np.ndarray:
        """Share of the weights that one step of `batch` sequences reads: all of a dense model, the experts that are hit of another [b]."""
        if not self.experts:
            return np.ones_like(batch)
        dense = self.active / self.parameters
        hit = 1 - (1 - self.chosen / self.experts) ** batch
        share: np.ndarray = np.minimum(1, dense + (1 - dense) * hit)
        return share


MODELS = (
    ModelKind(8.0, 8.0, 32, 32, 8, 4096),
    ModelKind(14.8, 14.8, 48, 40, 8, 5120),
    ModelKind(32.8, 32.8, 64, 40, 8, 5120),
    ModelKind(70.6, 70.6, 80, 64, 8, 8192),
    ModelKind(405.0, 405.0, 126, 128, 8, 16384),
    ModelKind(46.7, 12.9, 32, 32, 8, 4096, experts=8, chosen=2),
    ModelKind(141.0, 39.0, 56, 48, 8, 6144, experts=8, chosen=2),
    ModelKind(30.5, 3.3, 48, 32, 4, 2048, experts=128, chosen=8),
    ModelKind(117.0, 5.1, 36, 64, 8, 2880, head_size=64, experts=128, chosen=4),
    ModelKind(235.0, 22.0, 94, 64, 4, 4096, experts=128, chosen=8),
    ModelKind(671.0, 37.0, 61, 128, 1, 7168, kv_bytes=70272, experts=256, chosen=8),
)
SMALL = tuple(model for model in MODELS if model.parameters < 60)


@dataclass(frozen=True)
class Fleet:
    """Nodes as parallel lists: `kind` (name of the GPU type), `leaf`, and `free`, the indices of the GPUs that are not taken."""

    kind: tuple[str, ...]
    leaf: tuple[int, ...]
    free: tuple[tuple[int, ...], ...]

    def room(self) -> Counter[str]:
        """Free GPUs of each type."""
        found: Counter[str] = Counter()
        for kind, free in zip(self.kind, self.free, strict=True):
            found[kind] += len(free)
        return found


def fleet(gpus: int, seed: int, holes: float = 0.12) -> Fleet:
    """Deal leaves of one type from a shuffled deck, then take GPUs of `2 x holes` of the nodes away, one to all of them."""
    draw = random.Random(seed * 7919 + gpus)
    nodes = max(1, gpus // NODE_GPUS)
    leaf_nodes = next((size for most, size in ((2, 1), (16, 4), (256, 8), (2000, 16)) if nodes <= most), 32)
    kinds: list[str] = []
    leaves: list[int] = []
    free: list[tuple[int, ...]] = []
    deck: list[str] = []
    leaf = 0
    while len(kinds) * NODE_GPUS < gpus:
        if not deck:
            deck = [name for name, kind in GPUS.items() for _ in range(round(kind.share * 20))]
            draw.shuffle(deck)
        kind = deck.pop()
        for _ in range(min(leaf_nodes, -(-gpus // NODE_GPUS) - len(kinds))):
            taken = draw.choice([1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8]) if draw.random() < 2 * holes else 0
            kinds.append(kind)
            leaves.append(leaf)
            free.append(tuple(sorted(draw.sample(range(NODE_GPUS), NODE_GPUS - taken))))
        leaf += 1
    return Fleet(tuple(kinds), tuple(leaves), tuple(free))


@dataclass(frozen=True)
class Option:
    """One way to run one replica: GPU type, tensor parallel, stages, output tokens/s, time per token [us], communication of a step [us]."""

    kind: str
    tensor: int
    stages: int
    tokens: int
    step: float
    communication: float


def options(model: ModelKind, fp8: bool, context: int, target: int, kinds: list[str]) -> list[Option]:
    """Best batch within memory and target [us] on every type, tensor and pipeline degree; roofline steps, ring exchanges."""
    batch = np.unique(np.round(np.geomspace(1, 512, 40)).astype(int)).astype(float)
    weights = model.parameters * (1 if fp8 else 2)
    read_share, kv = model.weights_read(batch), model.kv_gigabytes()
    found = []
    for name in kinds:
        gpu = GPUS[name]
        if fp8 and not gpu.fp8:
            continue
        for tensor in SIZES:
            if model.heads % tensor or max(model.kv_heads, tensor) % min(model.kv_heads, tensor):
                continue
            kv_shards = 1 if model.kv_bytes else min(tensor, model.kv_heads)
            for stages in STAGES:
                if stages > 1 and tensor < 4:
                    continue
                own = weights / (tensor * stages)
                fits = own + batch * stages * context * kv / stages / kv_shards <= 0.9 * gpu.memory - 2
                read = (own * read_share + batch * context * kv / stages / kv_shards) / (gpu.bandwidth * 0.75) * 1e6
                compute = 2 * model.active * batch / (tensor * stages) / (gpu.teraflops * (2 if fp8 else 1) * 0.6) * 1e3
                exchange = np.zeros_like(batch)
                if tensor > 1:
                    ring = 2 * (tensor - 1) / tensor * batch * model.hidden * 2e-9 / gpu.scale_up * 1e6
                    exchange = 2 * model.layers / stages * (3 + 0.6 * math.log2(tensor) + ring)
                stage = np.maximum(read, compute) + exchange + 30
                hop = np.zeros_like(batch) if stages == 1 else NETWORK_ALPHA_US + batch * model.hidden * 2e-9 / NETWORK_GB_S * 1e6
                step = stages * stage + (stages - 1) * hop
                rate = np.where(fits & (step <= target), batch / (stage + hop) * 1e6, 0)
                best = int(rate.argmax())
                if rate[best] >= 1:
                    exchanged = float((stages * exchange + (stages - 1) * hop)[best])
                    found.append(Option(name, tensor, stages, int(rate[best]), float(step[best]), exchanged))
    return found


def instance(gpus: int, models: int, seed: int, filled: float = 0.75, holes: float = 0.12) -> Instance:
    """One question: `models` deployments with log-normal loads that need about `filled` of the free GPUs of `fleet(gpus, seed, holes)`."""
    where = fleet(gpus, seed, holes)
    draw = random.Random(seed * 104729 + gpus * 31 + models)
    kinds = sorted(set(where.kind))
    room = where.room()
    free = sum(room.values())
    weights = [draw.lognormvariate(0, 0.9) for _ in range(models)]
    rows: list[tuple[int, Option]] = []
    loads: list[int] = []
    for deployment, weight in enumerate(weights):
        wanted = filled * free * weight / sum(weights)
        found: list[Option] = []
        while not found or (gpus > 2 * NODE_GPUS and len({option.kind for option in found}) < min(2, len(kinds))):
            model = draw.choice(SMALL if wanted < 24 else MODELS)
            found = options(
                model, draw.random() < 0.4, draw.choice([1500, 3000, 6000, 12000]), draw.choice([15000, 25000, 40000, 60000]), kinds
            )
        best: dict[str, float] = {}
        for option in found:
            best[option.kind] = max(best.get(option.kind, 0.0), option.tokens / (option.tensor * option.stages))
        usable = max(1, sum(room[kind] for kind in best))
        loads.append(max(1, int(wanted * sum(rate * room[kind] for kind, rate in best.items()) / usable)))
        rows.extend((deployment, option) for option in found)
    return _instance(rows, loads, where)


def one_shape_each(question: Instance) -> Instance:
    """The same question where all replicas of a deployment must have the same shape."""
    return replace(question, limits=tuple(ReplicaLimits(one_shape=True) for _ in range(question.deployments)))


def surviving(question: Instance, keep: Fraction, kind: str = "leaf") -> Instance:
    """The same question where every deployment survives the loss of any one leaf (or node), and replicas of several groups stay inside a leaf."""
    pools, first = [], 0
    for pool in question.pools:
        nodes = tuple((first + node,) for node in range(len(pool)))
        first += len(pool)
        pools.append(replace(pool, domains={"leaf": tuple((leaf,) for leaf in pool.leaf.tolist()), "node": nodes}))
    container = np.where(question.shapes.groups > 1, int(Container.LEAF), int(Container.ANYWHERE))
    rule = DeploymentRules(resilience=Resilience(kind, keep))
    return replace(question, pools=tuple(pools), shapes=replace(question.shapes, container=container), rules=(rule,) * question.deployments)


def _instance(rows: list[tuple[int, Option]], loads: list[int], where: Fleet) -> Instance:
    def column(values: list[int]) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    chosen = [option for _, option in rows]
    deployment, pool = column([number for number, _ in rows]), column([POOLS.index(option.kind) for option in chosen])
    capacity, steps = column([option.tokens for option in chosen]), column([round(option.step * 1e3) for option in chosen])
    gpus = column([option.tensor * option.stages for option in chosen])
    price = gpus * column([GPUS[option.kind].cents * 10**4 for option in chosen])
    return Instance(
        shapes=ShapeColumns(
            deployment=deployment,
            pool=pool,
            size=column([option.tensor for option in chosen]),
            groups=column([option.stages for option in chosen]),
            container=np.full(len(rows), int(Container.ANYWHERE)),
            within_part=np.zeros(len(rows), dtype=bool),
            capacity=capacity,
            share=column([option.tokens * 10**6 // loads[deployment] for deployment, option in rows]),
            price=price,
            comm=column([round(option.communication * 1e3) for option in chosen]),
            tpot=steps,
            ttft=column([10**9] * len(rows)),
            form=np.arange(len(rows), dtype=np.int64),
            # A replica with room for half as much again answers about a sixth faster; room for one more load is twice that.
            token_time=token_times(TimedShapes(deployment, pool, gpus, price, capacity, steps, steps // 3), column(loads), {}),
        ),
        loads=column(loads),
        pools=tuple(_pool(where, name) for name in POOLS),
        limits=tuple(ReplicaLimits() for _ in loads),
        source=np.arange(len(rows), dtype=np.int64),
    )


def _pool(where: Fleet, name: str) -> PoolScopes:
    own = [node for node, kind in enumerate(where.kind) if kind == name]
    leaf = np.array([where.leaf[node] for node in own], dtype=np.int64)
    return PoolScopes(
        free=np.array([len(where.free[node]) for node in own], dtype=np.int64),
        capacity=np.full(len(own), NODE_GPUS, dtype=np.int64),
        leaf=leaf,
        spine=leaf // 16,
        fabric=np.zeros(len(own), dtype=np.int64),
        order=np.arange(len(own), dtype=np.int64),
        parts=(),
        nodes=(),
    )
