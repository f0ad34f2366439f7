"""Reads a Hugging Face `config.json` into a `ModelArchitecture`, or says which fields it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, Quantization, RecurrentState
from planner.catalog.hf_config import feed_forward, recurrent
from planner.catalog.hf_config.attention import global_attention, latent_attention, plain_attention, windowed
from planner.catalog.hf_config.compressed import compressed_layers
from planner.catalog.hf_config.families import ENCODER_DECODERS, FAMILIES, MODELLED_BY, UNMODELLED, Family
from planner.catalog.hf_config.fields import INVALID, LARGEST, MOST_LAYERS, Fields
from planner.catalog.hf_config.mixers import CHUNKED, CROSS, EXPERTS, FULL, MLP, RECURRENT, SLIDING, mixers, window_size
from planner.catalog.hf_config.nas import searched_layers
from planner.catalog.hf_config.quantization import read_kept_layers, read_quantization
from planner.catalog.hf_config.text_part import text_part
from planner.catalog.hf_config.vision import image_tokens, read_vision
from planner.diagnostics import Diagnostic, PlannerError

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32", "bf16": "bf16", "fp16": "fp16"}
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "model_max_length", "max_sequence_length")
# State-space models have no positional encoding to run out of; the window of training data is not in their config.
UNBOUNDED_POSITIONS = 1_048_576


def read_hf_config(config: Mapping[str, object], name: str, source: str) -> ModelArchitecture:
    """Understand a model from its Hugging Face config, nested text configs of multimodal models included.

    Parameters
    ----------
    config
        The parsed `config.json`. ModelOpt's `hf_quant_config.json` may be added under the key `hf_quant_config`.
    name
        What to call the model.
    source
        Where the config comes from; told with every figure made from it.

    Returns
    -------
    ModelArchitecture
        Its `notes` name each default of the published modelling code that filled an absent field.

    Raises
    ------
    PlannerError
        MODEL_NOT_UNDERSTOOD where fields that memory or legality depend on are missing or mean something not modelled here (all named),
        MODEL_CONFIG_INVALID for each value that cannot be right.
    """
    if not isinstance(config, Mapping):
        raise PlannerError([Diagnostic(INVALID, f"the config of {name} is not a mapping of fields", "give a Hugging Face config.json")])
    outer = Fields(config)
    fields = text_part(outer)
    model_type = fields.text("model_type") or outer.text("model_type") or ""
    family = _family(fields, model_type)
    fields.raise_faults(name)  # what the other fields mean depends on the family
    hidden = fields.need("hidden_size", "n_embd", "d_model", maximum=1_048_576)
    layers = fields.need("num_hidden_layers", "n_layer", "n_layers", "num_layers", maximum=MOST_LAYERS)
    sequence = _layers(fields, family, model_type, hidden, layers)
    prediction = sequence.pop() if len(sequence) > layers else None
    for position, families in read_kept_layers(fields, layers).items():
        sequence[position] = replace(sequence[position], kept_high=families)
    if family.mixer == "cross":
        sequence = _with_images(sequence, image_tokens(outer))
    kinds = tuple(dict.fromkeys(sequence))
    index = {kind: position for position, kind in enumerate(kinds)}
    architecture = ModelArchitecture(
        name=name,
        family=model_type,
        hidden_size=hidden,
        vocab_size=fields.need("vocab_size", "padded_vocab_size", maximum=LARGEST),
        layer_kinds=kinds,
        layer_sequence=tuple(index[kind] for kind in sequence),
        tied_embeddings=_tied(outer, fields, family),
        max_position=_positions(fields, family, model_type),
        dtype=_dtype(fields),
        source=source,
        quantization=_with_mixers(read_quantization(fields, layers), family),
        vision=read_vision(outer),
        residual_streams=_residual_streams(fields, sequence),
        nextn_layers=fields.check("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", minimum=0, maximum=MOST_LAYERS)
        or 0,
        prediction_layer=prediction,
    )
    fields.raise_faults(name)
    return replace(architecture, notes=tuple(fields.notes))


def _with_images(sequence: list[LayerKind], tokens: int) -> list[LayerKind]:
    """Tell the layers that attend to images how many tokens one of them gives."""
    seeing = (kind.attention if kind.attention is not None and kind.attention.kind is AttentionKind.CROSS else None for kind in sequence)
    return [
        kind if attention is None else replace(kind, attention=replace(attention, image_tokens=tokens))
        for kind, attention in zip(sequence, seeing, strict=True)
    ]


def _family(fields: Fields, model_type: str) -> Family:
    if not model_type:
        fields.lack("model_type")
        return Family()
    family = FAMILIES.get(model_type, Family())
    for key, part in UNMODELLED.items():
        if fields.config.get(key) and MODELLED_BY.get(key) != family.mixer:
            fields.unknown(key, f"gives the model {part}, which is not modelled")
    if model_type in ENCODER_DECODERS:
        fields.unknown("model_type", f"is {model_type!r}, an encoder beside a decoder", "models that are a decoder alone can be planned")
    elif model_type not in FAMILIES:
        fields.unknown("model_type", f"is {model_type!r}, a family that is not known here", _nearest_family(model_type))
    return family


def _nearest_family(model_type: str) -> str:
    from planner.catalog.nearest import nearest

    close = nearest(model_type, FAMILIES)
    return f"nearest: {', '.join(close)}" if close else "its fields may mean something else than in the families that are"


def _tied(outer: Fields, fields: Fields, family: Family) -> bool:
    if outer.has("tie_word_embeddings"):
        return outer.flag("tie_word_embeddings", default=family.tied)
    if not fields.has("tie_word_embeddings"):
        fields.note(f"tie_word_embeddings absent: {str(family.tied).lower()}, the default of the modelling code")
    return fields.flag("tie_word_embeddings", default=family.tied)


def _positions(fields: Fields, family: Family, model_type: str) -> int:
    found = fields.check(*_POSITIONS, maximum=2_000_000_000)
    if found is not None:
        return found
    if family.mixer == "mamba2":
        fields.note("no positional limit in the model")
        return UNBOUNDED_POSITIONS
    if model_type in {"bloom", "falcon", "mpt"}:
        fields.note("max_position_embeddings absent: 2048, the length it was trained at")
        return 2048
    fields.lack(_POSITIONS[0])
    return 1


def _with_mixers(quantization: Quantization | None, family: Family) -> Quantization | None:
    """Keep the recurrent mixers of a family that names them `self_attn`, as its attention, wherever the attention is kept in the model's own dtype."""
    if quantization is None or family.mixer != "kimi_linear" or "attention" not in quantization.kept_high:
        return quantization
    return replace(quantization, kept_high=tuple(dict.fromkeys((*quantization.kept_high, "recurrent"))))


def _residual_streams(fields: Fields, sequence: Sequence[LayerKind]) -> int:
    """Hidden states that a token carries: with residuals over blocks of layers the sum of every finished block beside the running one; else those that its layers mix."""
    block = fields.check("attn_res_block_size", maximum=MOST_LAYERS)
    return max((kind.mixed_streams for kind in sequence), default=1) if block is None else 1 + -(-len(sequence) // block)


def _dtype(fields: Fields) -> str:
    stated = fields.text("torch_dtype", "dtype")
    if stated is None:
        fields.note("torch_dtype absent: bf16, in which engines load such checkpoints")
        return "bf16"
    found = _DTYPES.get(stated.removeprefix("torch."))
    if found is None:
        fields.unknown("torch_dtype", f"is {stated!r}, not a dtype that engines load weights in")
        return "bf16"
    return found


def _layers(fields: Fields, family: Family, model_type: str, hidden: int, layers: int) -> list[LayerKind]:
    """Build every layer, first to last; after them a prediction layer where that is unlike the last one."""
    if family.mixer == "nas":
        return searched_layers(fields, hidden, layers)
    if family.mixer == "compressed":
        return compressed_layers(fields, feed_forward.experts(fields, family, model_type), layers)
    kinds = mixers(fields, family, model_type, layers)
    has_experts = feed_forward.expert_layers(fields, model_type, layers)
    blocks = family.mixer == "nemotron_h"
    if blocks:
        has_experts = [kind == EXPERTS for kind in kinds]
    softmax = {kind: _attention(fields, family, model_type, hidden, kind) for kind in (FULL, SLIDING, CHUNKED, CROSS) if kind in kinds}
    softmax = _indexed(softmax, fields, model_type)
    state = _state(fields, family, hidden) if RECURRENT in kinds else None
    parts: dict[bool, FeedForward] = {}
    if family.mixer != "mamba2":
        needed = set(has_experts) if not blocks else {True} & set(has_experts) | ({False} if MLP in kinds else set())
        parts = {expert: _feed_forward(fields, family, model_type, hidden, expert=expert) for expert in needed}
    found = []
    for position, (kind, expert) in enumerate(zip(kinds, has_experts, strict=True)):
        part = parts.get(expert) if not blocks or kind in {EXPERTS, MLP} else None
        attention = softmax.get(kind)
        if attention is not None and attention.index_heads and model_type.startswith("minimax_m3") and not _sparse(fields, position):
            attention = replace(attention, index_heads=None, index_head_dim=None, index_topk=None)
        found.append(LayerKind(attention, state if kind == RECURRENT else None, part))
    return found


def _feed_forward(fields: Fields, family: Family, model_type: str, hidden: int, *, expert: bool) -> FeedForward:
    if not expert:
        return feed_forward.dense(fields, family, model_type, hidden)
    part = feed_forward.experts(fields, family, model_type)
    if model_type.startswith("gemma4"):
        # Gemma-4 runs its dense MLP and its experts side by side in every layer.
        return replace(part, width=fields.need("intermediate_size"))
    return part


def _attention(fields: Fields, family: Family, model_type: str, hidden: int, kind: str) -> Attention:
    if family.mixer in {"mla", "kimi_linear"}:
        return latent_attention(fields)
    full = plain_attention(fields, family, model_type, hidden)
    if kind == FULL:
        return global_attention(full, fields, model_type)
    if kind == CROSS:
        return replace(full, kind=AttentionKind.CROSS)
    if kind == CHUNKED:
        return windowed(full, AttentionKind.CHUNKED, fields.need("attention_chunk_size"), fields, model_type)
    window = window_size(fields)
    if window is None:
        fields.lack("sliding_window")
    return windowed(full, AttentionKind.SLIDING, window or 1, fields, model_type)


def _state(fields: Fields, family: Family, hidden: int) -> RecurrentState:
    if family.mixer == "gated_delta":
        return recurrent.gated_delta(fields, hidden)
    if family.mixer == "jamba":
        return recurrent.mamba1(fields, hidden)
    if family.mixer == "kimi_linear":
        return recurrent.kimi_delta(fields.nested("linear_attn_config") or fields, hidden)
    return recurrent.mamba2(fields, hidden)


def _indexed(softmax: dict[str, Attention], fields: Fields, model_type: str) -> dict[str, Attention]:
    """Add the block-sparse indexer of MiniMax-M3 where its config has one."""
    sparse = fields.nested("sparse_attention_config") if model_type.startswith("minimax_m3") else None
    if sparse is None or not sparse.flag("use_sparse_attention", default=True):
        return softmax
    heads, dim = sparse.need("sparse_num_index_heads"), sparse.need("sparse_index_dim")
    kept = sparse.need("sparse_topk_blocks") * sparse.get("sparse_block_size", default=128)
    return {kind: replace(one, index_heads=heads, index_head_dim=dim, index_topk=kept) for kind, one in softmax.items()}


def _sparse(fields: Fields, position: int) -> bool:
    """Tell whether a layer of MiniMax-M3 attends sparsely; absent a list, where the experts are."""
    sparse = fields.nested("sparse_attention_config")
    listed = sparse.numbers("sparse_attention_freq") if sparse else None
    if listed is None:
        frequency = fields.config.get("moe_layer_freq")
        listed = fields.numbers("moe_layer_freq") if isinstance(frequency, list) else None
    return bool(listed[position]) if listed is not None and position < len(listed) else True
