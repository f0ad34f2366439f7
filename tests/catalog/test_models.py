from __future__ import annotations

import json

import pytest

from planner.catalog.dtypes import BYTES_PER_ELEMENT
from planner.catalog.models import model, model_names, models, refused_models
from planner.catalog.nearest import plain
from planner.catalog.read import DATA, read_table
from planner.diagnostics import PlannerError

# Known by name, refused for what their published configs (or the abridged copies of them) leave out.
REFUSED = {
    "minimax-m3-nvfp4": {"quantization_config.quantized_layers"},
    "nemotron-3.5-lightning-30b-a3b-nvfp4": {"hf_quant_config.quantized_layers"},
    "qwen3.6-27b-nvfp4": {"quantization_config.quantized_layers"},
    "qwen3.6-35b-a3b-nvfp4": {"quantization_config.quantized_layers"},
}


def test_the_refused_models_and_what_each_lacks():
    found = {}
    for name, error in refused_models().items():
        (fault,) = error.diagnostics
        assert fault.code == "MODEL_NOT_UNDERSTOOD"
        found[name] = set(fault.message.rpartition(": ")[2].split(", "))
    assert found == REFUSED


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_model_says_so_when_asked_for(name):
    with pytest.raises(PlannerError) as caught:
        model(name)
    assert all(field in str(caught.value) for field in REFUSED[name])


@pytest.mark.parametrize("name", model_names())
def test_every_entry_has_a_source(name):
    entry = read_table(f"models/{name}.json")
    assert entry["name"] == name
    assert "config.json" in entry["source"]
    assert set(entry) <= {"name", "aliases", "source", "assumed", "config"}


def test_names_lead_to_files_and_every_file_is_named():
    files = {path.stem for path in (DATA / "models").glob("*.json")}
    assert files == set(model_names())
    names = json.loads((DATA / "model_names.json").read_text())
    for stem in files:
        entry = read_table(f"models/{stem}.json")
        assert all(names[plain(name)] == stem for name in (stem, *entry["aliases"]))
    assert set(names) == {plain(name) for stem in files for name in (stem, *read_table(f"models/{stem}.json")["aliases"])}


@pytest.mark.parametrize("architecture", models(), ids=lambda architecture: architecture.name)
def test_every_model_is_sound(architecture):
    assert architecture.source
    assert architecture.dtype in BYTES_PER_ELEMENT
    assert 0 < architecture.layers <= 200
    assert architecture.max_position >= 1024
    assert set(architecture.layer_sequence) == set(range(len(architecture.layer_kinds)))
    assert len(set(architecture.layer_kinds)) == len(architecture.layer_kinds)
    for kind in architecture.layer_kinds:
        assert kind.attention or kind.recurrent or kind.feed_forward
        if kind.attention:
            assert kind.attention.heads % kind.attention.kv_heads == 0
            assert (kind.attention.window is None) == (kind.attention.kind in {"full", "mla", "cross"})
        if kind.recurrent:
            assert kind.recurrent.heads % kind.recurrent.groups == 0
        if kind.feed_forward and kind.feed_forward.experts:
            assert 0 < kind.feed_forward.experts_per_token <= kind.feed_forward.experts
    if architecture.quantization:
        assert architecture.quantization.weights in BYTES_PER_ELEMENT
        assert {"embedding", "head", "router", "norm"} <= set(architecture.quantization.kept_high)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("llama-3.1-405b", "llama-3.1-405b"),
        ("meta-llama/Llama-3.1-405B-Instruct", "llama-3.1-405b"),
        ("META-LLAMA/META-LLAMA-3.1-405B", "llama-3.1-405b"),
        ("Llama 3.1 70B", "llama-3.1-70b"),
        ("Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-r1"),
        ("microsoft/Phi-3-medium-4k-instruct", "phi-3-medium"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("tiiuae/falcon-180B", "falcon-180b"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b-fp8-dynamic"),
    ],
)
def test_models_by_catalog_name_and_by_hugging_face_id(asked, found):
    assert model(asked).name == found


@pytest.mark.parametrize(
    ("asked", "near"), [("llama-3.1-450b", "llama-3.1-405b"), ("qwen3-235b", "qwen3-235b-a22b"), ("deepseek v3.3", "deepseek-v3.2")]
)
def test_an_unknown_model_is_refused_with_the_nearest(asked, near):
    with pytest.raises(PlannerError) as caught:
        model(asked)
    (fault,) = caught.value.diagnostics
    assert fault.code == "UNKNOWN_MODEL"
    assert near in fault.hint


@pytest.mark.parametrize("asked", ["", "../models/llama-2-7b", "llama-2-7b.json", "\0", "/etc/passwd"])
def test_a_name_is_never_a_path(asked):
    with pytest.raises(PlannerError) as caught:
        model(asked)
    assert caught.value.diagnostics[0].code == "UNKNOWN_MODEL"


def test_what_is_assumed_is_told():
    assert any("attention layers are spread evenly" in note for note in model("nemotron-3-ultra-550b-a55b").notes)
    assert any("attention kept in bf16" in note for note in model("deepseek-v3.1-nvfp4").notes)


def test_a_model_is_read_once():
    assert model("gpt2") is model("openai-community/gpt2")
