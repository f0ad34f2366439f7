"""Attention over compressed tokens (DeepSeek-V4): bytes against published checkpoints and logs, times against what they must do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.engines import engine
from planner.catalog.models import model
from planner.cost.decode_compressed import bytes_read, decode_flops, entries_read, keys_scored, prompt_flops
from planner.cost.memory_compressed import BLOCK, compressed_sequence_bytes, entry_bytes, key_bytes
from planner.cost.memory_kv import kv_bytes_per_sequence
from planner.cost.memory_weights import layer_bytes, model_bytes, position_bytes
from planner.cost.setting import Precision
from planner.cost.tensors import active_parameters, layer_tensors, model_parameters
from planner.problem.companions import prediction_layers

GIB = 2.0**30
FLASH, PRO = model("deepseek-v4-flash"), model("deepseek-v4-pro")
WINDOW, INDEXED, WHOLE = (FLASH.layer(index).attention for index in (0, 4, 3))


def precision(architecture, kv_cache="fp8"):
    return Precision(architecture.quantization.weights, kv_cache, "bf16", architecture.quantization)


def stored(architecture):
    """Bytes of a checkpoint, its prediction layer included."""
    own = prediction_layers(architecture)
    return model_bytes(architecture, precision(architecture)) + layer_bytes(own.layer_kinds[0], own, precision(own))


@pytest.mark.parametrize(("layer", "published"), [(0, 3_566_148_952), (2, 3_596_055_640), (3, 3_568_596_312), (4, 3_589_851_224)])
def test_layers_are_as_large_as_in_the_headers_of_the_checkpoint(layer, published):
    """deepseek-ai/DeepSeek-V4-Flash, safetensors headers, summed by layer: the window, look-up and indexer, whole entries, indexer."""
    assert layer_bytes(FLASH.layer(layer), FLASH, precision(FLASH)) == pytest.approx(published, abs=2048)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("deepseek-v4-flash", 159_609_485_896),  # total_size of model.safetensors.index.json
        ("deepseek-v4-pro", 864_704_792_696),
        ("deepseek-v4-pro-nvfp4", 913e9),  # nvidia/DeepSeek-V4-Pro-NVFP4 discussion 2
    ],
)
def test_checkpoints_are_as_large_as_published(name, published):
    assert stored(model(name)) == pytest.approx(published, rel=0.001)


def test_parameters_are_the_published_ones():
    """1,598.84 B in the headers of Pro with its prediction layer; 13 B and 49 B active (model cards)."""
    own = prediction_layers(PRO)
    whole = model_parameters(PRO) + sum(tensor.parameters for tensor in layer_tensors(own.layer_kinds[0], own.hidden_size))
    assert whole / 1e9 == pytest.approx(1598.84, rel=0.001)
    assert active_parameters(FLASH) / 1e9 == pytest.approx(13, abs=0.5)
    assert active_parameters(PRO) / 1e9 == pytest.approx(49, abs=0.5)


@pytest.mark.parametrize(("architecture", "gib"), [(FLASH, 6.72), (PRO, 9.62)], ids=["flash", "pro"])
def test_a_million_tokens_in_16_bits(architecture, gib):
    """vLLM blog on DeepSeek-V4, 2026-04-24: without windows and states, which the difference of two lengths leaves out."""
    million = 1_048_576.0
    kept = sum(
        layers
        * (compressed_sequence_bytes(kind.attention, "bf16", 2 * million) - compressed_sequence_bytes(kind.attention, "bf16", million))
        for kind, layers in architecture.kind_counts()
    )
    assert kept / GIB == pytest.approx(gib, abs=0.005)


def test_pages_are_those_of_a_start_up_log():
    """vllm-project/vllm issue 54703 (DeepSeek-V4-Flash, fp8): pages for 256 tokens in all layers, windows, states of both rates."""
    pages = {"entries": 1_002_240, "windows": 823_680 + 786_240, "overlapping states": 870_912, "states": 656_640}
    one = sum(n * compressed_sequence_bytes(kind.attention, "fp8", 4096.0) for kind, n in FLASH.kind_counts())
    other = sum(n * compressed_sequence_bytes(kind.attention, "fp8", 4096.0 + BLOCK) for kind, n in FLASH.kind_counts())
    assert other - one == pages["entries"]
    # Of a long sequence: 2 + 1 pages of 64 tokens, 8 tokens in pages of 4, 128 in pages of 8, each with one page more.
    assert one == 16 * pages["entries"] + 3 * pages["windows"] + 3 * pages["overlapping states"] + 17 * pages["states"]


def test_what_an_entry_takes():
    """584 B of 512 elements (vllm-project/vllm pull request 47716), 1,024 in 16 bits (sgl-project/sglang pull request 28033)."""
    assert (entry_bytes(INDEXED, "fp8"), entry_bytes(INDEXED, "bf16")) == (584.0, 1024.0)
    assert (key_bytes(INDEXED, "fp8"), key_bytes(INDEXED, "bf16"), key_bytes(WHOLE, "fp8")) == (132.0, 256.0, 0.0)


def test_a_full_context_by_a_start_up_log():
    """vllm-project/vllm issue 51041: the preview of Flash on two H20 prints 1,009,661 tokens of 7.01 GiB for a context of 912,128.

    It runs a prediction layer besides, whose windows and copies of pages the count here leaves out: hence the tolerance.
    """
    charged = kv_bytes_per_sequence(FLASH, precision(FLASH), engine("vllm 0.26"), np.array([2]), 912_128.0, 8192.0)[0]
    assert 7.01 * GIB / charged * 912_128 == pytest.approx(1_009_661, rel=0.1)


def test_the_cache_is_whole_on_every_rank_and_never_shrinks():
    lengths = [1.0, 127.0, 128.0, 129.0, 1e3, 1e4, 1e5, 1e6]
    facts = engine("vllm 0.25")
    held = np.array([kv_bytes_per_sequence(PRO, precision(PRO), facts, np.array([1, 8, 16]), length) for length in lengths])
    assert (held == held[:, :1]).all()
    assert (np.diff(held[:, 0]) >= 0.0).all()


@given(st.floats(1.0, 2e6), st.sampled_from([WINDOW, INDEXED, WHOLE]), st.floats(0.0, 1e5))
@settings(max_examples=60, deadline=None)
def test_a_chunk_adds_to_the_cache_and_16_bits_take_more(context, attention, chunk):
    plain = compressed_sequence_bytes(attention, "fp8", context)
    assert plain <= compressed_sequence_bytes(attention, "fp8", context, chunk)
    assert plain > 0.0
    if context > 4096:
        assert plain < compressed_sequence_bytes(attention, "bf16", context)


def test_what_a_new_token_reads():
    context = np.array([64.0, 1024.0, 65_536.0])
    assert entries_read(WINDOW, context).tolist() == [64.0, 128.0, 128.0]
    assert entries_read(INDEXED, context).tolist() == [64.0 + 16, 128.0 + 256, 128.0 + 512]  # all of C / 4 until there are more than 512
    assert entries_read(WHOLE, context).tolist() == [64.5, 136.0, 128.0 + 512]
    assert keys_scored(INDEXED, context).tolist() == [16.0, 256.0, 16_384.0]
    assert keys_scored(WHOLE, context).tolist() == [0.0, 0.0, 0.0]
    assert bytes_read(INDEXED, "fp8", context)[2] == 640 * 584 + 16_384 * 132


def test_reading_is_not_divided_but_attending_is():
    context = np.array([65_536.0, 65_536.0])
    one, eight = decode_flops(INDEXED, np.array([1.0, 8.0]), context)
    scored = 2.0 * 64 * 128 * 16_384
    assert one - scored == pytest.approx(8 * (eight - scored))


@pytest.mark.parametrize("attention", [WINDOW, INDEXED, WHOLE], ids=["window", "indexed", "whole"])
def test_a_prompt_multiplies_what_its_tokens_would(attention):
    """The sum over the tokens of a prompt, one by one, is the closed form."""
    tokens = np.arange(1.0, 6001.0)
    summed = decode_flops(attention, np.ones_like(tokens), tokens).sum()
    assert prompt_flops(attention, np.array([1.0]), np.array([6000.0]))[0] == pytest.approx(summed, rel=0.01)


def test_compressed_layers_turn_by_a_table_of_their_own():
    facts = engine("vllm 0.25")
    assert position_bytes(FLASH, facts) == 2 * position_bytes(PRO, facts) == 2 * 1_048_576 * 64 * facts.position_table_bytes


def test_streams_and_look_up_tables_cost_what_they_hold():
    kind = FLASH.layer(0)
    scored = replace(kind, feed_forward=replace(kind.feed_forward, routing_table=0))
    single = replace(kind, mixed_streams=1)
    whole = layer_bytes(kind, FLASH, precision(FLASH))
    assert whole - layer_bytes(scored, FLASH, precision(FLASH)) == 129_280 * 6 * 8
    assert whole - layer_bytes(single, FLASH, precision(FLASH)) == 2 * 24 * 4 * 4096 * 4
