from __future__ import annotations

import pickle

import pytest

from planner.catalog.dtypes import BYTES_PER_ELEMENT
from planner.catalog.facts import BASES, Fact
from planner.catalog.gpus import gpu, gpus
from planner.catalog.links import links
from planner.diagnostics import PlannerError

GIB = 2.0**30
TERA = 1e12

each_gpu = pytest.mark.parametrize("entry", gpus(), ids=lambda entry: entry.name)


@each_gpu
def test_every_figure_has_a_basis_and_a_source(entry):
    figures = [entry.memory, entry.memory_bandwidth, *entry.flops.values()]
    assert all(isinstance(figure, Fact) and figure.basis in BASES for figure in figures)
    assert all(len(figure.source) > 8 for figure in figures)
    assert entry.source


@each_gpu
def test_figures_are_of_a_gpu(entry):
    assert 0.85 * entry.nominal_memory < entry.memory.value < entry.nominal_memory
    assert 200e9 < entry.memory_bandwidth.value < 20e12
    assert all(20 * TERA < figure.value < 20_000 * TERA for figure in entry.flops.values())
    assert entry.scale_up_domain >= 1
    assert (entry.scale_up is None) == (entry.scale_up_domain == 1)


@each_gpu
def test_dtypes_and_links_are_those_of_the_catalog(entry):
    known = {link.name for link in links()}
    assert set(entry.flops) <= set(BYTES_PER_ELEMENT)
    assert entry.pcie in known
    assert entry.scale_up is None or entry.scale_up in known


@each_gpu
def test_narrower_floats_are_never_slower(entry):
    flops = {dtype: figure.value for dtype, figure in entry.flops.items()}
    half = flops.get("bf16", flops.get("fp16"))
    assert half is not None
    assert flops.get("fp8", half) >= half
    for four in ("nvfp4", "mxfp4"):
        assert flops.get(four, flops.get("fp8", half)) >= flops.get("fp8", half)


@each_gpu
def test_fp8_and_bf16_come_with_the_architecture(entry):
    if entry.compute_capability is None:
        assert entry.vendor != "nvidia"
        return
    assert entry.computes("bf16") == (entry.compute_capability >= 8.0)
    assert entry.computes("fp8") == (entry.compute_capability >= 8.9)
    assert entry.computes("nvfp4") == (entry.compute_capability >= 10.0)


# Dense figures: half of what data sheets print for sparse weights.
DENSE = {
    "v100-sxm2-32gb": ("fp16", 125),
    "t4-16gb": ("fp16", 65),
    "a10-24gb": ("bf16", 125),
    "l4-24gb": ("bf16", 121),
    "a100-sxm-80gb": ("bf16", 312),
    "a6000-48gb": ("bf16", 154.8),
    "a40-48gb": ("bf16", 149.7),
    "a30-24gb": ("bf16", 165),
    "l40s-48gb": ("bf16", 362.05),
    "rtx-4090-24gb": ("bf16", 165.2),
    "h100-sxm-80gb": ("bf16", 989.4),
    "h100-pcie-80gb": ("bf16", 756),
    "h100-nvl-94gb": ("bf16", 835.5),
    "h200-sxm-141gb": ("fp8", 1978.9),
    "h20-96gb": ("bf16", 148),
    "b200-180gb": ("bf16", 2250),
    "b300-270gb": ("nvfp4", 13_500),
    "gb200-186gb": ("nvfp4", 10_000),
    "gb300-279gb": ("int8", 165),
    "mi300x-192gb": ("bf16", 1307.4),
    "mi355x-288gb": ("mxfp4", 10_066.3),
    "tpu-v5e-16gb": ("int8", 394),
}


@pytest.mark.parametrize(("name", "figure"), DENSE.items())
def test_dense_rates_are_those_of_the_data_sheets(name, figure):
    dtype, teraflops = figure
    assert gpu(name).flops[dtype].value == pytest.approx(teraflops * TERA, rel=1e-3)


# Totals that drivers reported in public logs [GiB].
REPORTED = {
    "h100-sxm-80gb": 79.18,
    "a100-sxm-80gb": 79.15,
    "a100-sxm-40gb": 39.4,
    "t4-16gb": 14.6,
    "a6000-48gb": 47.5,
    "h200-sxm-141gb": 139.72,
    "rtx-4090-24gb": 23.55,
    "b200-180gb": 178.35,
    "a10-24gb": 22.0,
    "l4-24gb": 22.0,
    "gb200-186gb": 184.3,
}


@pytest.mark.parametrize(("name", "reported"), REPORTED.items())
def test_memory_is_what_drivers_report(name, reported):
    assert gpu(name).memory.value / GIB == pytest.approx(reported, rel=0.005)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("h100-sxm-80gb", "h100-sxm-80gb"),
        ("H100 SXM", "h100-sxm-80gb"),
        ("H100-SXM-80GB", "h100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090-24gb"),
        ("l40s", "l40s-48gb"),
        ("B200", "b200-180gb"),
        ("GB200 NVL72", "gb200-186gb"),
        ("AMD Instinct MI300X", "mi300x-192gb"),
        ("RTX A6000-48GB", "a6000-48gb"),
    ],
)
def test_names_as_people_and_drivers_write_them(asked, found):
    assert gpu(asked).name == found


@pytest.mark.parametrize(
    ("asked", "near"), [("h100", "h100-sxm-80gb"), ("A100", "a100-sxm-40gb"), ("h100-smx-80gb", "h100-sxm-80gb"), ("mi300", "mi300x-192gb")]
)
def test_a_wrong_or_ambiguous_name_is_refused_with_the_nearest(asked, near):
    with pytest.raises(PlannerError) as caught:
        gpu(asked)
    (fault,) = caught.value.diagnostics
    assert fault.code == "UNKNOWN_GPU"
    assert near in fault.hint


@pytest.mark.parametrize("asked", ["", "   ", "quantum", "\0", "ß" * 5000])
def test_nonsense_is_refused_without_a_suggestion_out_of_thin_air(asked):
    with pytest.raises(PlannerError) as caught:
        gpu(asked)
    assert caught.value.diagnostics[0].code == "UNKNOWN_GPU"


def test_names_and_aliases_are_unambiguous():
    names = [entry.name for entry in gpus()]
    assert len(set(names)) == len(names)
    for entry in gpus():
        assert all(gpu(alias) is entry for alias in (entry.name, *entry.aliases))


def test_a_gpu_travels_between_processes():
    assert pickle.loads(pickle.dumps(gpu("h100-sxm-80gb"))) == gpu("h100-sxm-80gb")
