"""Which degrees an engine's version speculates at, by the rules of the menu and by the auditor's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.audit.checks.legality import Layout
from planner.audit.checks.legality import violations as audited
from planner.candidates.legality import violations
from planner.catalog.architecture import Draft, Speculation
from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.catalog.models import model
from planner.cost.setting import Precision
from planner.diagnostics import errors
from planner.plan.shape import Degrees
from planner.problem.companions import prediction_layers

LLAMA, SMALL, DEEPSEEK = model("llama-3.1-8b"), model("llama-3.2-1b"), model("deepseek-v3")
WITH_DRAFT = replace(LLAMA, draft=Draft(SMALL, 4))
WITH_WHOLE_DRAFT = replace(LLAMA, draft=Draft(SMALL, 4, alone=True))
WITH_NGRAMS = replace(LLAMA, speculation=Speculation(3, 0.3))
WITH_OWN = replace(DEEPSEEK, draft=Draft(prediction_layers(DEEPSEEK), 1, shares_ends=True))


@pytest.mark.parametrize(
    ("architecture", "version", "degrees", "refused"),
    [
        (WITH_DRAFT, "vllm 0.15", Degrees(2, 2), True),
        (WITH_DRAFT, "vllm 0.16", Degrees(2, 2), False),
        (WITH_NGRAMS, "vllm 0.12", Degrees(1, 2), True),
        (LLAMA, "vllm 0.12", Degrees(1, 2), False),
        (WITH_WHOLE_DRAFT, "vllm 0.9", Degrees(2), False),
        (WITH_WHOLE_DRAFT, "vllm 0.15", Degrees(2), True),
        (WITH_WHOLE_DRAFT, "vllm 0.15", Degrees(1), False),
        (WITH_DRAFT, "sglang", Degrees(2), False),
        (WITH_DRAFT, "sglang", Degrees(2, 2), True),
        (WITH_WHOLE_DRAFT, "sglang", Degrees(2), True),
        (WITH_NGRAMS, "sglang", Degrees(4, 1, 1, 2), True),
        (WITH_OWN, "sglang", Degrees(2, 1, 8, 4), False),
        (WITH_OWN, "sglang", Degrees(8, 2), True),
        (WITH_OWN, "tensorrt-llm", Degrees(8, 2), False),
        (WITH_WHOLE_DRAFT, "tensorrt-llm", Degrees(4), True),
    ],
)
def test_speculation_keeps_to_the_degrees_of_its_engine(architecture, version, degrees, refused):
    scheme = architecture.quantization
    precision, rules, card = Precision("fp8" if scheme else "bf16", "bf16", "bf16", scheme), engine(version), gpu("h200-sxm-141gb")
    found = {item.code for item in errors(violations(architecture, precision, rules, card, degrees))}
    seen = {code for code, _, _ in audited(Layout(architecture, precision, rules, card, degrees))}
    assert ("SPECULATION_NOT_SUPPORTED" in found) is ("SPECULATION_NOT_SUPPORTED" in seen) is refused
