"""Finds the language model inside the config of a multimodal one."""

from __future__ import annotations

from planner.catalog.hf_config.fields import Fields

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
# Said for the whole checkpoint, beside the nested config rather than inside it.
_OF_THE_WHOLE = ("torch_dtype", "dtype", "quantization_config", "compression_config", "hf_quant_config", "architectures")


def text_part(outer: Fields) -> Fields:
    """Give the fields of the language model: the config itself, or the nested one with what is said for the whole checkpoint."""
    inner = outer.nested(*_NESTED)
    if inner is None:
        return outer if not outer.has("attn_config", "ffn_config") else _flattened(outer)
    deeper = inner.nested("text_config")
    if deeper is not None:
        inner = deeper
    shared = {key: outer.config[key] for key in _OF_THE_WHOLE if outer.config.get(key) is not None}
    own = {key: value for key, value in inner.config.items() if value is not None}
    merged = Fields({**shared, **own}, "", outer)
    merged.path = "" if inner is outer else inner.path
    return merged


def _flattened(outer: Fields) -> Fields:
    """Lift the nested attention and MLP settings of MPT-style configs beside the others."""
    lifted = dict(outer.config)
    for name in ("attn_config", "ffn_config"):
        part = outer.nested(name)
        if part is not None:
            lifted = {**{key: value for key, value in part.config.items() if key not in lifted}, **lifted}
    return Fields(lifted, "", outer)
