"""The image encoder that comes with a multimodal checkpoint."""

from __future__ import annotations

from planner.catalog.architecture import VisionTower
from planner.catalog.hf_config.fields import Fields


def image_tokens(outer: Fields) -> int:
    """Read how many tokens one image gives to cross-attention: every tile (image_size / patch_size)^2 patches and one token of the whole [tokens]."""
    part = outer.nested("vision_config")
    if part is None:
        outer.lack("vision_config")
        return 1
    size, patch = part.need("image_size", maximum=65_536), part.need("patch_size", maximum=65_536)
    tiles = part.get("max_num_tiles", default=4, maximum=1024)
    if size < patch:
        part.clash("patch_size", f"({patch}) is larger than image_size {size}", "image_size")
    return tiles * ((size // patch) ** 2 + 1)


def read_vision(outer: Fields) -> VisionTower | None:
    """Read the vision tower, None for a text-only model.

    Parameters are counted where depth and both widths are given, layers over all tiles of an image included: depth x (4 d^2 + m d f) with m = 3 matrices in a gated MLP, 2 else. Patch embedding and
    the projector into the language model are left out (a few per cent), and the note says so.
    """
    if not outer.has("vision_config"):
        return VisionTower(heads=None, parameters=None) if outer.config.get("has_vision_config") is True else None
    part = outer.nested("vision_config")
    if part is None:
        return None
    heads = part.check("num_heads", "num_attention_heads", "vt_num_attention_heads", "attention_heads", maximum=65_536)
    depth = part.check("depth", "num_hidden_layers", "vt_num_hidden_layers", "num_layers", maximum=4096)
    width = part.check("hidden_size", "embed_dim", "vt_hidden_size", "width")
    inner = part.check("intermediate_size", "vt_intermediate_size", "mlp_dim")
    above = part.check("num_global_layers", minimum=0, maximum=4096) or 0
    if depth is None or width is None or inner is None:
        outer.note("the vision tower's size is not in the config: its weights are not counted")
        return VisionTower(heads=heads, parameters=None)
    gated = part.text("hidden_act") in {"silu", "swiglu"}
    blocks = (depth + above) * (4 * width * width + (3 if gated else 2) * width * inner)
    ratios = part.items("supported_aspect_ratios")
    if above and ratios is not None:
        return VisionTower(heads=heads, parameters=blocks + _tiles(outer, part, width, len(ratios)))
    outer.note("vision tower: encoder blocks counted, patch embedding and projector not")
    return VisionTower(heads=heads, parameters=blocks)


def _tiles(outer: Fields, part: Fields, width: int, ratios: int) -> int:
    """Parameters beside the blocks of an encoder of tiles: a position for every patch of all tiles and aspect ratio (and one for none), and the projector into the text."""
    text = outer.nested("text_config")
    projector = part.need("vision_output_dim") * (text.need("hidden_size") if text is not None else 0)
    return (ratios + 1) * image_tokens(outer) * width + projector
