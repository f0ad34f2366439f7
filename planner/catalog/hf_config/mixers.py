"""Which token mixer each layer has: full, sliding, chunked or recurrent, by whatever the family uses to say so."""

from __future__ import annotations

from collections import Counter

from planner.catalog.hf_config.families import Family
from planner.catalog.hf_config.fields import Fields

FULL, SLIDING, CHUNKED, CROSS, RECURRENT, EXPERTS, MLP = "full", "sliding", "chunked", "cross", "recurrent", "experts", "mlp"

_NAMES = {
    "full_attention": FULL,
    "attention": FULL,
    "global_attention": FULL,
    "deepseek_sparse_attention": FULL,
    "hybrid_full_attention": FULL,
    "sliding_attention": SLIDING,
    "sliding_window_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": RECURRENT,
    "mamba": RECURRENT,
    "mamba2": RECURRENT,
    "moe": EXPERTS,
    "mlp": MLP,
}
_LETTERS = {"M": RECURRENT, "*": FULL, "E": EXPERTS, "-": MLP}


def window_size(fields: Fields) -> int | None:
    """Read the sliding window [tokens]; 0, -1 and null mean none."""
    name, value = fields.raw("sliding_window", "sliding_window_size")
    if value in (0, -1) and not isinstance(value, bool):
        return None
    return fields.check(name)


def mixers(fields: Fields, family: Family, model_type: str, layers: int) -> list[str]:
    """Name the mixer of every layer, first to last."""
    if family.mixer == "nemotron_h" or fields.has("hybrid_override_pattern", "layers_block_type"):
        return _blocks(fields, layers)
    if family.mixer == "mamba2":
        return [RECURRENT] * layers
    if family.mixer == "jamba":
        period, offset = fields.get("attn_layer_period", default=8), fields.get("attn_layer_offset", default=4, minimum=0)
        return [FULL if index % period == offset else RECURRENT for index in range(layers)]
    if family.mixer == "kimi_linear":
        return _kimi(fields, layers)
    if family.mixer == "hybrid":
        return _hybrid(fields, layers)
    if family.mixer == "cross":
        return _cross(fields, layers)
    names = fields.strings("layer_types")
    found = _named(names, fields, layers) if names is not None else _by_rule(fields, family, model_type, layers)
    _agree(found, fields)
    return found


def _named(names: list[str], fields: Fields, layers: int) -> list[str]:
    extra = fields.check("num_nextn_predict_layers", minimum=0) or 0
    if len(names) not in {layers, layers + extra}:
        fields.clash("layer_types", f"has {len(names)} items for {layers} layers", "num_hidden_layers")
    strange = sorted({name for name in names if name not in _NAMES})
    if strange:
        fields.unknown("layer_types", f"holds kinds of layer that are not modelled: {', '.join(strange[:5])}")
    kinds = [_NAMES.get(name, FULL) for name in names[:layers]]
    return kinds + [FULL] * (layers - len(kinds))


def _by_rule(fields: Fields, family: Family, model_type: str, layers: int) -> list[str]:
    if model_type.startswith("mimo_v2"):
        pattern = fields.numbers("hybrid_layer_pattern")
        if pattern is None or len(pattern) < layers:
            fields.lack("hybrid_layer_pattern")
            return [FULL] * layers
        return [SLIDING if number else FULL for number in pattern[:layers]]
    if model_type.startswith("step3p"):
        fields.lack("layer_types")
        return [FULL] * layers
    if family.mixer == "gated_delta":
        interval = fields.get("full_attention_interval", default=4)
        return [FULL if (index + 1) % interval == 0 else RECURRENT for index in range(layers)]
    if family.window == "chunked":
        return _llama4(fields, layers)
    if family.window == "none" or window_size(fields) is None:
        return [FULL] * layers
    if family.window == "all":
        return [SLIDING] * layers
    if family.window == "qwen":
        if not fields.flag("use_sliding_window", default=False):
            return [FULL] * layers
        first = fields.get("max_window_layers", default=layers, minimum=0)
        return [SLIDING if index >= first else FULL for index in range(layers)]
    if family.window == "alternate":
        fields.note("layer_types absent: sliding and full layers alternate, the default of the modelling code")
        return [FULL if index % 2 else SLIDING for index in range(layers)]
    every = fields.get("sliding_window_pattern", "_sliding_window_pattern", default=int(family.window.partition(":")[2]))
    kinds = [FULL if (index + 1) % every == 0 else SLIDING for index in range(layers)]
    if model_type.startswith("gemma4") and kinds:
        kinds[-1] = FULL  # Gemma4TextConfig makes the last layer a full one whatever the period
    return kinds


def _llama4(fields: Fields, layers: int) -> list[str]:
    """Llama-4: layers without rotary positions see everything, the others their chunk; a list of 1 (rotary) and 0, or every fourth."""
    if fields.check("attention_chunk_size") is None:
        return [FULL] * layers
    rotary = fields.numbers("no_rope_layers")
    if rotary and len(rotary) >= layers:
        return [CHUNKED if number else FULL for number in rotary[:layers]]
    every = fields.get("no_rope_layer_interval", default=4)
    return [FULL if (index + 1) % every == 0 else CHUNKED for index in range(layers)]


def _blocks(fields: Fields, layers: int) -> list[str]:
    """Nemotron-H: one letter or name a layer, and each layer is one block only."""
    pattern = fields.text("hybrid_override_pattern")
    names = fields.strings("layers_block_type")
    if pattern is not None:
        kinds = [_LETTERS.get(letter, "") for letter in pattern]
        name = "hybrid_override_pattern"
    elif names is not None:
        kinds = [_NAMES.get(block, "") for block in names]
        name = "layers_block_type"
    else:
        fields.lack("hybrid_override_pattern")
        return [MLP] * layers
    if len(kinds) != layers:
        fields.clash(name, f"describes {len(kinds)} layers, num_hidden_layers says {layers}", "num_hidden_layers")
    if "" in kinds:
        fields.unknown(name, "holds a kind of block that is not modelled", "known: M, *, E, -")
    kinds = [kind or MLP for kind in kinds[:layers]]
    return kinds + [MLP] * (layers - len(kinds))


def _hybrid(fields: Fields, layers: int) -> list[str]:
    """Granite-4 and Bamba: Mamba-2 beside attention, each layer with a feed-forward part of its own."""
    names = fields.strings("layer_types", "layers_block_type")
    if names is not None:
        return _named(names, fields, layers)
    indices = fields.numbers("attn_layer_indices")
    if indices is None:
        fields.lack("layer_types")
        return [FULL] * layers
    return [FULL if index in set(indices) else RECURRENT for index in range(layers)]


def _cross(fields: Fields, layers: int) -> list[str]:
    """Llama-3.2-Vision: numbers of the layers that attend to the image instead of the text, counted from 0."""
    chosen = fields.numbers("cross_attention_layers")
    if chosen is None:
        fields.lack("cross_attention_layers")
        return [FULL] * layers
    if not set(chosen) <= set(range(layers)):
        fields.clash("cross_attention_layers", f"names layers beyond the {layers} there are", "num_hidden_layers")
    return [CROSS if index in set(chosen) else FULL for index in range(layers)]


def _kimi(fields: Fields, layers: int) -> list[str]:
    """Kimi Linear: lists of layers counted from 1."""
    linear = fields.nested("linear_attn_config")
    if linear is None:
        fields.lack("linear_attn_config")
        return [FULL] * layers
    full = linear.numbers("full_attn_layers")
    delta = linear.numbers("kda_layers")
    if full is None or delta is None:
        linear.lack(*(name for name, value in (("full_attn_layers", full), ("kda_layers", delta)) if value is None))
        return [FULL] * layers
    if sorted([*full, *delta]) != list(range(1, layers + 1)):
        linear.refuse("full_attn_layers", f"and kda_layers together do not name each of the {layers} layers once, counted from 1")
    chosen = set(full)
    return [FULL if index + 1 in chosen else RECURRENT for index in range(layers)]


def _agree(found: list[str], fields: Fields) -> None:
    """Compare with an abridged config's counts of layer types: the family's rule must give the same, or the order is not known."""
    counts = fields.config.get("layer_types_counts")
    if not isinstance(counts, dict) or fields.has("layer_types"):
        return
    told: Counter[str] = Counter()
    for name, count in counts.items():
        told[_NAMES.get(str(name), str(name))] += count if isinstance(count, int) else 0
    if Counter(found) != told:
        fields.lack("layer_types")
