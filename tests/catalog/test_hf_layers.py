"""Which layers a config describes: attention kinds, windows, recurrent mixers, experts."""

from __future__ import annotations

import pytest

from planner.catalog.architecture import AttentionKind
from planner.catalog.hf_config import read_hf_config
from planner.catalog.models import model
from planner.diagnostics import PlannerError
from tests.catalog.tiny import BASE


def read(model_type, **changes):
    config = {key: value for key, value in {**BASE, "model_type": model_type, **changes}.items() if value != "absent"}
    return read_hf_config(config, "tiny", "written for this test")


def attention_kinds(architecture):
    return [architecture.layer(index).attention and architecture.layer(index).attention.kind.value for index in range(architecture.layers)]


def experts(architecture):
    return [bool(part and part.experts) for part in (architecture.layer(index).feed_forward for index in range(architecture.layers))]


def test_grouped_query_attention():
    attention = read("llama").layer(0).attention
    assert (attention.kind, attention.heads, attention.kv_heads, attention.head_dim, attention.window) == ("full", 8, 2, 8, None)


def test_absent_kv_heads_are_multi_head_attention_and_told():
    architecture = read("llama", num_key_value_heads="absent")
    assert architecture.layer(0).attention.kv_heads == 8
    assert any("num_key_value_heads" in note for note in architecture.notes)


@pytest.mark.parametrize(
    ("model_type", "window", "kinds"),
    [
        ("mistral", 128, ["sliding"] * 4),
        ("mistral", None, ["full"] * 4),
        ("phi3", 128, ["sliding"] * 4),
        ("gemma2", 128, ["sliding", "full", "sliding", "full"]),
        ("qwen2", 128, ["full"] * 4),
        ("llama", 128, ["full"] * 4),
        ("cohere2", 128, ["sliding", "sliding", "sliding", "full"]),
    ],
)
def test_who_slides(model_type, window, kinds):
    assert attention_kinds(read(model_type, sliding_window=window)) == kinds


def test_qwen_slides_only_when_told_to_and_from_where():
    assert attention_kinds(read("qwen2", sliding_window=64, use_sliding_window=True, max_window_layers=3)) == ["full"] * 3 + ["sliding"]


def test_listed_layer_types_win():
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    found = read("gpt_oss", sliding_window=16, layer_types=kinds, num_local_experts=4, num_experts_per_tok=2)
    assert attention_kinds(found) == ["full", "sliding", "sliding", "full"]
    assert found.layer(1).attention.window == 16


def test_unknown_layer_types_are_named():
    with pytest.raises(PlannerError, match="lightning_attention"):
        read("llama", layer_types=["lightning_attention"] * 4)


def test_gemma_4_gives_full_layers_sizes_of_their_own():
    architecture = model("gemma-4-31b")
    sliding, full = architecture.layer(0).attention, architecture.layer(5).attention
    assert (sliding.kind, sliding.window, sliding.kv_heads, sliding.head_dim) == (AttentionKind.SLIDING, 1024, 16, 256)
    assert (full.kind, full.kv_heads, full.head_dim) == (AttentionKind.FULL, 4, 512)
    assert attention_kinds(architecture).count("full") == 10


def test_mimo_v2_gives_sliding_layers_sizes_of_their_own():
    architecture = model("mimo-v2-flash")
    full, sliding = architecture.layer(0).attention, architecture.layer(1).attention
    assert (full.kv_heads, full.head_dim, full.value_head_dim) == (4, 192, 128)
    assert (sliding.kv_heads, sliding.window) == (8, 128)
    assert [index for index in range(48) if architecture.layer(index).attention.kind == "full"] == [0, 5, 11, 17, 23, 29, 35, 41, 47]
    assert experts(architecture) == [False] + [True] * 47


def test_step_gives_sliding_layers_more_query_heads():
    architecture = model("step-3.7-flash")
    assert [architecture.layer(index).attention.heads for index in (0, 1)] == [64, 96]
    assert attention_kinds(architecture).count("sliding") == 33


def test_llama_4_attends_in_chunks_but_for_every_fourth_layer():
    architecture = model("llama-4-maverick")
    assert attention_kinds(architecture)[:4] == ["chunked", "chunked", "chunked", "full"]
    assert architecture.layer(0).attention.window == 8192
    assert experts(architecture)[:4] == [False, True, False, True]
    dense, sparse = architecture.layer(0).feed_forward, architecture.layer(1).feed_forward
    assert (dense.width, sparse.experts, sparse.expert_width, sparse.shared_width) == (16_384, 128, 8192, 8192)


def test_multi_head_latent_attention():
    attention = model("deepseek-v3").layer(0).attention
    assert (attention.kind, attention.heads, attention.kv_heads) == (AttentionKind.MLA, 128, 1)
    assert (attention.kv_lora_rank, attention.rope_head_dim, attention.nope_head_dim, attention.value_head_dim) == (512, 64, 128, 128)
    assert attention.q_lora_rank == 1536
    assert attention.index_heads is None
    assert model("deepseek-v2-lite").layer(0).attention.q_lora_rank is None


def test_the_sparse_indexer():
    assert (model("deepseek-v3.2").layer(0).attention.index_heads, model("glm-5").layer(0).attention.index_heads) == (64, 32)
    m3 = model("minimax-m3")
    assert [m3.layer(index).attention.index_heads for index in (2, 3)] == [None, 4]
    assert m3.layer(3).attention.index_topk == 2048


@pytest.mark.parametrize(
    ("name", "dense"), [("deepseek-v3", 3), ("kimi-k2", 1), ("glm-5", 3), ("step-3.7-flash", 3), ("minimax-m3", 3), ("glm-4.5-air", 1)]
)
def test_the_first_layers_are_dense(name, dense):
    found = experts(model(name))
    assert found == [False] * dense + [True] * (len(found) - dense)


def test_qwen_experts_by_step_and_exceptions():
    changes = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    assert experts(read("qwen3_moe", decoder_sparse_step=2, **changes)) == [False, True, False, True]
    assert experts(read("qwen3_moe", mlp_only_layers=[0, 3], **changes)) == [False, True, True, False]


@pytest.mark.parametrize(
    "form",
    [
        {"moe_layer_freq": [0, 1, 1, 0]},
        {"mlp_layer_types": ["dense", "sparse", "sparse", "dense"]},
        {"moe_layers": [1, 2]},
        {"moe_layers_enum": "1, 2"},
    ],
)
def test_experts_by_list(form):
    changes = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    assert experts(read("glm4_moe", **changes, **form)) == [False, True, True, False]


def test_an_abridged_list_counts_only_where_another_field_settles_it():
    changes = {
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "moe_layer_freq": {"len": 4, "head": [0, 0, 1]},
    }
    assert experts(read("glm4_moe", first_k_dense_replace=2, **changes)) == [False, False, True, True]
    with pytest.raises(PlannerError, match="moe_layer_freq"):
        read("glm4_moe", **changes)


def test_abridged_counts_of_layer_types_must_agree_with_the_rule():
    changes = {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 16}
    assert attention_kinds(read("gpt_oss", layer_types_counts={"full_attention": 2, "sliding_attention": 2}, **changes))[0] == "sliding"
    with pytest.raises(PlannerError, match="layer_types"):
        read("gpt_oss", layer_types_counts={"full_attention": 1, "sliding_attention": 3}, **changes)


def test_shared_experts():
    assert model("deepseek-v3").layer(3).feed_forward.shared_width == 2048
    assert model("deepseek-v2").layer(1).feed_forward.shared_width == 2 * 1536
    assert model("qwen2-57b-a14b").layer(0).feed_forward.shared_width == 20_480
    assert model("qwen3-235b-a22b").layer(0).feed_forward.shared_width == 0


def test_gemma_4_runs_a_dense_mlp_beside_its_experts():
    part = model("gemma-4-26b-a4b").layer(0).feed_forward
    assert (part.width, part.experts, part.experts_per_token, part.expert_width) == (2112, 128, 8, 704)


def test_gated_delta_net():
    architecture = model("qwen3.5-27b")
    state, attention = architecture.layer(0).recurrent, architecture.layer(3).attention
    assert (state.kind, state.heads, state.groups, state.head_dim, state.state_size) == ("gated_delta", 48, 16, 128, 128)
    assert state.state_elements == 48 * 128 * 128
    assert state.conv_elements == (2 * 16 * 128 + 48 * 128) * 3
    assert attention.output_gate
    assert sum(1 for index in range(64) if architecture.layer(index).recurrent) == 48


def test_nemotron_h_has_one_block_a_layer():
    architecture = model("nemotron-3-nano-30b-a3b")
    blocks = [
        (bool(kind.attention), bool(kind.recurrent), bool(kind.feed_forward))
        for kind in map(architecture.layer, range(architecture.layers))
    ]
    assert all(sum(block) == 1 for block in blocks)
    assert [sum(column) for column in zip(*blocks, strict=True)] == [6, 23, 23]
    part = architecture.layer(1).feed_forward
    assert (part.gated, part.experts, part.expert_width, part.shared_width) == (False, 128, 1856, 3712)


def test_nemotron_h_with_dense_blocks_and_with_latent_experts():
    dense = model("nemotron-h-56b")
    assert dense.layer(1).feed_forward.width == 32_768
    assert dense.layer(0).recurrent.state_elements == 256 * 64 * 256
    assert model("nemotron-3-super-120b-a12b-fp8").layer(1).feed_forward.latent_size == 1024


def test_jamba_mixes_all_three():
    architecture = model("jamba-v0.1")
    assert [index for index in range(32) if architecture.layer(index).attention] == [4, 12, 20, 28]
    assert experts(architecture)[:2] == [False, True]
    assert architecture.layer(0).recurrent.state_elements == 8192 * 16


def test_mamba_2_has_no_attention_and_no_mlp():
    architecture = model("mamba-codestral-7b")
    assert architecture.layer_kinds[0].attention is None
    assert architecture.layer_kinds[0].feed_forward is None
    assert architecture.layer_kinds[0].recurrent.groups == 8


def test_kimi_linear_counts_layers_from_one():
    architecture = model("kimi-linear-48b-a3b")
    assert [index for index in range(27) if architecture.layer(index).attention] == [3, 7, 11, 15, 19, 23, 26]
    assert architecture.layer(0).recurrent.state_elements == 32 * 128 * 128


def test_searched_architectures():
    blocks = [
        {"attention": {"n_heads_in_group": 4, "no_op": False}, "ffn": {"ffn_mult": 2.625, "no_op": False}},
        {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"intermediate_size": 96}},
        {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": None, "no_op": True}},
    ]
    architecture = read("nemotron-nas", num_hidden_layers=3, hidden_size=8192, num_attention_heads=64, block_configs=blocks)
    first, second, third = (architecture.layer(index) for index in range(3))
    assert (first.attention.kv_heads, first.feed_forward.width) == (16, 14_336)
    assert second.attention is None
    assert second.feed_forward.width == 96
    assert (third.attention.kv_heads, third.feed_forward) == (8, None)


@pytest.mark.parametrize(
    ("name", "heads", "kv_heads"),
    [("falcon-7b", 71, 1), ("falcon-40b", 128, 8), ("falcon-180b", 232, 8), ("phi-3-medium", 40, 10), ("gpt2", 12, 12)],
)
def test_older_families(name, heads, kv_heads):
    attention = model(name).layer(0).attention
    assert (attention.heads, attention.kv_heads) == (heads, kv_heads)


def test_which_mlps_have_a_gate():
    assert model("llama-2-7b").layer(0).feed_forward.gated
    assert not model("gpt2").layer(0).feed_forward.gated
    assert not model("nemotron-4-340b").layer(0).feed_forward.gated


@pytest.mark.parametrize(
    ("name", "tied"), [("qwen2.5-0.5b", True), ("qwen2.5-72b", False), ("gemma-2-9b", True), ("command-r", True), ("gpt2", True)]
)
def test_tied_embeddings(name, tied):
    assert model(name).tied_embeddings is tied


def test_a_language_model_inside_a_multimodal_one():
    inner = {**BASE, "model_type": "qwen2"}
    vision = {"num_attention_heads": 25, "num_hidden_layers": 45, "hidden_size": 3200, "intermediate_size": 12_800}
    outer = {"model_type": "internvl_chat", "llm_config": inner, "vision_config": vision, "tie_word_embeddings": True}
    architecture = read_hf_config(outer, "tiny", "written for this test")
    assert (architecture.family, architecture.layers, architecture.tied_embeddings) == ("qwen2", 4, True)
    assert architecture.vision.heads == 25
    assert architecture.vision.parameters == 45 * (4 * 3200**2 + 2 * 3200 * 12_800)


def test_a_vision_tower_of_unknown_size_is_not_given_one():
    assert model("qwen3-vl-8b").vision.parameters is None
    assert model("llama-3.1-8b").vision is None


def test_layers_for_speculation_are_counted_apart():
    assert model("deepseek-v3").nextn_layers == 1
    assert model("llama-3.1-8b").nextn_layers == 0
