"""What the published modelling code of each family decides by itself, where the config need not say.

One row a `model_type`. `tied` is the class's default of tie_word_embeddings; `gated` whether the MLP has gate and up matrices; `attention_bias` and
`mlp_bias` whether projections carry biases unless the config says otherwise; `experts` how experts are described; `window` how
sliding or chunked layers are placed when no list of layers is given. Sources: the configuration and modelling files of huggingface/transformers, and
of the models' own repositories where they ship their code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Family:
    """Defaults of one model_type.

    `window` is one of: `none` (the key is ignored), `all` (every layer where the window is set), `qwen` (only with use_sliding_window, from
    max_window_layers on), `alternate` (even layers), `every:N` (all but each N-th), `chunked` (llama4). `experts_use_intermediate` tells that
    routed experts are as wide as `intermediate_size`.
    """

    tied: bool = False
    gated: bool = True
    attention_bias: bool = False
    mlp_bias: bool = False
    window: str = "none"
    output_gate: bool = False
    experts_use_intermediate: bool = False
    four_fold: bool = False
    mixer: str = "attention"


_LLAMA: Final = Family()
_QWEN2: Final = Family(attention_bias=True, window="qwen")
_QWEN3: Final = Family(window="qwen")
_GEMMA: Final = Family(tied=True)
_MLA: Final = Family(mixer="mla")
_OLD: Final = Family(tied=True, gated=False, attention_bias=True, mlp_bias=True)

FAMILIES: Final[dict[str, Family]] = {
    "llama": _LLAMA,
    "mistral": replace(_LLAMA, window="all"),
    "ministral": replace(_LLAMA, window="all"),
    "ministral3": replace(_LLAMA, window="all"),
    "mixtral": replace(_LLAMA, window="all", experts_use_intermediate=True),
    "internlm2": _LLAMA,
    "internlm3": _LLAMA,
    "baichuan": _LLAMA,
    "exaone": _LLAMA,
    "exaone4": replace(_LLAMA, window="every:4"),
    "seed_oss": _LLAMA,
    "olmo": _LLAMA,
    "olmo2": _LLAMA,
    "olmo3": replace(_LLAMA, window="every:4"),
    "olmoe": replace(_LLAMA, experts_use_intermediate=True),
    "stablelm": _LLAMA,
    "smollm3": replace(_LLAMA, tied=True),
    "granite": _LLAMA,
    "granitemoe": replace(_LLAMA, experts_use_intermediate=True),
    "granitemoehybrid": replace(_LLAMA, experts_use_intermediate=True, mixer="hybrid"),
    "bamba": replace(_LLAMA, mixer="hybrid"),
    "cohere": replace(_LLAMA, tied=True),
    "cohere2": replace(_LLAMA, tied=True, window="every:4"),
    "glm": replace(_LLAMA, attention_bias=True),
    "glm4": replace(_LLAMA, attention_bias=True),
    "glm4_moe": _LLAMA,
    "ernie4_5": replace(_LLAMA, tied=True),
    "ernie4_5_moe": replace(_LLAMA, tied=True),
    "mimo": replace(_QWEN2, tied=False),
    "mimo_v2_flash": _LLAMA,
    "mimo_v2": _LLAMA,
    "step3p5": _LLAMA,
    "step3p7": _LLAMA,
    "qwen2": _QWEN2,
    "qwen2_moe": _QWEN2,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    "qwen3_vl": _QWEN3,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "qwen3_next": replace(_QWEN3, mixer="gated_delta", output_gate=True),
    "qwen3_5": replace(_QWEN3, mixer="gated_delta", output_gate=True),
    "qwen3_5_text": replace(_QWEN3, mixer="gated_delta", output_gate=True),
    "qwen3_5_moe": replace(_QWEN3, mixer="gated_delta", output_gate=True),
    "qwen3_5_moe_text": replace(_QWEN3, mixer="gated_delta", output_gate=True),
    "phi": replace(_LLAMA, gated=False, attention_bias=True, mlp_bias=True),
    "phi3": replace(_LLAMA, window="all"),
    "phimoe": replace(_LLAMA, window="all", attention_bias=True, experts_use_intermediate=True),
    "gemma": _GEMMA,
    "gemma2": replace(_GEMMA, window="alternate"),
    "gemma3": replace(_GEMMA, window="every:6"),
    "gemma3_text": replace(_GEMMA, window="every:6"),
    "gemma4": replace(_GEMMA, window="every:6"),
    "gemma4_text": replace(_GEMMA, window="every:6"),
    "gpt_oss": replace(_LLAMA, attention_bias=True, mlp_bias=True, window="alternate", experts_use_intermediate=True),
    "llama4": replace(_LLAMA, window="chunked"),
    "llama4_text": replace(_LLAMA, window="chunked"),
    "mllama": replace(_LLAMA, mixer="cross"),
    "mllama_text_model": replace(_LLAMA, mixer="cross"),
    "minimax_m2": replace(_LLAMA, experts_use_intermediate=True),
    "minimax_m3": replace(_LLAMA, experts_use_intermediate=True),
    "minimax_m3_vl": replace(_LLAMA, experts_use_intermediate=True),
    "deepseek": _LLAMA,
    "deepseek_v2": _MLA,
    "deepseek_v3": _MLA,
    "deepseek_v32": _MLA,
    "kimi_k2": _MLA,
    "kimi_k25": _MLA,
    "glm_moe_dsa": _MLA,
    "glm4_moe_lite": _MLA,
    "deepseek_v4": replace(_LLAMA, mixer="compressed"),
    "deepseek_ref": replace(_LLAMA, mixer="compressed"),  # the same in converted checkpoints
    "kimi_linear": replace(_MLA, mixer="kimi_linear"),
    "starcoder2": replace(_LLAMA, tied=True, gated=False, attention_bias=True, mlp_bias=True, window="all"),
    "nemotron": replace(_LLAMA, gated=False),
    "nemotron_h": replace(_LLAMA, gated=False, mixer="nemotron_h"),
    "nemotron-nas": replace(_LLAMA, mixer="nas"),
    "deci": replace(_LLAMA, mixer="nas"),
    "jamba": replace(_LLAMA, experts_use_intermediate=True, mixer="jamba"),
    "mamba2": replace(_LLAMA, mixer="mamba2"),
    "gpt2": replace(_OLD, four_fold=True),
    "gpt_bigcode": replace(_OLD, four_fold=True),
    "gptj": replace(_OLD, tied=False, attention_bias=False, four_fold=True),
    "gpt_neox": replace(_OLD, tied=False),
    "opt": _OLD,
    "bloom": replace(_OLD, four_fold=True),
    "mpt": replace(_OLD, attention_bias=False, mlp_bias=False, four_fold=True),
    "falcon": replace(_OLD, attention_bias=False, mlp_bias=False, four_fold=True),
}

# Set to anything but zero, false or an empty list, these say that the model has parts which no formula here covers.
UNMODELLED: Final[dict[str, str]] = {
    "cross_attention_layers": "cross-attention layers",
    "is_encoder_decoder": "an encoder beside the decoder",
    "hidden_size_per_layer_input": "an embedding for every layer",
    "num_kv_shared_layers": "layers that share one KV cache",
    "compress_ratios": "attention over compressed tokens",
}

# Of these, what the reader of one kind of mixer covers.
MODELLED_BY: Final[dict[str, str]] = {"cross_attention_layers": "cross", "compress_ratios": "compressed"}

# Families of an encoder beside a decoder; what they cost is another model than that of a decoder alone.
ENCODER_DECODERS: Final = frozenset(
    {
        "t5",
        "mt5",
        "umt5",
        "longt5",
        "bart",
        "mbart",
        "whisper",
        "pegasus",
        "marian",
        "m2m_100",
        "blenderbot",
        "led",
        "florence2",
        "florence2_language",
    }
)
