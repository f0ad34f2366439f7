"""A problem, its topology and its model written into a folder, for tests that break one of them."""

from __future__ import annotations

import json

import pytest

from planner.diagnostics import PlannerError
from planner.problem.load import load_any

TOPOLOGY = """\
name: two-nodes
nodes:
  - {name: "h100-[01-02]", gpu: h100-sxm-80gb, gpus: 8, scale_up: nvswitch, nics: {count: 8, speed: 400Gb/s}, leaf: leaf-1, price: $24/h}
fabric: {kind: infiniband, oversubscription: 1}
"""

PROBLEM = """\
name: two-nodes
topology: topology.yaml
deployments:
  - name: chat
    model: model/config.json
    precision: {weights: fp8, kv_cache: fp8}
    engine: {name: vllm}
    workload: {prompt_tokens: 2048, output_tokens: 512, concurrency: 32}
    slo: {tpot: 60ms, ttft: 3s}
objective: cost
"""

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "hidden_act": "silu",
}


class Folder:
    """The three files; `write` replaces one of them."""

    PROBLEM, TOPOLOGY, CONFIG = PROBLEM, TOPOLOGY, CONFIG

    def __init__(self, path):
        self.path = path
        (path / "model").mkdir()
        self.write("topology.yaml", TOPOLOGY)
        self.write("model/config.json", json.dumps(CONFIG))
        self.write("problem.yaml", PROBLEM)

    def write(self, name, content):
        file = self.path / name
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content, encoding="utf-8")
        return str(file)

    def name(self, name):
        return str(self.path / name)

    def faults(self, name="problem.yaml", overrides=()):
        """What loading reports, as tuples of code, file name, line, column and path."""
        return [
            (fault.code, fault.place.file.rpartition("/")[2], fault.place.line, fault.place.column, fault.place.path)
            for fault in self.errors(name, overrides)
        ]

    def errors(self, name="problem.yaml", overrides=()):
        with pytest.raises(PlannerError) as caught:
            load_any(self.name(name), overrides)
        assert all(fault.message and fault.hint for fault in caught.value.diagnostics)
        return caught.value.diagnostics


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)
