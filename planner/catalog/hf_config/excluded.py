"""Which families of tensors a quantized checkpoint leaves in the model's own dtype, from its list of excluded modules.

The lists name modules (`lm_head`), patterns (`re:.*self_attn.*`, `*mlp.gate`) or single layers (`model.layers.0.mlp`): a pattern keeps the family in all layers, a
single layer in that one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from planner.catalog.hf_config.fields import Fields

ALWAYS = ("embedding", "head", "router", "norm")

_PROJECTION = re.compile(r"(q|k|v|o|qkv|q_a|q_b|kv_a|kv_b|out|in)_proj|fused_qkv|weights_proj|indexer")
_RULES = (
    ("head", re.compile(r"lm_head|output_layer|embed_out")),
    ("embedding", re.compile(r"embed")),
    ("", re.compile(r"vis(ual|ion)|mm_projector|multi_modal|audio|mtp|nextn|eh_proj|tower")),
    ("router", re.compile(r"(router|gate)(\.weight|\.linear)?\*?$|shared_expert_gate|block_sparse_moe\.gate")),
    ("shared_expert", re.compile(r"shared_expert")),
    ("expert", re.compile(r"experts")),
    ("recurrent", re.compile(r"linear_attn|mamba|conv1d|ssm|mixer\.(in|out)_proj")),
    ("attention", re.compile(r"attn|attention|mixer\.[qkvo]_proj")),
    ("mlp", re.compile(r"mlp|feed_forward|ffn|routed_expert_")),
    ("norm", re.compile(r"norm")),
)
_LAYER = re.compile(r"layers[._](\d+)")


def family_of(module: str) -> str:
    """Name the tensor family that a module name or pattern stands for, empty where it is none of the language model's."""
    text = module.removeprefix("re:").replace("\\", "").rstrip("$").lower()
    for family, pattern in _RULES:
        if pattern.search(text):
            return family
    return ""


def kept_in_layers(modules: Iterable[str], layers: int) -> dict[int, tuple[str, ...]]:
    """Families that single layers keep in the model's own dtype, by the number of the layer; those kept in all layers are left out."""
    everywhere = set(kept_high(modules, layers, Fields({})))
    found: defaultdict[int, set[str]] = defaultdict(set)
    for family, chosen in _single_layers(modules).items():
        for index in chosen if family not in everywhere else ():
            if index < layers:
                found[index].add(family)
    return {index: tuple(sorted(families)) for index, families in found.items()}


def _single_layers(modules: Iterable[str]) -> dict[str, set[int]]:
    """Numbers of the layers that are named one by one, by family."""
    single: defaultdict[str, set[int]] = defaultdict(set)
    for module in modules:
        family, number = family_of(module), _LAYER.search(module)
        if family and family not in ALWAYS and number is not None and len(number.group(1)) < 8 and not _is_part(family, module):
            single[family].add(int(number.group(1)))
    return single


def _is_part(family: str, module: str) -> bool:
    """Tell whether a module is one of several projections of an attention, not all of it."""
    return family == "attention" and _PROJECTION.search(module) is not None and "self_attn.*" not in module


def kept_high(modules: Iterable[str], layers: int, fields: Fields) -> tuple[str, ...]:
    """List the families left unquantized in all layers, those that always are first."""
    modules = tuple(modules)
    everywhere: set[str] = set(ALWAYS)
    for module in modules:
        family = family_of(module)
        if not family or family in ALWAYS:
            continue
        if _is_part(family, module):
            fields.note("some attention projections are excluded from quantization; counted as quantized")
        elif _LAYER.search(module) is None:
            everywhere.add(family)
    for family, chosen in _single_layers(modules).items():
        inside = sum(1 for index in chosen if index < layers)
        if family in everywhere or not inside:
            continue
        if inside == layers:
            everywhere.add(family)
        fields.note(f"{family} tensors of {inside} of {layers} layers are excluded from quantization")
    return (*ALWAYS, *sorted(everywhere - set(ALWAYS)))
