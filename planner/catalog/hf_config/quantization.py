"""How a checkpoint's weights are stored: `quantization_config`, and ModelOpt's separate `hf_quant_config.json`."""

from __future__ import annotations

from planner.catalog.architecture import Quantization
from planner.catalog.hf_config.excluded import ALWAYS, kept_high, kept_in_layers
from planner.catalog.hf_config.fields import Fields
from planner.catalog.hf_config.several_formats import deepseek_v4, listed_layers

# One scale of each scheme [B]: fp32 for fp8 blocks, fp16 plus a packed 4-bit zero point for AWQ and GPTQ, e4m3 for NVFP4, e8m0 for MXFP4.
FP8_BLOCK_SCALE = 4.0
INT4_SCALE = 2.0
INT4_ZERO = 0.5
NVFP4_SCALE = 1.0
MXFP4_SCALE = 1.0

_EXCLUDED = ("ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules")


def read_quantization(fields: Fields, layers: int) -> Quantization | None:
    """Read how the linear weights are stored, None for a checkpoint in the model's own dtype.

    `fields` is the whole config; ModelOpt's sidecar may lie under `hf_quant_config`, as the file has it (`quantization` inside) or flat.
    """
    scheme, sidecar = _parts(fields)
    first = scheme or sidecar
    if first is None:
        return None
    algorithm = (scheme.text("quant_algo") if scheme else None) or (sidecar.text("quant_algo") if sidecar else None)
    method = scheme.text("quant_method") if scheme else None
    if method is None and algorithm is None:
        first.lack("quant_method")
        return None
    excluded = _excluded(scheme, sidecar)
    cache = _kv_cache(scheme) or _kv_cache(sidecar)
    if scheme is not None and method == "fp8" and fields.text("model_type") in {"deepseek_v4", "deepseek_ref"}:
        return deepseek_v4(fields, scheme, Quantization("fp8", "fp8", _block(scheme), None, FP8_BLOCK_SCALE, ALWAYS, cache))
    if algorithm is not None and method in {None, "modelopt", "modelopt_fp4", "fp8"}:
        return _modelopt(first, scheme, sidecar, algorithm.upper(), excluded, layers, cache)
    return _by_method(first, str(method).lower(), excluded, layers, cache)


def read_kept_layers(fields: Fields, layers: int) -> dict[int, tuple[str, ...]]:
    """Families that single layers keep in the model's own dtype, by the number of the layer; empty for a checkpoint that is not quantized."""
    return kept_in_layers(_excluded(*_parts(fields)), layers)


def _parts(fields: Fields) -> tuple[Fields | None, Fields | None]:
    """The quantization config, and ModelOpt's sidecar."""
    sidecar = fields.nested("hf_quant_config")
    if sidecar is not None:
        sidecar = sidecar.nested("quantization") or sidecar
    return fields.nested("quantization_config", "compression_config"), sidecar


def _excluded(scheme: Fields | None, sidecar: Fields | None) -> list[str]:
    return [module for part in (scheme, sidecar) if part for name in _EXCLUDED for module in part.strings(name) or ()]


def _kv_cache(part: Fields | None) -> str | None:
    if part is None:
        return None
    value = part.config.get("kv_cache_quant_algo") or part.config.get("kv_cache_scheme")
    if value is None:
        return None
    if isinstance(value, dict):
        bits, kind = value.get("num_bits"), value.get("type")
        names = {(8, "float"): "fp8", (8, "int"): "int8", (4, "float"): "nvfp4"}
        found = names.get((bits, kind)) if isinstance(bits, int) and isinstance(kind, str) else None
    else:
        found = {"FP8": "fp8", "INT8": "int8", "NVFP4": "nvfp4"}.get(str(value).upper())
    if found is None:
        part.unknown("kv_cache_scheme", "is not a known number format of the KV cache")
    return found


def _group(part: Fields | None, default: int | None = None) -> int | None:
    """Group size along the inputs; -1 means one scale a channel."""
    if part is None or part.config.get("group_size") == -1:
        return None if part is not None else default
    return part.check("group_size", maximum=65_536) or default


def _modelopt(
    first: Fields, scheme: Fields | None, sidecar: Fields | None, algorithm: str, excluded: list[str], layers: int, cache: str | None
) -> Quantization | None:
    kept = _kept(first, excluded, layers)
    if algorithm in {"NVFP4", "NVFP4_AWQ"}:
        group = _group(sidecar, 16) or _group(scheme, 16) or 16
        return Quantization("modelopt", "nvfp4", group=group, scale_bytes=NVFP4_SCALE, kept_high=kept, kv_cache=cache)
    if algorithm in {"FP8", "FP8_PER_CHANNEL_PER_TOKEN"}:
        return Quantization("modelopt", "fp8", kept_high=kept, kv_cache=cache)
    if algorithm in {"W4A16_AWQ", "W4A8_AWQ"}:
        return Quantization("modelopt", "int4", group=_group(sidecar, 128) or 128, scale_bytes=INT4_SCALE, kept_high=kept, kv_cache=cache)
    if algorithm == "MIXED_PRECISION":
        return _mixed(first, scheme, sidecar, kept, cache)
    first.unknown("quant_algo", f"is {algorithm!r}, which is not modelled", "known: NVFP4, FP8, W4A16_AWQ, W4A8_AWQ, MIXED_PRECISION")
    return None


def _mixed(first: Fields, scheme: Fields | None, sidecar: Fields | None, kept: tuple[str, ...], cache: str | None) -> Quantization | None:
    """Mixed precision names every quantized module; it can be counted where they all turn out alike, or all of a family."""
    layered = next((part.nested("quantized_layers") for part in (scheme, sidecar) if part and part.has("quantized_layers")), None)
    if layered is None:
        first.lack("quantized_layers")
        return None
    found = {str(entry.get("quant_algo", "")).upper() for entry in layered.config.values() if isinstance(entry, dict)}
    if found == {"NVFP4"}:
        return Quantization("modelopt", "nvfp4", group=_group(sidecar, 16) or 16, scale_bytes=NVFP4_SCALE, kept_high=kept, kv_cache=cache)
    if found == {"FP8"}:
        return Quantization("modelopt", "fp8", kept_high=kept, kv_cache=cache)
    return listed_layers(layered, kept, cache)


def _kept(part: Fields, excluded: list[str], layers: int) -> tuple[str, ...]:
    if not excluded:
        part.note("no list of modules excluded from quantization: embedding, head, router and norms taken as kept in the model's own dtype")
    return kept_high(excluded, layers, part)


def _by_method(part: Fields, method: str, excluded: list[str], layers: int, cache: str | None) -> Quantization | None:
    if method in {"fp8", "fbgemm_fp8"}:
        block = _block(part)
        scale = FP8_BLOCK_SCALE if block else 0.0
        return Quantization("fp8", "fp8", block=block, scale_bytes=scale, kept_high=kept_high(excluded, layers, part), kv_cache=cache)
    if method in {"awq", "gptq", "auto-round", "gptqmodel"}:
        bits = part.need("bits", "w_bit", maximum=64)
        weights = {4: "int4", 8: "int8"}.get(bits)
        if weights is None:
            part.unknown("bits", f"is {bits}: only 4 and 8 are modelled")
            return None
        zero = method != "awq" or part.flag("zero_point", default=True)
        if not part.has("group_size", "q_group_size"):
            part.lack("group_size")
        group = None if part.config.get("group_size") == -1 else part.check("group_size", "q_group_size", maximum=65_536)
        scale = INT4_SCALE + (INT4_ZERO * bits / 4 if zero else 0.0)
        return Quantization(method, weights, group=group, scale_bytes=scale, kept_high=kept_high(excluded, layers, part), kv_cache=cache)
    if method == "mxfp4":
        # The published loader of gpt-oss quantizes experts only, and says so in modules_to_not_convert.
        kept = kept_high(excluded or ["self_attn"], layers, part)
        return Quantization("mxfp4", "mxfp4", group=32, scale_bytes=MXFP4_SCALE, kept_high=kept, kv_cache=cache)
    if method == "bitsandbytes":
        if part.flag("load_in_4bit", "_load_in_4bit", default=False):
            return Quantization("bitsandbytes", "int4", group=64, scale_bytes=4.0, kept_high=kept_high(excluded, layers, part))
        return Quantization("bitsandbytes", "int8", kept_high=kept_high(excluded, layers, part))
    if method == "compressed-tensors":
        return _compressed_tensors(part, excluded, layers, cache)
    part.unknown(
        "quant_method", f"is {method!r}, which is not modelled", "known: fp8, awq, gptq, compressed-tensors, modelopt, mxfp4, bitsandbytes"
    )
    return None


def _block(part: Fields) -> tuple[int, int] | None:
    sizes = part.numbers("weight_block_size")
    if sizes is None:
        return None
    if len(sizes) != 2 or min(sizes) < 1 or max(sizes) > 65_536:
        part.refuse("weight_block_size", "is not two positive sizes")
        return None
    return sizes[0], sizes[1]


def _compressed_tensors(part: Fields, excluded: list[str], layers: int, cache: str | None) -> Quantization | None:
    groups = part.nested("config_groups")
    if groups is None or not groups.config:
        part.lack("config_groups")
        return None
    found: list[Quantization] = []
    for name in groups.config:
        group = groups.nested(name)
        weights = group.nested("weights") if group is not None else None
        if weights is not None:
            # Without a scheme for the inputs the weights are expanded in a weight-only kernel, which has tiles of its own.
            method = "compressed-tensors" if group is not None and group.nested("input_activations") else "compressed-tensors weight-only"
            read = _compressed_weights(weights, method, kept_high(excluded, layers, part), cache)
            found += [read] if read is not None else []
        elif group is not None:
            group.lack("weights")
    if len({(one.weights, one.group, one.block) for one in found}) > 1:
        part.unknown("config_groups", "mixes several number formats in one checkpoint, which is not modelled")
    return found[0] if found else None


def _compressed_weights(weights: Fields, method: str, kept: tuple[str, ...], cache: str | None) -> Quantization | None:
    bits, kind = weights.need("num_bits", maximum=64), weights.text("type") or "int"
    strategy = weights.text("strategy") or "channel"
    group = None if weights.config.get("group_size") == -1 else weights.check("group_size", maximum=65_536)
    if (bits, kind) == (8, "float"):
        structure = weights.numbers("block_structure")
        block = (structure[0], structure[1]) if strategy == "block" and structure and len(structure) == 2 and min(structure) > 0 else None
        scale = FP8_BLOCK_SCALE if block else 0.0
        return Quantization(method, "fp8", block=block, scale_bytes=scale, kept_high=kept, kv_cache=cache)
    if (bits, kind) == (8, "int"):
        return Quantization(method, "int8", group=group, scale_bytes=INT4_SCALE if group else 0.0, kept_high=kept, kv_cache=cache)
    if (bits, kind) == (4, "int"):
        zero = INT4_ZERO if not weights.flag("symmetric", default=True) else 0.0
        return Quantization("compressed-tensors", "int4", group=group, scale_bytes=INT4_SCALE + zero, kept_high=kept, kv_cache=cache)
    if (bits, kind) == (4, "float"):
        weights_format = "mxfp4" if group == 32 else "nvfp4"
        return Quantization(
            "compressed-tensors", weights_format, group=group or 16, scale_bytes=NVFP4_SCALE, kept_high=kept, kv_cache=cache
        )
    weights.unknown("num_bits", f"of {bits} and type {kind!r} is not modelled")
    return None
