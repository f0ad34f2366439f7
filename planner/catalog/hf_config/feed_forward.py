"""Which layers are dense and which hold experts, and how wide either is."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.architecture import FeedForward
from planner.catalog.hf_config.families import Family
from planner.catalog.hf_config.fields import Fields

EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k", "top_k_experts", "moe_k", "moe_topk")
WIDTH = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
EXPERT_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size")


def dense(fields: Fields, family: Family, model_type: str, hidden: int) -> FeedForward:
    """Read the dense MLP."""
    names: tuple[str, ...] = WIDTH
    if model_type.startswith("llama4") and fields.has(*EXPERTS):
        width = fields.get("intermediate_size_mlp", default=16_384)
        return FeedForward(width=width, gated=True)
    if model_type.startswith("minimax_m3"):
        names = ("dense_intermediate_size",)
    if family.four_fold and not fields.has(*names):
        factor = fields.get("expansion_ratio", default=4) if model_type == "mpt" else 4
        fields.note(f"{WIDTH[0]} absent: {factor} x hidden_size, the default of the modelling code")
        width = factor * hidden
    else:
        width = fields.need(*names)
    bias = fields.flag("mlp_bias", "use_mlp_bias", "bias", default=family.mlp_bias)
    return FeedForward(width=width, gated=family.gated, bias=bias)


def experts(fields: Fields, family: Family, model_type: str) -> FeedForward:
    """Read the mixture of experts: routed ones, shared ones, and a latent space where experts work in one."""
    count = fields.need(*EXPERTS, maximum=65_536)
    active = fields.need(*EXPERTS_PER_TOKEN, maximum=65_536)
    if active > count:
        fields.clash(EXPERTS_PER_TOKEN[0], f"({active}) exceeds the {count} experts", EXPERTS[0])
    names = WIDTH[:1] if model_type.startswith("llama4") else EXPERT_WIDTH
    if family.experts_use_intermediate and not fields.has(*names):
        names = WIDTH[:1]
    width = fields.need(*names)
    return FeedForward(
        gated=family.gated,
        experts=count,
        experts_per_token=active,
        expert_width=width,
        shared_width=_shared_width(fields, model_type, width),
        latent_size=fields.check("moe_latent_size", "routed_expert_hidden_size"),
        bias=family.mlp_bias,
    )


def _shared_width(fields: Fields, model_type: str, expert_width: int) -> int:
    """Total width of the shared experts; 0 where there are none."""
    if model_type.startswith("llama4"):
        return expert_width  # Llama4TextMoe always carries one shared expert as wide as a routed one
    stated = fields.check(
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        "share_expert_dim",
        minimum=0,
    )
    many = fields.check("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", minimum=0)
    if stated is not None:
        return stated * (many if many and fields.has("moe_shared_expert_intermediate_size") else 1)
    return (many or 0) * expert_width


def expert_layers(fields: Fields, model_type: str, layers: int) -> list[bool]:
    """Tell for each layer whether its feed-forward part is a mixture of experts.

    The forms in use: a list of 0 and 1 (`moe_layer_freq`), names (`mlp_layer_types`), indices (`moe_layers`, `moe_layers_enum`), "the first k are
    dense, then every n-th" (DeepSeek), "every n-th but for these" (Qwen), "every n-th, counted from the end of the group" (Llama-4), period and offset (Jamba).
    """
    count = fields.check(*EXPERTS, minimum=0)
    if not count or (count == 1 and model_type == "jamba"):
        return [False] * layers
    if model_type.startswith("gemma4") and not fields.flag("enable_moe_block", default=True):
        return [False] * layers
    listed = _listed(fields, layers)
    if listed is not None:
        return listed
    if model_type == "jamba":
        period, offset = fields.get("expert_layer_period", default=2), fields.get("expert_layer_offset", default=1, minimum=0)
        return [index % period == offset for index in range(layers)]
    if model_type.startswith("llama4"):
        step = fields.get("interleave_moe_layer_step", default=1)
        return [(index + 1) % step == 0 for index in range(layers)]
    first = fields.check("first_k_dense_replace", "moe_layer_start_index", minimum=0) or 0
    if fields.has("first_k_dense_replace", "moe_layer_freq", "moe_layer_start_index"):
        every = 1 if isinstance(fields.config.get("moe_layer_freq"), dict) else (fields.check("moe_layer_freq", "moe_layer_interval") or 1)
        return [index >= first and index % every == 0 for index in range(layers)]
    step = fields.check("decoder_sparse_step") or 1
    dense_ones = set(fields.numbers("mlp_only_layers") or ())
    return [index not in dense_ones and (index + 1) % step == 0 for index in range(layers)]


def _listed(fields: Fields, layers: int) -> list[bool] | None:
    frequency = fields.config.get("moe_layer_freq")
    if isinstance(frequency, list | tuple):
        return _full_length([number != 0 for number in fields.numbers("moe_layer_freq") or ()], "moe_layer_freq", fields, layers)
    if isinstance(frequency, dict):
        return _abridged(frequency, fields, layers)
    kinds = fields.strings("mlp_layer_types")
    if kinds is not None:
        return _full_length([kind != "dense" for kind in kinds], "mlp_layer_types", fields, layers)
    enumerated = fields.config.get("moe_layers_enum")
    indices = fields.numbers("moe_layers")
    if isinstance(enumerated, str):
        parts = [part.strip() for part in enumerated.split(",") if part.strip()]
        if not all(part.isdecimal() and len(part) < 8 for part in parts):
            fields.refuse("moe_layers_enum", "is not a list of layer numbers")
            return None
        indices = [int(part) for part in parts]
    if indices is None:
        return None
    chosen = set(indices)
    return [index in chosen for index in range(layers)]


def _abridged(frequency: dict[object, object], fields: Fields, layers: int) -> list[bool] | None:
    """Take an abridged list (its length and first items) only where `first_k_dense_replace` says the same and settles the rest."""
    head, first = frequency.get("head"), fields.config.get("first_k_dense_replace")
    plain = isinstance(head, Sequence) and not isinstance(head, str) and isinstance(first, int) and frequency.get("len") == layers
    if plain and isinstance(head, Sequence) and isinstance(first, int):
        implied = [index >= first for index in range(layers)]
        if [bool(item) for item in head] == implied[: len(head)] and 0 <= first < len(head):
            return implied
    fields.lack("moe_layer_freq")
    return [False] * layers


def _full_length(flags: list[bool], name: str, fields: Fields, layers: int) -> list[bool]:
    if len(flags) < layers:
        fields.clash(name, f"has {len(flags)} items for {layers} layers", "num_hidden_layers")
        return flags + [False] * (layers - len(flags))
    return flags[:layers]
