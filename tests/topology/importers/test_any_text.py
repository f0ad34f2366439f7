"""Whatever text a reader is given, it answers with a reading or with diagnostics, and what it read can be put together or is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.catalog.gpus import gpu
from planner.diagnostics import PlannerError
from planner.topology.importers.completing import Assumptions
from planner.topology.importers.facts import NicFacts
from planner.topology.importers.guid_map import read_guid_map
from planner.topology.importers.importing import SourceFile, import_topology
from planner.topology.importers.kinds import KINDS, read_file
from planner.topology.importers.prices import read_prices

INPUTS = Path(__file__).parent / "inputs"

SEEDS = {
    "nvidia-smi": ["nvidia_smi_h100.txt", "nvidia_smi_v100_mesh.txt", "nvidia_smi_gpu_off.txt"],
    "rocm-smi": ["rocm_smi_mi300x.txt"],
    "nccl": ["nccl_dump.xml", "nccl_partial.xml", "rccl_dump.xml"],
    "ibnetdiscover": ["ibnetdiscover.txt", "ibsim.net"],
    "iblinkinfo": ["iblinkinfo.txt"],
    "slurm": ["slurm_tree.conf", "slurm_block.conf", "slurm.yaml"],
    "topograph": ["topograph.yaml", "topograph_capacity.yaml"],
    "kubernetes": ["kubernetes.json", "kubernetes_racks.json"],
    "kueue": ["kueue.yaml"],
}
WORDS = [
    "GPU0",
    "NV18",
    "X",
    "[",
    "]",
    "-",
    ":",
    "\n",
    "\t",
    " ",
    '"',
    "<",
    ">",
    "/",
    "&a",
    "*a",
    "{",
    "}",
    ",",
    "0",
    "99999999999",
    "-1",
    "h[1-3]",
    "\x1b[4m",
    "é",
    "\ud7ff",
    "=",
    "#",
]


def outcome(act):
    """What came out: the result, or the diagnostics; any other exception is the test's own failure."""
    try:
        return act(), ()
    except PlannerError as error:
        return None, error.diagnostics


def attempt(kind: str, text: str) -> None:
    """Read and, where that worked, import."""
    reading, told = outcome(lambda: read_file(kind, text, "file"))
    assert reading is not None or all(item.code and item.message for item in told)
    assert reading is not None or told
    for name in ("h100-sxm-80gb", "gb200-186gb", "mi300x-192gb", "l40s-48gb") if reading is not None else ():
        assumptions = Assumptions(gpu(name), 8, NicFacts(8, 50e9, "roce"))
        found, told = outcome(lambda assumed=assumptions: import_topology(kind, [SourceFile("file", text)], assumptions=assumed))
        assert told if found is None else found.fabric.nodes


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=40).map("".join))
@settings(max_examples=40, deadline=None)
def test_any_text_is_read_or_refused(kind, text):
    attempt(kind, text)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_damage_to_a_good_file_is_read_or_refused(kind, data):
    text = (INPUTS / data.draw(st.sampled_from(SEEDS[kind]))).read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.sampled_from([0, 1, 2, 5, 40]))
        text = text[:start] + data.draw(st.one_of(st.just(""), st.sampled_from(WORDS), st.text(max_size=4))) + text[start + length :]
    attempt(kind, text)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_damaged_files(kind):
    chance = random.Random(kind)
    texts = [(INPUTS / name).read_text(encoding="utf-8") for name in SEEDS[kind]]
    for _ in range(1500):
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 8)):
            start, length = chance.randrange(len(text) + 1), chance.choice([0, 1, 3, 20, 200])
            text = text[:start] + chance.choice([*WORDS, "", chance.choice(texts)[start : start + 30]]) + text[start + length :]
        attempt(kind, text)


@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(st.sampled_from([*WORDS, "gpu,count,usd_per_hour\n", "H100-SXM-80GB,8,20\n"]), max_size=20).map("".join),
    )
)
@settings(max_examples=100, deadline=None)
def test_any_prices_and_guid_maps_are_read_or_refused(text):
    for read in (read_prices, read_guid_map):
        found, told = outcome(lambda reader=read: reader(text, "file"))
        assert found is not None or told
