"""Small models, cards and links that the tests of the calibrated profile share."""

from __future__ import annotations

import numpy as np
import pytest

from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, RecurrentState
from planner.catalog.gpus import gpu
from planner.catalog.links import link
from planner.cost.setting import Precision, Setting, ShapeArrays
from planner.topology.paths import LinkPath

FULL = Attention(AttentionKind.FULL, heads=64, kv_heads=8, head_dim=128, value_head_dim=128)
SLIDING = Attention(AttentionKind.SLIDING, heads=64, kv_heads=8, head_dim=128, value_head_dim=128, window=128)
LATENT = Attention(AttentionKind.MLA, 128, 1, 192, 128, q_lora_rank=1536, kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64)
STATE = RecurrentState("gated_delta", 64, 128, 128, 16, 4, 64 * 128 * 128, 3 * 12288, 90_000_000)
DENSE = FeedForward(width=28672)
ROUTED = FeedForward(experts=128, experts_per_token=8, expert_width=1536)


def architecture(*kinds, layers=64, hidden=8192):
    """A model whose layers cycle through the kinds."""
    sequence = tuple(index % len(kinds) for index in range(layers))
    return ModelArchitecture("test", "llama", hidden, 128256, tuple(kinds), sequence, False, 131072, "bf16", "written for the tests")


def paths(card, nic=50e9):
    """One GPU, one server of eight, and servers joined by a NIC for every GPU."""
    scale_up = link(card.scale_up or card.pcie)
    network = link("infiniband-ndr-400")
    speed = scale_up.bandwidth.value
    return (
        LinkPath("gpu", scale_up, speed, speed, 0),
        LinkPath("domain", scale_up, speed, speed, 2),
        LinkPath("leaf", network, nic, nic, 4, nics_per_gpu=1.0, across_scopes=True),
    )


def make_setting(model, card="h100-sxm-80gb", engine="vllm", prompt=1024.0, output=512.0, **more):
    """A setting of bf16 weights unless `precision` says otherwise."""
    chip = gpu(card)
    fields = {"precision": Precision("bf16", "bf16", "bf16"), "paths": paths(chip), "max_batched_tokens": 8192, "max_model_len": 8192}
    fields |= {"gpu_memory_utilization": 0.9, **more}
    return Setting(architecture=model, engine=engine, gpu=chip, prompt_tokens=prompt, output_tokens=output, **fields)


def make_shapes(*rows):
    """Shapes from (t, p, e, dp, batch), with the levels a server of eight GPUs gives them."""
    t, p, e, dp, batch = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    stage = t * dp

    def level(gpus):
        return np.where(gpus > 8, 2, np.where(gpus > 1, 1, 0))

    scopes = np.maximum(-(-stage // 8), 1)
    return ShapeArrays(t, p, e, dp, batch, level(t), level(stage), scopes, level(stage * p))


@pytest.fixture
def dense_model():
    return architecture(LayerKind(attention=FULL, feed_forward=DENSE))


@pytest.fixture
def routed_model():
    return architecture(LayerKind(attention=FULL, feed_forward=ROUTED), hidden=4096)


@pytest.fixture
def hybrid_model():
    """Full and sliding attention, a latent one with experts, and a recurrent mixer."""
    return architecture(
        LayerKind(attention=FULL, feed_forward=DENSE),
        LayerKind(attention=SLIDING, feed_forward=DENSE),
        LayerKind(attention=LATENT, feed_forward=ROUTED),
        LayerKind(recurrent=STATE, feed_forward=ROUTED),
        hidden=4096,
    )


@pytest.fixture
def slow_and_fast_paths():
    """Function from a card and two NIC speeds to the paths with each."""
    return lambda card, slow, fast: (paths(card, slow), paths(card, fast))


@pytest.fixture
def windowed_model():
    """A model all of whose layers see 128 tokens."""
    return architecture(LayerKind(attention=SLIDING, feed_forward=DENSE))


@pytest.fixture
def setting_of():
    return make_setting


@pytest.fixture
def shapes_of():
    return make_shapes
