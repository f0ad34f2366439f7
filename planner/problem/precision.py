"""In which number formats a deployment may run: as the checkpoint stores them, as asked, or every one the GPU supports.

Rules
-----
- Weights: absent = the checkpoint's own. The checkpoint's own dtype asked by name = its own quantization scheme. Another dtype = an assumed
  scheme, told by `precision_notes`, because a checkpoint in that dtype must then be found or made. `any` = the checkpoint's own and each of
  bf16, fp8, nvfp4 and int4 that the GPU multiplies natively (int4, which no GPU of the catalog multiplies: that the engine expands for it).
- KV cache: absent = the engine's default for this checkpoint; `any` = that and fp8 where the GPU has it.
- Activations: the model's own 16 bits, and fp16 on GPUs before compute capability 8.0, which have no bf16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from planner.catalog.architecture import ModelArchitecture, Quantization
from planner.catalog.engines import Engine
from planner.catalog.gpus import Gpu
from planner.diagnostics import Diagnostic, Place, Severity
from planner.problem.documents import Deployment

SIXTEEN_BITS: Final = ("bf16", "fp16")
FIRST_WITH_BF16: Final = 8.0

# One scale per output channel adds less than 0.1 % to an 8-bit matrix of a language model and is not counted.
ASSUMED_SCHEMES: Final[Mapping[str, Quantization]] = MappingProxyType(
    {
        "fp8": Quantization(method="assumed fp8, one scale per channel", weights="fp8"),
        "int8": Quantization(method="assumed int8, one scale per channel", weights="int8"),
        "int4": Quantization(method="assumed int4, groups of 128 with 16-bit scales", weights="int4", group=128, scale_bytes=2.0),
        "nvfp4": Quantization(method="assumed nvfp4, groups of 16 with fp8 scales", weights="nvfp4", group=16, scale_bytes=1.0),
        "mxfp4": Quantization(method="assumed mxfp4, groups of 32 with 8-bit scales", weights="mxfp4", group=32, scale_bytes=1.0),
    }
)
CHOSEN_AMONG: Final = ("bf16", "fp8", "nvfp4", "int4")


@dataclass(frozen=True)
class Precision:
    """Resolved number formats of a deployment.

    `weights` is the dtype of the quantized linear weights (of most families where they differ, of all when `quantization` is None), `kv_cache` and `activations`
    dtype names of `catalog.dtypes`. `quantization` is the checkpoint's own scheme or the assumed one for `weights`.
    """

    weights: str
    kv_cache: str
    activations: str
    quantization: Quantization | None = None

    def of(self, family: str) -> str:
        """Number format of the quantized weights of one tensor family."""
        return self.weights if self.quantization is None else self.quantization.of(family).weights


def resolve_precisions(deployment: Deployment, architecture: ModelArchitecture, engine: Engine, gpu: Gpu) -> tuple[Precision, ...]:
    """Number formats a deployment may run in on `gpu`, the checkpoint's own first.

    Whether the engine can run them there is judged by `candidates.legality`, with a reason; only what `any` stands for is narrowed to
    what the GPU supports.

    Parameters
    ----------
    deployment
        What is asked.
    architecture
        The model, with the quantization of its checkpoint.
    engine
        Decides the KV cache's default, and runs formats that the GPU lacks.
    gpu
        Decides what `any` stands for, and the activations.

    Returns
    -------
    tuple of Precision
        At least one; no two have the same weights and KV cache.
    """
    asked_weights = deployment.precision.weights if deployment.precision is not None else None
    asked_kv = deployment.precision.kv_cache if deployment.precision is not None else None
    activations = activation_dtype(architecture, gpu)
    found: dict[tuple[str, str], Precision] = {}
    for weights, scheme in _weights(asked_weights, architecture, engine, gpu, activations):
        for kv_cache in _kv_caches(asked_kv, architecture, scheme, engine, gpu, activations):
            found.setdefault((weights, kv_cache), Precision(weights, kv_cache, activations, scheme))
    return tuple(found.values())


def activation_dtype(architecture: ModelArchitecture, gpu: Gpu) -> str:
    """Dtype of activations: the checkpoint's own 16 bits (bf16 for fp32 checkpoints), fp16 where the GPU has no bf16."""
    if gpu.compute_capability is not None and gpu.compute_capability < FIRST_WITH_BF16:
        return "fp16"
    return architecture.dtype if architecture.dtype in SIXTEEN_BITS else "bf16"


def _weights(
    asked: str | None, architecture: ModelArchitecture, engine: Engine, gpu: Gpu, activations: str
) -> list[tuple[str, Quantization | None]]:
    """Weight dtypes with their schemes, the checkpoint's own first."""
    own = architecture.quantization
    stored = (own.weights, own) if own is not None else (activations, None)
    if asked is None:
        return [stored]
    if asked == "any":
        others = [dtype for dtype in CHOSEN_AMONG if dtype != stored[0] and _supported(dtype, engine, gpu)]
        return [stored, *((dtype, ASSUMED_SCHEMES.get(dtype)) for dtype in others)]
    if own is not None and asked in own.formats:
        return [stored]
    return [(asked, ASSUMED_SCHEMES.get(asked))]


def _supported(dtype: str, engine: Engine, gpu: Gpu) -> bool:
    if dtype != "int4":
        return gpu.computes(dtype)
    expanded = engine.format(dtype)
    if expanded is None:
        return False
    if gpu.compute_capability is None:
        return gpu.vendor == "amd" and expanded.amd
    return expanded.expanded_from is not None and gpu.compute_capability >= expanded.expanded_from


def _kv_caches(
    asked: str | None, architecture: ModelArchitecture, scheme: Quantization | None, engine: Engine, gpu: Gpu, activations: str
) -> list[str]:
    """KV cache dtypes for weights of `scheme`."""
    if asked is not None and asked != "any":
        return [asked]
    if (
        scheme is not None
        and scheme is not architecture.quantization
        and engine.kv_cache == "checkpoint"
        and scheme.weights in {"fp8", "nvfp4"}
    ):
        # Checkpoints quantized to these formats for an engine that follows them carry fp8 scales for the KV cache too.
        scheme = replace(scheme, kv_cache="fp8")
    default = engine.kv_cache_dtype(replace(architecture, quantization=scheme))
    if default not in {"fp8", "int8"} or (default == "fp8" and not gpu.computes("fp8")):
        default = activations
    if asked == "any" and default != "fp8" and gpu.computes("fp8"):
        return [default, "fp8"]
    return [default]


def precision_notes(deployment: Deployment, architecture: ModelArchitecture) -> tuple[Diagnostic, ...]:
    """Notes on what is assumed about the weights that a deployment asks for."""
    asked = deployment.precision.weights if deployment.precision is not None else None
    own = architecture.quantization
    stored = own.weights if own is not None else architecture.dtype
    place = Place(path=f"deployments.{deployment.name}.precision.weights")
    if asked is None or asked == stored or (own is None and asked in SIXTEEN_BITS) or (own is not None and asked in own.formats):
        return ()
    if asked == "any":
        message = f"weights in a format other than the checkpoint's {stored} are assumed to be quantized in the usual way"
        hint = "the plan says which format it chose; serve a checkpoint in that format"
    elif asked in SIXTEEN_BITS:
        message = f"the checkpoint of {architecture.name} stores {stored}; its weights are assumed to be expanded to {asked}"
        hint = f"serve a checkpoint converted to {asked}"
    else:
        scheme = ASSUMED_SCHEMES[asked]
        message = f"the checkpoint of {architecture.name} stores {stored}; the scheme of {asked} is {scheme.method}"
        hint = f"serve a {asked} checkpoint, or name its config.json as the model for its own scheme"
    return (Diagnostic("PRECISION_ASSUMED", message, hint, Severity.NOTE, place),)
