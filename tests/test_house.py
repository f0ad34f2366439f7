"""Laws of the house: small files, one check and one test for each rule, every code explained, no attic."""

from __future__ import annotations

import re
from pathlib import Path

from planner.catalog.codes import codes

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "planner").rglob("*.py"))
# Words in capitals that are no codes: environment variables, and names of number formats in checkpoints.
OTHER_WORDS = {
    *(
        "NO_COLOR",
        "PYDANTIC_DISABLE_PLUGINS",
        "OMP_NUM_THREADS",
        "GLOO_SOCKET_IFNAME",
        "VLLM_PP_LAYER_PARTITION",
        "SGLANG_PP_LAYER_PARTITION",
    ),
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"),
    *("HF_TOKEN", "IPC_LOCK", "LWS_LEADER_ADDRESS", "NODE_NAME", "VLLM_RAY_BUNDLE_INDICES"),
    *("FP8_PER_CHANNEL_PER_TOKEN", "MIXED_PRECISION", "NVFP4_AWQ", "W4A16_AWQ", "W4A8_AWQ"),
}
ATTIC = {"utils", "util", "common", "core", "base", "helpers", "helper", "misc"}


def test_no_file_is_two_ideas():
    """A source file stays under about 300 lines."""
    long = {str(path.relative_to(ROOT)): lines for path in SOURCES if (lines := len(path.read_text().splitlines())) > 320}
    assert not long


def test_no_room_is_an_attic():
    """Files and folders are named for what they are for."""
    assert not [path for path in SOURCES if path.stem in ATTIC or path.parent.name in ATTIC]


def test_every_rule_has_a_check_and_a_test():
    """Each rule of the formulation is audited by a check of the same name and tested by a file of the same name."""
    rules = {path.stem for path in (ROOT / "planner/solve/rules").glob("*.py")} - {"__init__"}
    checks = {path.stem for path in (ROOT / "planner/audit/checks").glob("*.py")} - {"__init__"}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests/rules").glob("test_*.py")}
    assert rules
    assert rules <= checks
    assert rules == tests


def test_every_code_is_explained():
    """Each diagnostic code that the sources use is listed with its meaning and repair, and none is listed that nobody uses."""
    text = "\n".join(path.read_text() for path in SOURCES if path.name != "codes.py")
    data = "\n".join(path.read_text() for path in (ROOT / "planner/catalog/data").glob("*.toml") if path.name != "codes.toml")
    used = set(re.findall(r"[\"']([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)[\"']", text + data))
    assert used - OTHER_WORDS - set(codes()) == set()
    assert set(codes()) - used == set()
    assert all(meaning and repair for meaning, repair in codes().values())
