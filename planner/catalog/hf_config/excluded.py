"""Which families of tensors a quantized checkpoint leaves in the model's own dtype, from its list of excluded modules.

The lists name modules (`lm_head`), patterns (`re:.*self_attn.*`, `*mlp.gate`) or single layers (`model.layers.0.mlp`). Memory is counted by family, so a
list is read as: a pattern for all layers, or single layers that make up at least half of them, keeps the family; less is told as a note.
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
    ("mlp", re.compile(r"mlp|feed_forward|ffn")),
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


def kept_high(modules: Iterable[str], layers: int, fields: Fields) -> tuple[str, ...]:
    """List the families left unquantized, those that always are first."""
    everywhere: set[str] = set(ALWAYS)
    single: defaultdict[str, set[int]] = defaultdict(set)
    for module in modules:
        family = family_of(module)
        if not family or family in ALWAYS:
            continue
        if family == "attention" and _PROJECTION.search(module) and "self_attn.*" not in module:
            fields.note("some attention projections are excluded from quantization; counted as quantized")
            continue
        number = _LAYER.search(module)
        if number is None:
            everywhere.add(family)
        elif len(number.group(1)) < 8:
            single[family].add(int(number.group(1)))
    for family, chosen in single.items():
        inside = sum(1 for index in chosen if index < layers)
        if family in everywhere or not inside:
            continue
        if 2 * inside >= layers:
            everywhere.add(family)
        fields.note(
            f"{family} tensors of {inside} of {layers} layers are excluded from quantization; counted as {'all' if 2 * inside >= layers else 'none'}"
        )
    return (*ALWAYS, *sorted(everywhere - set(ALWAYS)))
