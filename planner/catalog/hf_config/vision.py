"""The image encoder that comes with a multimodal checkpoint."""

from __future__ import annotations

from planner.catalog.architecture import VisionTower
from planner.catalog.hf_config.fields import Fields


def read_vision(outer: Fields) -> VisionTower | None:
    """Read the vision tower, None for a text-only model.

    Parameters are counted where depth and both widths are given: depth x (4 d^2 + m d f) with m = 3 matrices in a gated MLP, 2 else. Patch embedding and
    the projector into the language model are left out (a few per cent), and the note says so.
    """
    if not outer.has("vision_config"):
        return VisionTower(heads=None, parameters=None) if outer.config.get("has_vision_config") is True else None
    part = outer.nested("vision_config")
    if part is None:
        return None
    heads = part.check("num_heads", "num_attention_heads", "vt_num_attention_heads", maximum=65_536)
    depth = part.check("depth", "num_hidden_layers", "vt_num_hidden_layers", "num_layers", maximum=4096)
    width = part.check("hidden_size", "embed_dim", "vt_hidden_size", "width")
    inner = part.check("intermediate_size", "vt_intermediate_size", "mlp_dim")
    if depth is None or width is None or inner is None:
        outer.note("the vision tower's size is not in the config: its weights are not counted")
        return VisionTower(heads=heads, parameters=None)
    gated = part.text("hidden_act") in {"silu", "swiglu"}
    outer.note("vision tower: encoder blocks counted, patch embedding and projector not")
    return VisionTower(heads=heads, parameters=depth * (4 * width * width + (3 if gated else 2) * width * inner))
