"""Checkpoints with more than one number format: DeepSeek-V4's experts beside its other matrices, and ModelOpt's lists of quantized layers."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Final

from planner.catalog.architecture import Quantization
from planner.catalog.hf_config.excluded import ALWAYS, family_of
from planner.catalog.hf_config.fields import Fields

# One scale of a block [B]: e8m0 beside FP4 experts, 32 bits beside FP8 ones.
E8M0_SCALE: Final = 1.0
FP4: Final = Quantization("deepseek_v4", "mxfp4", group=32, scale_bytes=E8M0_SCALE)
NVFP4: Final = Quantization("modelopt", "nvfp4", group=16, scale_bytes=1.0)
FP8: Final = Quantization("modelopt", "fp8")

_QUANTIZABLE: Final = ("attention", "mlp", "expert", "shared_expert", "recurrent")


def deepseek_v4(fields: Fields, scheme: Fields, blocks: Quantization) -> Quantization:
    """Scheme of a DeepSeek-V4 checkpoint: FP8 in blocks, routed experts in FP4, NVFP4 or FP8 as `expert_dtype` and ModelOpt's `moe_quant_algo` say."""
    experts = fields.text("expert_dtype")
    if experts is None:
        experts = "fp4" if fields.text("model_type") == "deepseek_v4" else "fp8"
        fields.note(f"expert_dtype absent: {experts}, the default of the modelling code")
    algorithm = (scheme.text("moe_quant_algo") or "").upper()
    if experts == "fp8":
        return blocks
    if experts != "fp4" or algorithm not in {"", "NVFP4"}:
        fields.unknown("expert_dtype", f"is {experts!r} {algorithm}".rstrip() + ", which is not modelled", "known: fp4, fp8")
    return replace(blocks, scale_bytes=E8M0_SCALE, apart=(("expert", NVFP4 if algorithm == "NVFP4" else FP4),))


def listed_layers(layered: Fields, kept: tuple[str, ...], cache: str | None) -> Quantization | None:
    """Scheme of a checkpoint that names every quantized module with its format, where each family of tensors has one format throughout.

    The format of most modules is the main one; families without a quantized module are kept in the model's own dtype.
    """
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for module, entry in layered.config.items():
        family = family_of(module)
        if isinstance(entry, dict) and family and family not in ALWAYS:
            found[family][str(entry.get("quant_algo", "")).upper()] += 1
    mixed = sorted(family for family, formats in found.items() if len(formats) > 1)
    strange = sorted({name for formats in found.values() for name in formats} - {"NVFP4", "FP8"})
    if mixed or strange or not found:
        problem = f"gives {', '.join(mixed)} several number formats" if mixed else f"holds {', '.join(strange) or 'nothing'}"
        layered.unknown("*", f"{problem}, which is not modelled")
        return None
    schemes = {family: NVFP4 if "NVFP4" in formats else FP8 for family, formats in found.items()}
    main = Counter({family: formats.total() for family, formats in found.items()}).most_common(1)[0][0]
    high = tuple(dict.fromkeys((*kept, *(family for family in _QUANTIZABLE if family not in schemes))))
    apart = tuple(sorted((family, scheme) for family, scheme in schemes.items() if scheme != schemes[main]))
    return replace(schemes[main], kept_high=high, kv_cache=cache, apart=apart)
