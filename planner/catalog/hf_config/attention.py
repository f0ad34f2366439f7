"""Softmax attention of one layer: heads, kv heads, head sizes, windows, and the low-rank form (MLA) with its sparse indexer."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog.architecture import Attention, AttentionKind
from planner.catalog.hf_config.families import Family
from planner.catalog.hf_config.fields import Fields

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "num_attention_groups", "multi_query_group_num")


def _kv_heads(fields: Fields, model_type: str, heads: int) -> int:
    if model_type == "falcon":
        # FalconAttention looks at num_kv_heads only in the new decoder; the old one is MQA or MHA by `multi_query`.
        if fields.flag("new_decoder_architecture", default=False):
            return fields.get("num_kv_heads", "n_head_kv", default=heads)
        return 1 if fields.flag("multi_query", default=True) else heads
    if model_type == "gpt_bigcode":
        return 1 if fields.flag("multi_query", default=True) else heads
    found = fields.check(*KV_HEADS)
    if found is None:
        fields.note("num_key_value_heads absent: one kv head per query head, the default of the modelling code")
        return heads
    return found


def head_sizes(fields: Fields, hidden: int, heads: int) -> int:
    """Read the head size, or hidden size over heads, which must then divide."""
    found = fields.check("head_dim", "attention_head_dim", "kv_channels")
    if found is not None:
        return found
    if hidden % heads:
        fields.clash(
            HEADS[0], f"({heads}) does not divide hidden_size {hidden} and head_dim is absent", "hidden_size", hint="give head_dim"
        )
        return 1
    return hidden // heads


def plain_attention(fields: Fields, family: Family, model_type: str, hidden: int) -> Attention:
    """Read the attention of a layer that sees every earlier token, in the MHA, GQA or MQA form."""
    heads = fields.need(*HEADS, maximum=65_536)
    kv_heads = _kv_heads(fields, model_type, heads)
    if heads % kv_heads:
        fields.clash(KV_HEADS[0], f"({kv_heads}) does not divide the {heads} attention heads", HEADS[0])
    head_dim = head_sizes(fields, hidden, heads)
    bias = fields.flag("attention_bias", "qkv_bias", "bias", "use_qkv_bias", default=family.attention_bias)
    return Attention(
        kind=AttentionKind.FULL,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_head_dim=fields.check("v_head_dim") or head_dim,
        bias=bias,
        output_gate=fields.flag("attn_output_gate", default=family.output_gate),
    )


def windowed(attention: Attention, kind: AttentionKind, window: int, fields: Fields, model_type: str) -> Attention:
    """Make the sliding or chunked sibling of a full layer, with the sizes some families give such layers apart."""
    heads, kv_heads, head_dim, value = attention.heads, attention.kv_heads, attention.head_dim, attention.value_head_dim
    if model_type.startswith("mimo_v2"):
        heads = fields.get("swa_num_attention_heads", default=heads)
        kv_heads = fields.need("swa_num_key_value_heads")
        head_dim = fields.get("swa_head_dim", default=head_dim)
        value = fields.get("swa_v_head_dim", default=value)
    if model_type.startswith("step3p"):
        other = fields.nested("attention_other_setting")
        if other is None:
            fields.lack("attention_other_setting")
        else:
            heads = other.need("num_attention_heads")
            kv_heads = other.need("num_attention_groups", "num_key_value_heads")
            head_dim = other.get("head_dim", default=head_dim)
            value = head_dim
    if heads % kv_heads:
        fields.clash("num_key_value_heads", f"of windowed layers ({kv_heads}) does not divide their {heads} heads", HEADS[0])
    return replace(attention, kind=kind, heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=value, window=window)


def global_attention(attention: Attention, fields: Fields, model_type: str) -> Attention:
    """Make the full layer of a family that gives full layers sizes of their own (Gemma-4), else leave it."""
    if not model_type.startswith("gemma4"):
        return attention
    head_dim = fields.get("global_head_dim", default=attention.head_dim)
    kv_heads = fields.get("num_global_key_value_heads", default=attention.kv_heads)
    if attention.heads % kv_heads:
        fields.clash("num_global_key_value_heads", f"({kv_heads}) does not divide the {attention.heads} attention heads", HEADS[0])
    if fields.flag("attention_k_eq_v", default=False):
        fields.note("full layers use their keys as values (attention_k_eq_v): counted with a value projection of their own")
    return replace(attention, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=head_dim)


def latent_attention(fields: Fields) -> Attention:
    """Read multi-head latent attention: one latent of kv_lora_rank + qk_rope_head_dim elements a token, shared by all heads."""
    heads = fields.need(*HEADS, maximum=65_536)
    nope = fields.need("qk_nope_head_dim")
    rope = fields.need("qk_rope_head_dim", minimum=0)
    indexed = fields.has("index_n_heads", "index_head_dim", "index_topk")
    return Attention(
        kind=AttentionKind.MLA,
        heads=heads,
        kv_heads=1,
        head_dim=nope + rope,
        value_head_dim=fields.need("v_head_dim"),
        q_lora_rank=fields.check("q_lora_rank"),
        kv_lora_rank=fields.need("kv_lora_rank"),
        nope_head_dim=nope,
        rope_head_dim=rope,
        index_heads=fields.need("index_n_heads") if indexed else None,
        index_head_dim=fields.need("index_head_dim") if indexed else None,
        index_topk=fields.need("index_topk") if indexed else None,
        output_gate=fields.flag("mla_use_output_gate", default=False),
    )
