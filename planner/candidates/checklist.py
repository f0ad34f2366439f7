"""The ten steps that people take on paper before they trust a layout, each with its figures and a verdict.

The steps and the thresholds (overhead above 30 %, efficiency below 70 %) are those of the alpha-beta calculator notes.
"""

from __future__ import annotations

from typing import Literal

from planner.candidates.settings import PoolSetting
from planner.catalog.dtypes import bytes_per_element
from planner.cost.setting import Setting
from planner.plan.document import CheckDocument
from planner.plan.shape import Shape
from planner.topology.paths import LinkPath

OVERHEAD_LIMIT = 0.30
EFFICIENCY_LIMIT = 0.70
GIB = 2.0**30
Verdict = Literal["ok", "warn", "fail", "info"]


def checklist(name: str, context: PoolSetting, shape: Shape) -> tuple[CheckDocument, ...]:
    """The ten steps for one shape of the deployment `name`."""
    setting = context.setting
    degrees, times, memory = shape.degrees, shape.times, shape.memory
    tensor, pipeline = degrees.tensor_parallel, degrees.pipeline_parallel
    path = _tensor_path(context, shape)
    steps: list[tuple[str, str, Verdict]] = []
    weights = memory.weights / GIB
    steps.append(("weights and compute", f"{weights:.1f} GiB of weights a GPU, {times.compute * 1e3:.1f} ms compute a step", "info"))
    steps.append(("volume and hops", _volume_words(setting, shape), "info"))
    steps.append(("alpha and beta", _link_words(path, setting, tensor), "info"))
    comm = times.tp_comm + times.pp_comm + times.ep_comm
    parts = f"TP {times.tp_comm * 1e3:.2f} + PP {times.pp_comm * 1e3:.2f} + EP {times.ep_comm * 1e3:.2f} = {comm * 1e3:.2f} ms a step"
    steps.append(("communication", parts, "info"))
    above = times.overhead > OVERHEAD_LIMIT
    sign = ">" if above else "<="
    steps.append(("overhead", f"{times.overhead:.0%} of the compute time", "info"))
    steps.append(("overhead limit", f"{times.overhead:.0%} {sign} 30 %" + (": reconsider" if above else ""), "warn" if above else "ok"))
    steps.append(_kv_heads_step(setting, tensor))
    steps.append(_domain_step(context, shape))
    low = times.efficiency < EFFICIENCY_LIMIT
    words = f"{times.efficiency:.0%} {'<' if low else '>='} 70 %"
    if low and tensor > 1:
        words += ": a smaller degree with more replicas uses the GPUs better"
    steps.append(("efficiency", words, "warn" if low else "ok"))
    if pipeline > 1:
        steps.append(("pipeline bubble", f"{times.bubble:.1%} with {pipeline} stages", "ok" if times.bubble <= OVERHEAD_LIMIT else "warn"))
    else:
        steps.append(("pipeline bubble", "none: one stage", "ok"))
    return tuple(
        CheckDocument(deployment=name, step=number, name=title, message=message, verdict=verdict)
        for number, (title, message, verdict) in enumerate(steps, start=1)
    )


def _tensor_path(context: PoolSetting, shape: Shape) -> LinkPath | None:
    """Link that joins one TP group: the group's own level, since a group never leaves its scale-up scope."""
    if shape.degrees.tensor_parallel == 1:
        return None
    return next(path for path in context.setting.paths if path.level == shape.group_level)


def _volume_words(setting: Setting, shape: Shape) -> str:
    """Message and number of the all-reduces of one decode step, and the hops of a ring over them."""
    tensor = shape.degrees.tensor_parallel
    if tensor == 1:
        return "no all-reduce: one GPU a stage"
    layers = setting.architecture.layers
    sequences = -(-shape.batch // shape.degrees.data_parallel)
    message = sequences * setting.architecture.hidden_size * bytes_per_element(setting.precision.activations)
    count = 2 * layers
    volume = count * 2 * (tensor - 1) / tensor * message
    return f"{count} all-reduces of {message / 1024:.0f} KiB, {volume / 1e6:.0f} MB a step by ring, {count * 2 * (tensor - 1)} hops"


def _link_words(path: LinkPath | None, setting: Setting, tensor: int) -> str:
    if path is None or tensor == 1:
        return "nothing crosses a link inside a stage"
    alpha = path.link.hockney_alpha if setting.profile == "hockney" else path.link.calibrated_alpha
    return (
        f"{path.link.name} at level {path.level}: alpha {alpha.value * 1e6:.1f} us ({alpha.basis}), {path.bandwidth / 1e9:.0f} GB/s a GPU"
    )


def _kv_heads_step(setting: Setting, tensor: int) -> tuple[str, str, Verdict]:
    """Step 7: whether the kv heads divide, or are replicated at the cost of memory."""
    heads = sorted({kind.attention.kv_heads for kind in setting.architecture.layer_kinds if kind.attention is not None})
    if not heads:
        return ("kv heads", "no attention layers", "ok")
    if any(kind.attention is not None and kind.attention.kv_lora_rank for kind in setting.architecture.layer_kinds):
        return ("kv heads", f"latent attention: the KV cache is whole on each of {tensor} ranks", "ok" if tensor == 1 else "warn")
    words = []
    verdict: Verdict = "ok"
    for count in heads:
        if count % tensor == 0:
            words.append(f"{count} / TP {tensor} = {count // tensor}")
        elif tensor % count == 0:
            words.append(f"{count} on TP {tensor}: each kept {tensor // count} times, which costs memory")
            verdict = "warn"
        else:
            words.append(f"{count} / TP {tensor} leaves {count % tensor}")
            verdict = "fail"
    return ("kv heads", ", ".join(words), verdict)


def _domain_step(context: PoolSetting, shape: Shape) -> tuple[str, str, Verdict]:
    """Step 8: whether the TP group lies inside one NVLink domain."""
    tensor = shape.degrees.tensor_parallel
    if tensor == 1:
        return ("one domain", "TP 1 needs no link", "ok")
    path = _tensor_path(context, shape)
    assert path is not None
    scale_up = path.link.kind in ("nvlink", "xgmi", "ici")
    where = f"TP {tensor} inside one {shape.group_level} of {context.pool.scope_size} GPUs over {path.link.kind}"
    return ("one domain", where, "ok" if scale_up else "warn")
