"""Sizes of a model small enough to count by hand, as its config would give them."""

from __future__ import annotations

SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}
BASE = {**SIZES, "torch_dtype": "bfloat16"}
