"""State slots of hybrid models: attention and recurrent layers share one pool of pages of equal size.

Layers are grouped so that every group has as many layers as the rarer sort has; a page holds one sequence's state of one layer, rounded up to whole
blocks of attention tokens, and a slot is a page in each layer of a group:

    slots = room / (layers per group x page)
"""

from __future__ import annotations

import numpy as np

from planner.catalog.engines import Engine
from planner.cost.memory_kv import state_bytes, token_bytes
from planner.cost.setting import Setting


def state_slots(setting: Setting, engine: Engine, tensor_parallel: int, pipeline_parallel: int, room: float) -> int | None:
    """Slots that `room` [B] on one rank holds; None for a model without recurrent layers.

    An engine of this design refuses to start with more running sequences than that (vllm-project/vllm issue 49064).
    """
    architecture = setting.architecture
    t = np.array([tensor_parallel])
    recurrent = attending = 0
    page = token = 0.0
    for kind, count in architecture.kind_counts():
        if kind.recurrent is not None:
            recurrent += count
            page = max(page, float(state_bytes(kind, architecture, t)[0]))
        if kind.attention is not None:
            attending += count
            token = max(token, float(token_bytes(kind.attention, setting.precision, t)[0]))
    if not recurrent:
        return None
    block = token * max(engine.block_size, 16)
    if block:
        page = float(np.ceil(page / block)) * block
    group = -(-(min(recurrent, attending) or recurrent) // pipeline_parallel)
    return max(int(room // (group * page)), 0)
