"""The auditor's own arithmetic against published logs, and against the cost model on every model of the catalog."""

from __future__ import annotations

import ast
import itertools
import random
from pathlib import Path

import numpy as np
import pytest

import planner.audit
from planner.audit.checks.legality import Layout
from planner.audit.checks.legality import violations as audited
from planner.audit.checks.memory import WEIGHTS_TOLERANCE
from planner.audit.kv_cache import Context, mixes_windows, sequence_bytes_by_stage
from planner.audit.weights import weights_by_stage
from planner.candidates.legality import violations as planned
from planner.catalog.engine_choice import engine_for
from planner.catalog.engines import engine
from planner.catalog.gpus import gpu, gpus
from planner.catalog.models import model, models
from planner.cost.memory import memory
from planner.cost.setting import Precision, Setting, ShapeArrays
from planner.diagnostics import errors
from planner.plan.shape import Degrees
from planner.problem.precision import ASSUMED_SCHEMES

GIB = 2**30
# Recurrent mixers whose projections are known by shape; of others only the number of parameters is, which no block divides or does not.
PROJECTED = {"mamba2", "gated_delta"}
DEGREES = (
    Degrees(1),
    Degrees(2),
    Degrees(4),
    Degrees(8),
    Degrees(8, 2),
    Degrees(4, 4),
    Degrees(8, 1, 8),
    Degrees(1, 1, 8, 8),
    Degrees(2, 3, 8, 4),
)


@pytest.mark.parametrize(
    ("name", "version", "tensor_parallel", "partition", "published_gib"),
    [
        # llm-d-incubation/llm-d-planner, docs/empirical-vllm-memory-results.md: model loading lines of vLLM
        ("llama-3.1-8b", None, 1, (32,), 14.99),
        ("qwen3-32b", None, 1, (64,), 61.03),
        ("qwen3-32b", None, 2, (64,), 30.59),
        ("gpt-oss-20b", None, 1, (24,), 13.47),
        # vllm-project/vllm issues 23278 and 13061, kvcached pull request 448
        ("gpt-oss-120b", "0.10", 1, (36,), 65.97),
        ("deepseek-r1-distill-qwen-14b", None, 2, (48,), 13.95),
        ("qwen2.5-0.5b", None, 1, (24,), 0.93),
    ],
)
def test_weights_are_those_of_published_logs(name, version, tensor_parallel, partition, published_gib):
    architecture = model(name)
    scheme = architecture.quantization
    precision = Precision("bf16" if scheme is None else scheme.weights, "bf16", "bf16", scheme)
    (held,) = weights_by_stage(architecture, precision, engine("vllm", version), Degrees(tensor_parallel), partition)
    assert float(held) / GIB == pytest.approx(published_gib, rel=0.015)


def test_kv_cache_is_that_of_published_logs():
    """Llama-3.1-8B holds 128 KiB a token: 3.78 GiB for 30,960 tokens in a start-up log on an RTX 3090."""
    architecture = model("llama-3.1-8b")
    context = Context(tokens=30_960, block=16)
    (held,) = sequence_bytes_by_stage(architecture, Precision("bf16", "bf16", "bf16"), Degrees(1), (32,), context)
    assert float(held) / GIB == pytest.approx(3.78, rel=0.002)


def test_latent_attention_is_not_divided_by_tensor_parallelism():
    architecture = model("deepseek-v3")
    precision = Precision("fp8", "bf16", "bf16", architecture.quantization)
    one, eight = (sequence_bytes_by_stage(architecture, precision, Degrees(degree), (61,), Context(4096, 1))[0] for degree in (1, 8))
    assert one == eight == 61 * (512 + 64) * 2 * 4096


def precisions(architecture):
    """Number formats a model may run in: its own, and assumed ones."""
    own = architecture.quantization
    if own is not None:
        yield Precision(own.weights, "bf16", "bf16", own)
    if own is not None and architecture.compressed:
        yield Precision(own.weights, "fp8", "bf16", own)
    yield Precision("bf16", "bf16", "bf16")
    for weights in ("fp8", "int4"):
        yield Precision(weights, "fp8", "bf16", ASSUMED_SCHEMES[weights])


def disagreements(architecture, rng, context):
    """Layouts of a model whose weights or KV cache the auditor counts apart from the cost model.

    The KV cache agrees within 1 %. The cost model rounds weights as an engine's allocator does, which the auditor's count does not: up to half a per cent more for most
    models, over one for shards of a few dozen MB; the audit's own tolerance bounds it.
    """
    card = gpu("h200-sxm-141gb")
    for name, precision, degrees in itertools.product(("vllm", "sglang", "tensorrt-llm", "vllm 0.8"), precisions(architecture), DEGREES):
        rules = engine_for(name, architecture)
        if errors(planned(architecture, precision, rules, card, degrees)) or rng.random() > 0.4:
            continue
        setting = Setting(architecture, precision, f"{rules.name} {rules.version}", card, (), context - 100.0, 100.0, 8192, context, 0.9)
        columns = (
            degrees.tensor_parallel,
            degrees.pipeline_parallel,
            degrees.expert_parallel,
            degrees.data_parallel,
            degrees.data_parallel,
        )
        shapes = ShapeArrays(*(np.array([value], dtype=np.int64) for value in (*columns, 0, 0, 1, 0)))
        table = memory(setting, shapes)
        stage, partition = int(table.stage[0]), table.partitions[0]
        held = weights_by_stage(architecture, precision, rules, degrees, partition)[stage]
        window = rules.sliding_window != "full" or not mixes_windows(architecture)
        kept = sequence_bytes_by_stage(architecture, precision, degrees, partition, Context(context, rules.block_size, window))[stage]
        for own, theirs, most in ((held, table.weights[0], WEIGHTS_TOLERANCE), (kept, table.kv_per_sequence[0], 0.01)):
            if abs(float(own) - theirs) > most * theirs:
                yield architecture.name, name, precision.weights, str(degrees), float(own), float(theirs)


@pytest.mark.thorough
@pytest.mark.parametrize("context", [300, 5000, 40000])
def test_counts_agree_with_the_cost_model_on_every_model(context):
    rng = random.Random(context)
    assert [found for architecture in models() for found in disagreements(architecture, rng, context)] == []


def test_counts_agree_with_the_cost_model_on_some_models():
    rng = random.Random(7)
    sample = (
        "llama-3.1-70b",
        "deepseek-v3.2",
        "deepseek-v4-pro",
        "gpt-oss-120b",
        "qwen3-next-80b-a3b",
        "nemotron-3-nano-30b-a3b",
        "gemma-3-27b",
        "qwen2.5-vl-7b",
    )
    assert [found for name in sample for found in disagreements(model(name), rng, 5000)] == []


def legality_disagreements(count, seed):
    """Random layouts that the menu's rules and the auditor's judge differently."""
    rng = random.Random(seed)
    catalog, cards = models(), gpus()
    for _ in range(count):
        architecture, card = rng.choice(catalog), rng.choice(cards)
        if any(kind.recurrent is not None and kind.recurrent.kind not in PROJECTED for kind in architecture.layer_kinds):
            continue
        rules = engine_for(rng.choice(["vllm", "sglang", "tensorrt-llm", "vllm 0.8.1", "vllm 0.5", "sglang 0.5.18"]), architecture)
        precision = rng.choice([*precisions(architecture), Precision("fp16", "fp16", "fp16")])
        tensor, data = rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 32]), rng.choice([1, 1, 1, 2, 4, 8])
        expert = rng.choice([1, tensor * data, *(degree for degree in range(1, tensor * data + 1) if tensor * data % degree == 0)])
        degrees = Degrees(tensor, 1, expert, data)
        theirs = {diagnostic.code for diagnostic in errors(planned(architecture, precision, rules, card, degrees))}
        own = {code for code, _, _ in audited(Layout(architecture, precision, rules, card, degrees))}
        if theirs != own:
            yield architecture.name, rules.name, rules.version, card.name, precision.weights, str(degrees), theirs ^ own


def test_legality_agrees_with_the_menu():
    assert list(legality_disagreements(500, seed=1)) == []


@pytest.mark.thorough
def test_legality_agrees_with_the_menu_on_many_layouts():
    assert list(legality_disagreements(30_000, seed=2)) == []


def test_the_auditor_shares_no_code_with_what_it_audits():
    forbidden = (
        "planner.solve",
        "planner.candidates",
        "planner.answer",
        "planner.cost.memory",
        "planner.cost.tensors",
        "planner.cost.partition",
    )
    allowed_cost = {"planner.cost.evaluation", "planner.cost.setting", "planner.cost.tails"}  # times, and nothing else
    for path in Path(planner.audit.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in getattr(node, "names", [])]
            for name in names if isinstance(node, ast.Import | ast.ImportFrom) else []:
                assert not name.startswith(forbidden), (path.name, name)
                assert not name.startswith("planner.cost") or name in allowed_cost, (path.name, name)
