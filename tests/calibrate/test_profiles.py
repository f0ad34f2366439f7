"""From logs to a profile file, from the file to the physics of a problem."""

from __future__ import annotations

import json

import numpy as np
import pytest

from planner.calibrate.link_constants import start_form
from planner.calibrate.profile_text import profile_text
from planner.calibrate.report import Given, fit_files
from planner.candidates.settings import pool_settings
from planner.catalog.links import link
from planner.cost.collectives import ring_all_reduce
from planner.cost.collectives_calibrated import all_gather_time, all_reduce_time, send_time
from planner.cost.collectives_hierarchical import hierarchical_all_reduce_time
from planner.cost.hockney import link_constants
from planner.diagnostics import PlannerError
from planner.problem.load import LoadedProfile, load_any, load_problem
from planner.problem.profiles import link_name
from tests.calibrate import logs

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
    model: llama-3.1-70b
    workload: {prompt_tokens: 1024, output_tokens: 256, concurrency: 32}
objective: cost
profile: cluster.yaml
"""
ALPHA, BANDWIDTH = 3e-6, 200e9


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "topology.yaml").write_text(TOPOLOGY, encoding="utf-8")
    (tmp_path / "problem.yaml").write_text(PROBLEM, encoding="utf-8")
    return tmp_path


def write(folder, name, operation, ranks, head="", alpha=ALPHA, bandwidth=BANDWIDTH):
    path = folder / name
    path.write_text(logs.log(operation, ranks, logs.line_times(operation, ranks, alpha, bandwidth), head), encoding="utf-8")
    return str(path)


def profiled(folder, *paths, given=None, base="calibrated", name="cluster"):
    document = fit_files(paths, given or Given()).profile(name, base)
    (folder / "cluster.yaml").write_text(profile_text(document), encoding="utf-8")
    return document


def path_of(loaded, level):
    (pool,) = loaded.fabric.pools
    return pool.path(level)


def codes(caught):
    return [fault.code for fault in caught.value.diagnostics]


def test_a_profile_file_reads_back_as_it_was(folder):
    document = profiled(folder, write(folder, "one.txt", "all_reduce", 8, logs.devices(1, 8)))
    loaded = load_any(str(folder / "cluster.yaml"))
    assert isinstance(loaded, LoadedProfile)
    assert "nvlink4-h100" in loaded.summary
    again = loaded.profile.document
    assert again.name == document.name
    assert list(again.links) == ["nvlink4-h100"]
    for field in ("hockney", "calibrated"):
        left, right = getattr(again.links["nvlink4-h100"], field), getattr(document.links["nvlink4-h100"], field)
        assert (left.alpha, left.bandwidth) == pytest.approx((right.alpha, right.bandwidth), rel=1e-5)


def test_planted_constants_reach_the_textbook(folder):
    profiled(folder, write(folder, "one.txt", "all_reduce", 8, logs.devices(1, 8)), base="hockney")
    loaded = load_problem(str(folder / "problem.yaml"))
    assert loaded.problem.profile == "hockney"
    assert link_constants(path_of(loaded, "domain")) == pytest.approx((ALPHA, BANDWIDTH), rel=0.02)


def test_measured_collectives_are_what_nccl_takes(folder):
    """The whole group, a smaller one by its hops, and a gather, each as measured; the custom kernels of an engine move along."""
    paths = [
        write(folder, "reduce.txt", "all_reduce", 8, logs.devices(1, 8)),
        write(folder, "gather.txt", "all_gather", 8, logs.devices(1, 8)),
    ]
    profiled(folder, *paths)
    path = path_of(load_problem(str(folder / "problem.yaml")), "domain")
    sizes = np.array([1024.0, 2.0**20, 2.0**26, 2.0**30])
    expected = ring_all_reduce(8, sizes, ALPHA, BANDWIDTH)
    assert all_reduce_time(path, "nccl", 8, sizes)[0] == pytest.approx(expected, rel=0.02)
    assert all_gather_time(path, "vllm", 8, sizes) == pytest.approx(0.5 * expected, rel=0.02)
    assert all_reduce_time(path, "nccl", 4, 64.0)[0] == pytest.approx(6 * ALPHA, rel=0.05)
    (folder / "problem.yaml").write_text(PROBLEM.replace("profile: cluster.yaml\n", ""), encoding="utf-8")
    catalog = path_of(load_problem(str(folder / "problem.yaml")), "domain")
    assert all_reduce_time(path, "vllm", 8, 2.0**28)[0] > 1.4 * all_reduce_time(catalog, "vllm", 8, 2.0**28)[0]
    assert all_reduce_time(path, "vllm", 8, 1024.0)[0] > 2.0 * all_reduce_time(catalog, "vllm", 8, 1024.0)[0]


def test_a_send_gives_the_calibrated_constants_themselves(folder):
    profiled(folder, write(folder, "send.txt", "send_receive", 2, logs.devices(1, 2), 9e-6, 150e9))
    path = path_of(load_problem(str(folder / "problem.yaml")), "domain")
    sizes = np.array([1.0, 2.0**30])
    assert send_time(path, sizes) == pytest.approx(9e-6 + sizes / 150e9, rel=0.02)


def test_a_run_as_the_catalog_predicts_changes_nothing(folder):
    """What the planner itself predicts, printed and fitted, gives the catalog's constants back."""
    (folder / "problem.yaml").write_text(PROBLEM.replace("profile: cluster.yaml\n", ""), encoding="utf-8")
    path = path_of(load_problem(str(folder / "problem.yaml")), "domain")
    times = {size: (float(all_reduce_time(path, "nccl", 8, float(size))[0]),) * 2 for size in logs.DOUBLINGS}
    (folder / "own.txt").write_text(logs.log("all_reduce", 8, times, logs.devices(1, 8)), encoding="utf-8")
    found = profiled(folder, str(folder / "own.txt")).links["nvlink4-h100"].calibrated
    catalog = link("nvlink4-h100")
    assert found.alpha == pytest.approx(catalog.calibrated_alpha.value, rel=0.05)
    assert found.bandwidth == pytest.approx(catalog.calibrated_bandwidth.value, rel=0.05)


def test_several_nodes_are_a_form_of_their_own(folder):
    path = write(folder, "across.txt", "all_reduce", 16, logs.devices(2, 8), 4e-6, 150e9)
    document = profiled(folder, path, given=Given(("infiniband-400",)))
    assert list(document.links) == ["infiniband-ndr-400"]
    (collective,) = document.links["infiniband-ndr-400"].collectives
    assert collective.ranks_inside == 8
    assert document.links["infiniband-ndr-400"].hockney is None
    loaded = load_problem(str(folder / "problem.yaml"))
    sizes = np.array([64.0, 2.0**24, 2.0**30])
    times, names = hierarchical_all_reduce_time(path_of(loaded, "domain"), path_of(loaded, "leaf"), "vllm", 8, 2, sizes)
    assert times == pytest.approx(ring_all_reduce(16, sizes, 4e-6, 150e9), rel=0.02)
    assert set(names) == {"nccl-measured"}


def test_nics_that_pace_a_run_are_told_from_links_that_do(folder):
    slow = write(folder, "slow.txt", "all_reduce", 16, logs.devices(2, 8), 4e-6, 100e9)
    fit = fit_files([slow], Given(("infiniband-ndr-400",))).links[0]
    # A rail carries an eighth of the message once: 2 (s - 1) / s m / 8 in the time of 2 (n - 1) / n m / B.
    assert fit.profile.calibrated.bandwidth == pytest.approx(100e9 / 8 * 1.0 / 1.875, rel=0.03)
    fast = write(folder, "fast.txt", "all_reduce", 16, logs.devices(2, 8), 4e-6, 900e9)
    fit = fit_files([fast], Given(("infiniband-ndr-400",))).links[0]
    assert fit.profile.calibrated.bandwidth is None
    assert any("links inside pace the run" in sentence for sentence in fit.refused)


def test_one_gpu_a_node_tells_the_network(folder):
    path = write(folder, "rails.txt", "all_reduce", 4, logs.devices(4, 1), 20e-6, 40e9)
    document = profiled(folder, path, given=Given(("infiniband-ndr-400",)))
    entry = document.links["infiniband-ndr-400"]
    assert (entry.hockney.alpha, entry.hockney.bandwidth) == pytest.approx((20e-6, 40e9), rel=0.02)
    assert entry.calibrated.bandwidth == pytest.approx(40e9, rel=0.02)
    leaf = path_of(load_problem(str(folder / "problem.yaml")), "leaf")
    assert all_reduce_time(leaf, "vllm", 4, 64.0)[0] == pytest.approx(6 * 20e-6, rel=0.02)


def test_starts_over_several_ranks_give_form_c0_and_alpha():
    form, c0, alpha = start_form("all_reduce", {ranks: 5e-6 + 2e-6 * 2 * (ranks - 1) for ranks in (2, 4, 8)})
    assert (form, c0, alpha) == ("ring", pytest.approx(5e-6), pytest.approx(2e-6))
    form, c0, alpha = start_form("all_reduce", {ranks: 3e-6 + 4e-6 * 2 * int(np.log2(ranks)) for ranks in (2, 4, 8, 16, 64)})
    assert (form, c0, alpha) == ("tree", pytest.approx(3e-6), pytest.approx(4e-6))
    assert start_form("all_gather", {8: 14e-6}) == ("ring", 0.0, pytest.approx(2e-6))


def test_several_runs_of_one_group_are_fitted_together(folder):
    paths = [write(folder, f"{number}.txt", "all_reduce", 8, logs.devices(1, 8)) for number in range(3)]
    (fit,) = fit_files(paths, Given()).links[0].fits
    assert fit.file.count("txt") == 3


def test_links_that_cannot_have_carried_a_run(folder):
    inside = write(folder, "inside.txt", "all_reduce", 8)
    with pytest.raises(PlannerError) as caught:
        fit_files([inside], Given(("infiniband-ndr-400",)))
    assert codes(caught) == ["LINK_DOES_NOT_FIT"]
    with pytest.raises(PlannerError) as caught:
        fit_files([inside], Given(("no-such-link",)))
    assert codes(caught) == ["UNKNOWN_LINK"]


def test_a_link_that_nobody_names_is_asked_for(folder):
    report = fit_files([write(folder, "unnamed.txt", "all_reduce", 8)], Given())
    assert [diagnostic.code for diagnostic in report.diagnostics] == ["LINK_NOT_NAMED"]
    with pytest.raises(PlannerError) as caught:
        report.profile("p")
    assert codes(caught) == ["LINK_NOT_NAMED"]


def test_runs_that_tell_nothing_make_no_profile(folder):
    path = folder / "middle.txt"
    times = logs.line_times("all_to_all", 8, ALPHA, BANDWIDTH, [2**20, 2**21, 2**22])
    path.write_text(logs.log("all_to_all", 8, times, logs.devices(1, 8)), encoding="utf-8")
    with pytest.raises(PlannerError) as caught:
        fit_files([str(path)], Given()).profile("p")
    assert codes(caught) == ["NOTHING_LEARNT"]


def test_the_digest_holds_what_was_measured_and_the_name_stays(folder):
    log = write(folder, "one.txt", "all_reduce", 8, logs.devices(1, 8))
    profiled(folder, log)
    first = load_problem(str(folder / "problem.yaml"))
    again = load_problem(str(folder / "problem.yaml"))
    profiled(folder, write(folder, "one.txt", "all_reduce", 8, logs.devices(1, 8), alpha=2 * ALPHA))
    second = load_problem(str(folder / "problem.yaml"))
    assert first.sha256 == again.sha256
    assert first.sha256 != second.sha256
    assert (first.profile.name, first.problem.profile) == ("cluster", "calibrated")
    (setting,) = pool_settings(first, 0, first.fabric.pools[0])
    assert setting.setting.profile == "calibrated"
    assert setting.setting.paths[1].link.measured


def test_a_plan_by_a_profile_passes_the_audit_and_names_it(folder, capsys):
    from planner.cli.app import run

    profiled(folder, write(folder, "one.txt", "all_reduce", 8, logs.devices(1, 8)), name="our-nvlink")
    assert run(["solve", str(folder / "problem.yaml"), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["provenance"]["profile"] == "our-nvlink"
    assert run(["solve", str(folder / "problem.yaml"), "--profile", "calibrated", "--json"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert other["provenance"]["profile"] == "calibrated"
    assert other["provenance"]["problem_sha256"] != plan["provenance"]["problem_sha256"]


def test_faults_of_a_profile_have_their_places(folder):
    (folder / "cluster.yaml").write_text(
        "name: p\nlinks:\n  nvlink9: {}\n  nvlink4:\n    collectives:\n      - operation: all_reduce\n        alpha: 1us\n        groups:\n"
        "          - ranks: 8\n            pieces: [{last: 1MiB, start: 1us}, {last: 2MiB, start: 1us}]\ngpus: {h900: {}}\n",
        encoding="utf-8",
    )
    with pytest.raises(PlannerError) as caught:
        load_problem(str(folder / "problem.yaml"))
    assert {(fault.code, fault.place.line) for fault in caught.value.diagnostics} == {
        ("UNKNOWN_LINK", 3),
        ("PIECES_OUT_OF_ORDER", 10),
        ("UNKNOWN_GPU", 11),
    }


@pytest.mark.parametrize(
    ("text", "code"), [("nope.yaml", "PROFILE_NOT_FOUND"), ("calibratd", "UNKNOWN_PROFILE"), ("cluster.yaml", "UNKNOWN_KEY")]
)
def test_profiles_that_cannot_be_used_are_told_at_their_place(folder, text, code):
    (folder / "cluster.yaml").write_text("name: p\nlink: {}\n", encoding="utf-8")
    (folder / "problem.yaml").write_text(PROBLEM.replace("cluster.yaml", text), encoding="utf-8")
    with pytest.raises(PlannerError) as caught:
        load_problem(str(folder / "problem.yaml"))
    (fault,) = caught.value.diagnostics
    assert fault.code == code
    assert fault.place.line == (2 if code == "UNKNOWN_KEY" else 8)
    assert fault.hint


def test_a_profile_of_other_links_warns(folder):
    (folder / "cluster.yaml").write_text("name: p\nlinks: {ethernet-25: {hockney: {alpha: 9us}}}\n", encoding="utf-8")
    warnings = load_problem(str(folder / "problem.yaml")).warnings
    assert "PROFILE_UNUSED" in [warning.code for warning in warnings]


def test_names_of_links():
    assert [link_name(name) for name in ("nvlink4", "ethernet-25", "gloo-loopback", "infiniband-400")] == [
        "nvlink4-h100",
        "ethernet-25",
        "gloo-loopback",
        "infiniband-ndr-400",
    ]
    for name in ("ethernet-", "gloo", "-25", "infiniband-x"):
        with pytest.raises(PlannerError):
            link_name(name)


def test_a_measured_gpu_reaches_what_was_measured(folder):
    """Engines' shares of the peaks stay; the peaks move so that the reference share is what was measured."""
    (folder / "cluster.yaml").write_text(
        "name: p\ngpus: {h100-sxm-80gb: {memory_bandwidth: 2.4TB/s, flops: {bf16: 500TFLOP/s, int8: 1PFLOP/s}}}\n", encoding="utf-8"
    )
    from planner.catalog.gpus import gpu
    from planner.catalog.step_times import of_dtype, step_constants

    measured = load_problem(str(folder / "problem.yaml")).fabric.pools[0].gpu
    constants = step_constants("vllm", measured.architecture)
    assert measured.memory_bandwidth.value * of_dtype(constants.weight_read, "bf16") == pytest.approx(2.4e12)
    assert measured.flops["bf16"].value * of_dtype(constants.multiply, "bf16") == pytest.approx(500e12)
    assert measured.flops["fp8"] == gpu("h100-sxm-80gb").flops["fp8"]
    (folder / "problem.yaml").write_text(PROBLEM + "seed: 1\n", encoding="utf-8")
    (folder / "cluster.yaml").write_text(
        "name: p\nbase: hockney\ngpus: {h100-sxm-80gb: {memory_bandwidth: 2.4TB/s, flops: {bf16: 500TFLOP/s}}}\n", encoding="utf-8"
    )
    paper = load_problem(str(folder / "problem.yaml")).fabric.pools[0].gpu
    assert paper.memory_bandwidth.value == 2.4e12
    assert paper.flops["bf16"].value * 600 / 989 == pytest.approx(500e12)
