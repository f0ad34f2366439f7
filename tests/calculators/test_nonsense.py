"""Nonsense gets one clear answer that names every flag at fault, never a traceback."""

from __future__ import annotations

import contextlib
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cli.app import run

BASE = ["--model", "llama-3-8b", "--gpu", "h100-sxm-80gb"]
COMMANDS = ("estimate", "scaling", "crossover", "regimes", "memory")
FLAGS = (
    "--tp", "--pp", "--ep", "--dp", "--batch", "--prompt-tokens", "--output-tokens", "--weights", "--kv-cache", "--engine", "--link", "--nic",
    "--nics-per-gpu", "--domain", "--nodes", "--alpha", "--bandwidth", "--gpu-memory-utilization", "--max-model-len", "--max-batched-tokens",
    "--price", "--weight-bytes", "--parameters", "--profile", "--model", "--gpu",
)  # fmt: skip


def outcome(arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    return int(code), out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("flag", "value", "code"),
    [
        ("--tp", "0", "OUT_OF_RANGE"),
        ("--tp", "-2", "OUT_OF_RANGE"),
        ("--pp", "1.5", "NOT_AN_INTEGER"),
        ("--dp", "two", "NOT_AN_INTEGER"),
        ("--batch", "1e12", "OUT_OF_RANGE"),
        ("--batch", "nan", "NOT_FINITE"),
        ("--batch", "1" * 5000, "NOT_FINITE"),
        ("--prompt-tokens", "-1", "OUT_OF_RANGE"),
        ("--output-tokens", "inf", "NOT_FINITE"),
        ("--tp", "1,,2", "EMPTY_LIST"),
        ("--model", "llama-99", "UNKNOWN_MODEL"),
        ("--gpu", "h9000", "UNKNOWN_GPU"),
        ("--link", "token-ring", "UNKNOWN_LINK"),
        ("--link", "400Gb", "WRONG_UNIT"),
        ("--link", "-5GB/s", "OUT_OF_RANGE"),
        ("--nic", "nvlink4", "UNKNOWN_LINK"),
        ("--engine", "word", "UNKNOWN_ENGINE"),
        ("--weights", "fp7", "WRONG_CHOICE"),
        ("--kv-cache", "int1", "WRONG_CHOICE"),
        ("--price", "-1", "OUT_OF_RANGE"),
        ("--price", "cheap", "NOT_A_QUANTITY"),
        ("--alpha", "3", "MISSING_UNIT"),
        ("--bandwidth", "0GB/s", "OUT_OF_RANGE"),
        ("--domain", "0", "OUT_OF_RANGE"),
        ("--nodes", "many", "NOT_AN_INTEGER"),
        ("--nics-per-gpu", "0", "OUT_OF_RANGE"),
        ("--gpu-memory-utilization", "120%", "OUT_OF_RANGE"),
        ("--max-model-len", "100", "CONTEXT_TOO_LONG"),
        ("--weight-bytes", "141GB", "PAPER_COUNT_ONLY"),
        ("--tp", ",".join(map(str, range(1, 1500))), "TOO_MANY_VALUES"),
    ],
)
def test_one_fault(flag, value, code):
    given_twice = {"--model": ["--gpu", "h100-sxm-80gb"], "--gpu": ["--model", "llama-3-8b"]}.get(flag, BASE)
    status, out, err = outcome(["estimate", *given_twice, flag, value])
    assert status == 1
    assert out == ""
    assert f"{flag}: " in err
    assert f"[{code}]" in err
    assert "Traceback" not in err


def test_every_fault_at_once():
    line = "estimate --model llama-99,lama --gpu h9000 --tp 0,x --batch nan --price -1 --weights fp7 --prompt-tokens 0 --domain -3"
    status, out, _ = outcome([*line.split(), "--json"])
    assert status == 1
    document = json.loads(out)
    assert document["status"] == "invalid"
    named = [item["path"] for item in document["diagnostics"]]
    assert set(named) == {"--model", "--gpu", "--tp", "--batch", "--price", "--weights", "--prompt-tokens", "--domain"}
    assert len(named) == 10


def test_a_config_without_heads_says_what_is_missing(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32}))
    status, _, err = outcome(["estimate", "--model", str(path), "--gpu", "h100-sxm-80gb"])
    assert status == 1
    assert "num_attention_heads" in err


def test_a_model_file_is_read(tmp_path):
    path = tmp_path / "config.json"
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16", "max_position_embeddings": 8192,
    }  # fmt: skip
    path.write_text(json.dumps(config))
    status, out, err = outcome(["estimate", "--model", str(path), "--gpu", "h100-sxm-80gb", "--json"])
    assert status == 0, err
    mine = json.loads(out)["answers"][0]
    known = json.loads(outcome(["estimate", *BASE, "--json"])[1])["answers"][0]
    assert mine["times"] == known["times"]


@pytest.mark.parametrize("text", ["not,a,table\n1,2,3\n", "hidden_size,batch,sequence_length,seconds\n4096,1,x,0.1\n", "", "\x00\x01"])
def test_tables_of_text_are_refused(tmp_path, text):
    path = tmp_path / "layers.csv"
    path.write_text(text)
    status, out, err = outcome(["estimate", *BASE, "--compute-csv", str(path)])
    assert status == 1
    assert out == ""
    assert "--compute-csv" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", COMMANDS)
def test_usage_errors_end_with_two(command):
    assert outcome([command])[0] == 2
    assert outcome([command, *BASE, "--no-such-flag"])[0] == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_profile_is_named(command):
    status, out, err = outcome([command, *BASE, "--profile", "guess"])
    assert status == 1
    assert out == ""
    assert "UNKNOWN_PROFILE" in err


def test_memory_asks_for_a_gpu():
    status, _, err = outcome(["memory", "--model", "llama-3-8b"])
    assert status == 1
    assert "--gpu-memory" in err


@pytest.mark.parametrize("value", ["0", "-3", "nan", "1e9", "x", ""])
def test_memories_that_no_gpu_has(value):
    status, _, err = outcome(["memory", "--model", "llama-3-8b", "--gpu-memory", value])
    assert status == 1
    assert "--gpu-memory: " in err


words = st.one_of(
    st.text(max_size=12),
    st.integers(-(10**15), 10**15).map(str),
    st.floats().map(str),
    st.sampled_from(
        [
            "nan",
            "-0",
            "1e400",
            "0x10",
            "１６",
            "2us",
            "80GB",
            "400Gb/s",
            "$3/h",
            "70%",
            "study:",
            "study:gloo_measured",
            "-",
            "--",
            "~",
            ".",
        ]
    ),
)


TYPED = {"command": st.sampled_from(COMMANDS), "flags": st.lists(st.tuples(st.sampled_from(FLAGS), words), max_size=4)}


def assert_read_or_refused(command, flags):
    arguments = [command, *BASE]
    for flag, value in flags:
        arguments += [f"{flag}={value}"]
    status, out, err = outcome([*arguments, "--json"])
    assert status in {0, 1, 2}, err
    assert "Traceback" not in err
    if status == 0:
        assert json.loads(out)["format_version"] == 1


@settings(max_examples=10, deadline=None)
@given(**TYPED)
def test_any_text_in_any_flag(command, flags):
    assert_read_or_refused(command, flags)


@pytest.mark.thorough
@settings(max_examples=200, deadline=None)
@given(**TYPED)
def test_much_text_in_any_flag(command, flags):
    assert_read_or_refused(command, flags)


DEGREES = {
    "tp": st.integers(1, 80),
    "pp": st.integers(1, 80),
    "ep": st.integers(1, 64),
    "dp": st.integers(1, 16),
    "batch": st.integers(1, 4096),
    "model": st.sampled_from(["llama-3-8b", "deepseek-v3", "gpt-oss-120b", "qwen3-next-80b-a3b", "gemma-3-27b"]),
    "gpu": st.sampled_from(["h100-sxm-80gb", "l40s-48gb", "mi300x-192gb", "gb200-186gb", "v100-sxm2-32gb"]),
    "profile": st.sampled_from(["hockney", "calibrated"]),
}


def assert_priced(tp, pp, ep, dp, batch, model, gpu, profile):
    line = f"estimate --model {model} --gpu {gpu} --tp {tp} --pp {pp} --ep {ep} --dp {dp} --batch {batch} --profile {profile} --json"
    status, out, err = outcome(line.split())
    assert status in {0, 1}, err
    if status == 1:
        assert "TOO_MANY_VALUES" in err
        return
    answer = json.loads(out)["answers"][0]
    assert answer["times"]["tpot_s"] > 0
    assert answer["times"]["efficiency"] > 0
    assert len(answer["checks"]) == 10
    assert answer["recommendation"]["message"]
    assert ("CROSS_NODE_TP" in {item["code"] for item in answer["findings"]}) == (tp > answer["domain"])


@settings(max_examples=8, deadline=None)
@given(**DEGREES)
def test_any_degrees_are_priced(tp, pp, ep, dp, batch, model, gpu, profile):
    assert_priced(tp, pp, ep, dp, batch, model, gpu, profile)


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(**DEGREES)
def test_many_degrees_are_priced(tp, pp, ep, dp, batch, model, gpu, profile):
    assert_priced(tp, pp, ep, dp, batch, model, gpu, profile)
