"""Flags that all calculators share, as cyclopts shows them; their values stay text so that every fault is told at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from planner.calculators.question import FlagTexts


def several(name: str, text: str, shown: str = "") -> Any:
    """Flag that takes a comma list, repeated or not."""
    return Parameter(name=name, negative="", allow_leading_hyphen=True, help=text, show_default=shown_as(shown))


def one(name: str, text: str, shown: str = "") -> Any:
    """Flag that takes one value."""
    return Parameter(name=name, allow_leading_hyphen=True, help=text, show_default=shown_as(shown))


def shown_as(words: str) -> Any:
    """Default in the help: `words`, or none."""
    return (lambda _: words) if words else False


Several = tuple[str, ...]
Gpus = Annotated[Several, several("--gpu", "GPU type(s) of the catalog: h100-sxm-80gb, l40s-48gb, ...")]
Csv = Annotated[bool, Parameter(name="--csv", negative="", help="Print comma-separated values, one row an answer.")]


@Parameter(name="*")
@dataclass(frozen=True)
class CalculatorFlags:
    """Flags of every calculator."""

    model: Annotated[Several, several("--model", "Model(s) of the catalog, or the path of a config.json.")]
    link: Annotated[
        Several,
        several("--link", "Link(s) between the GPUs: a name, a bandwidth (25GB/s), or study:pcie3_x16.", "the GPU's own"),
    ] = ()
    nic: Annotated[str | None, one("--nic", "Network interface beyond the scale-up domain.", "infiniband-ndr-400")] = None
    nics_per_gpu: Annotated[str | None, one("--nics-per-gpu", "Interfaces of each GPU.", "1")] = None
    domain: Annotated[str | None, one("--domain", "GPUs of one scale-up domain (or host).", "as the GPU type is built")] = None
    nodes: Annotated[str | None, one("--nodes", "Domains there are.", "as many as the layout takes")] = None
    alpha: Annotated[str | None, one("--alpha", "Your own measured alpha of the link, 2us for example.")] = None
    bandwidth: Annotated[str | None, one("--bandwidth", "Your own measured bandwidth of the link, 300GB/s for example.")] = None
    tp: Annotated[Several, several("--tp", "Tensor-parallel degree(s): 1,2,4,8.")] = ()
    pp: Annotated[Several, several("--pp", "Pipeline-parallel degree(s).", "1")] = ()
    ep: Annotated[Several, several("--ep", "Expert-parallel degree(s).", "1")] = ()
    dp: Annotated[Several, several("--dp", "Data-parallel attention ranks inside one replica.", "1")] = ()
    batch: Annotated[Several, several("--batch", "Sequences in a decode step of one replica.", "32 (memory: 1; crossover: 1,32,256)")] = ()
    prompt_tokens: Annotated[Several, several("--prompt-tokens", "Prompt tokens of a request.", "2048")] = ()
    output_tokens: Annotated[Several, several("--output-tokens", "Output tokens of a request.", "512")] = ()
    weights: Annotated[Several, several("--weights", "Format(s) of the weights: bf16, fp8, int4, ...", "the checkpoint's own")] = ()
    kv_cache: Annotated[str | None, one("--kv-cache", "Format of the KV cache.", "the engine's")] = None
    engine: Annotated[str, one("--engine", "Serving engine: vllm, sglang or tensorrt-llm, with a version where it matters.", "vllm")] = (
        "vllm"
    )
    gpu_memory_utilization: Annotated[
        str | None, one("--gpu-memory-utilization", "Share of the memory the engine uses.", "the engine's")
    ] = None
    max_model_len: Annotated[str | None, one("--max-model-len", "Longest context the engine is started for.", "prompt and output")] = None
    max_batched_tokens: Annotated[str | None, one("--max-batched-tokens", "Tokens of one prefill step.", "the engine's")] = None
    max_num_seqs: Annotated[str | None, one("--max-num-seqs", "Most sequences the engine runs at once on a rank.", "the engine's")] = None
    price: Annotated[
        str | None, one("--price", "Price of one GPU per hour: 2.50, or '$2.50/h' in quotes.", "the catalog's dated example")
    ] = None
    weight_bytes: Annotated[
        str | None, one("--weight-bytes", "Weights as you count them on paper, 141GB for example (hockney only).", "the model's own")
    ] = None
    parameters: Annotated[
        str | None, one("--parameters", "Parameters as you count them on paper, 70e9 for example (hockney only).", "the model's own")
    ] = None
    profile: Annotated[
        str,
        one(
            "--profile",
            "Physics: calibrated (measured), hockney (the textbook), or a profile file that fit or measure wrote.",
            "calibrated",
        ),
    ] = "calibrated"

    def texts(self, gpu: Several) -> FlagTexts:
        """The flags as the calculators read them."""
        from planner.calculators.question import FlagTexts

        return FlagTexts(gpu=gpu, **{field.name: getattr(self, field.name) for field in fields(self)})
