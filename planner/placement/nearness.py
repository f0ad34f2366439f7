"""Ranks placed further apart than they need be: off the NVLink pairs, stages on far nodes, experts over several NVLink domains, uneven nodes.

Where distance is a price and no fault, the price is named: what a step costs as placed, less what it costs at the same degrees placed close.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from planner.cost.setting import IntArray
from planner.diagnostics import Diagnostic, Severity
from planner.placement.distances import Distances, known, parts
from planner.placement.figures import Replica
from planner.placement.gpu_words import gpus_of_node
from planner.placement.proposal import ProposedGpu, warning
from planner.topology.fabric import Fabric, GpuId
from planner.topology.inventory import FREE
from planner.topology.pools import Pool

MOST_ORDER = 16  # GPUs of a proposed order that are written out


def price_words(replica: Replica, batch: int, closer: Distances) -> str:
    """What the distance costs a step, at the batch it runs at: `costs 3.1 ms a step (41.2 instead of 38.1)`."""
    if not replica.sound or batch < 1:
        return "its price is not known"
    placed, near = replica.times([batch]), replica.times([batch], closer)
    now, then = float(placed.tpot[0]), float(near.tpot[0])
    first = float(placed.ttft[0] - near.ttft[0])
    words = (
        f"costs {(now - then) * 1e3:.1f} ms a step ({now * 1e3:.1f} instead of {then * 1e3:.1f})"
        if now - then > 5e-5
        else "makes a step no slower"
    )
    if first <= 5e-4:
        return words
    return f"{words} and {'' if now - then > 5e-5 else 'costs '}{first * 1e3:.0f} ms of the first token"


def pair_findings(fabric: Fabric, replica: Replica, gpus: Sequence[ProposedGpu], batch: int) -> Iterator[Diagnostic]:
    """Warn of TP groups that fit the NVLink pairs (or meshes) of a host and are not placed in them."""
    wiring, pool = replica.pool.wiring, replica.pool
    tensor = replica.degrees.tensor_parallel
    asked = replica.running.loaded.problem.deployments[replica.running.index].require_nvlink
    if wiring.level is None or asked or not 2 <= tensor <= max(map(len, wiring.groups)):
        return
    labels = wiring.group_labels()
    apart = []
    for group in parts(gpus, tensor):
        here = known(fabric, group)
        on_one = len(here) == tensor and len({gpu.node for gpu in here}) == 1 and fabric.pool(here[0].node).index == pool.index
        if on_one and len({labels[gpu.gpu] for gpu in here}) > 1:
            apart.append(here)
    if not apart:
        return
    level = pool.levels.index(wiring.level)
    price = price_words(replica, batch, replica.distances.nearer(tensor=level, stage=level if replica.degrees.data_parallel == 1 else None))
    named = ", ".join(f"{group[0].node}:[{','.join(str(gpu.gpu) for gpu in group)}]" for group in apart[:3])
    message = (
        f"{len(apart)} of its TP groups {'lie' if len(apart) > 1 else 'lies'} across the NVLink {wiring.level}s ({named}), which {price}"
    )
    yield warning("NVLINK_PAIRS_SPLIT", message, _order(fabric, pool, gpus, tensor))


def _order(fabric: Fabric, pool: Pool, gpus: Sequence[ProposedGpu], tensor: int) -> str:
    """Order of the same GPUs that fills the pairs, or the pairs to take where the same GPUs cannot."""
    words = []
    for node in dict.fromkeys(gpu.node for gpu in gpus):
        used = {gpu.gpu for gpu in gpus if gpu.node == node}
        if not gpus_of_node(fabric, node) or fabric.pool(node).index != pool.index:
            continue
        whole = [group for group in pool.wiring.groups if used.issuperset(group) and len(group) % tensor == 0]
        order = [gpu for group in whole for gpu in group]
        if len(order) == len(used):
            words.append(f"order the GPUs of {node} as {','.join(map(str, order[:MOST_ORDER]))}")
        else:
            choices = " ".join(str(list(group)) for group in pool.wiring.groups[:8])
            words.append(f"take whole pairs of {node}: {choices}")
    return "; ".join(words[:4]) or "give each TP group one pair"


def stage_findings(fabric: Fabric, replica: Replica, gpus: Sequence[ProposedGpu], batch: int, unused: IntArray) -> Iterator[Diagnostic]:
    """Warn of a replica whose parts are joined at a wider level than free GPUs nearer together would need; `unused` is as `unused_gpus` gives it."""
    pool, degrees = replica.pool, replica.degrees
    scale_up = pool.levels.index(pool.scale_up_level)
    if replica.distances.replica <= scale_up or replica.distances.tensor_scopes > 1 or len(gpus) != degrees.gpus:
        return
    better = nearest_level(fabric, pool, degrees.stage_gpus, degrees.gpus, unused + _by_scope(fabric, known(fabric, gpus)))
    if better is None or better >= replica.distances.replica:
        return
    stage = scale_up if degrees.stage_gpus <= pool.scope_size else better
    scopes = 1 if degrees.stage_gpus <= pool.scope_size else replica.distances.stage_scopes
    price = price_words(replica, batch, replica.distances.nearer(replica=better, stage=stage, scopes=scopes))
    apart = "its network" if replica.distances.apart else pool.levels[replica.distances.replica]
    message = f"its parts meet only at level {apart}, free GPUs within one {pool.levels[better]} would do, which {price}"
    yield warning("STAGES_FAR_APART", message, f"move it to GPUs of one {pool.levels[better]}")


def _by_scope(fabric: Fabric, gpus: Iterable[GpuId]) -> IntArray:
    """Free GPUs among `gpus` by scale-up scope [scopes]; taken and failed ones are of no use to anybody."""
    inventory = fabric.inventory
    distinct = set(gpus)
    rows = {node: fabric.row(node) for node, _ in distinct}
    free = [rows[node] for node, gpu in distinct if int(inventory.state[int(inventory.first_gpu[rows[node]]) + gpu]) == FREE]
    return np.bincount(inventory.scope[free], minlength=len(fabric.scopes)).astype(np.int64)


def unused_gpus(fabric: Fabric, placed: Iterable[GpuId]) -> IntArray:
    """Free GPUs that a placement leaves unused, by scale-up scope [scopes]."""
    return np.asarray(fabric.scopes.free - _by_scope(fabric, placed), dtype=np.int64)


def nearest_level(fabric: Fabric, pool: Pool, stage: int, gpus: int, unused: IntArray) -> int | None:
    """Smallest level (index into the pool's) at which unused GPUs [scopes] hold whole stages for `gpus`; None where none does."""
    table = fabric.scopes
    in_scope = np.where(table.pool == pool.index, unused, 0)
    if stage <= pool.scope_size:
        in_scope -= in_scope % stage
    scale_up = pool.levels.index(pool.scale_up_level)
    if int(in_scope.max(initial=0)) >= gpus:
        return scale_up
    for index in range(scale_up + 1, len(pool.levels)):
        labels = getattr(table, pool.levels[index])
        if int(np.bincount(labels, weights=in_scope).max(initial=0)) >= gpus:
            return index
    return None


def expert_findings(fabric: Fabric, replica: Replica, batch: int) -> Iterator[Diagnostic]:
    """Experts spread over several NVLink domains: a price, or a fault where one multi-node domain would hold them (NVIDIA-NeMo/RL issue 2986)."""
    degrees, pool, scopes = replica.degrees, replica.pool, replica.distances.stage_scopes
    if degrees.expert_parallel < 2 or scopes < 2:
        return
    scale_up = pool.levels.index(pool.scale_up_level)
    closer = replica.distances.nearer(
        tensor=scale_up, stage=scale_up, replica=scale_up if degrees.pipeline_parallel == 1 else None, scopes=1
    )
    price = price_words(replica, batch, closer)
    message = (
        f"EP {degrees.expert_parallel} spans {scopes} NVLink domains (one holds {pool.scope_size} GPUs), which {price} against one domain"
    )
    free = int(fabric.scopes.free[fabric.scopes.pool == pool.index].max(initial=0))
    asked = replica.running.loaded.problem.deployments[replica.running.index].require_nvlink
    racks = pool.scope_size > pool.gpus_per_node
    refused = asked or (racks and degrees.stage_gpus <= free)
    hint = f"place its {degrees.stage_gpus} GPUs within one domain" if degrees.stage_gpus <= free else "choose an EP that one domain holds"
    yield Diagnostic("CROSS_NVLINK_DOMAIN_EP", message, hint, Severity.ERROR if refused else Severity.WARNING)


def node_findings(replica: Replica, gpus: Sequence[ProposedGpu]) -> Iterator[Diagnostic]:
    """Ranks spread unevenly over nodes: a fault inside a TP group, else a warning for launchers that start as many ranks on every node."""
    tensor = replica.degrees.tensor_parallel
    for group in parts(gpus, tensor):
        counts = Counter(gpu.node for gpu in group)
        if len(counts) > 1 and len(set(counts.values())) > 1:
            words = " + ".join(str(count) for count in counts.values())
            message = f"TP {tensor} lies over {len(counts)} nodes as {words} ranks: engines start as many on every node"
            yield Diagnostic("UNEVEN_NODES", message, "choose a TP that divides over the nodes, or one that a node holds")
            return
    counts = Counter(gpu.node for gpu in gpus)
    if len(set(counts.values())) > 1:
        words = " + ".join(str(count) for count in list(counts.values())[:8])
        message = f"the replica has {words} ranks on its nodes; launchers that start as many on every node cannot run it"
        yield warning("UNEVEN_NODES", message, "use as many GPUs of every node, or a launcher that takes a list of hosts")
