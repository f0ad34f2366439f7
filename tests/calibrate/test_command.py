"""`planner fit` and `planner measure` on the command line, torch apart."""

from __future__ import annotations

import importlib.util
import json

import pytest

from planner.calibrate import measurement
from planner.calibrate.measurement import Options, launch_lines, measured, sizes, under_launcher
from planner.calibrate.report import measured_report
from planner.cli.app import run
from planner.diagnostics import PlannerError
from planner.problem.load import load_any
from tests.calibrate import logs


def write(tmp_path, name="run.txt", ranks=8, head=""):
    path = tmp_path / name
    path.write_text(logs.log("all_reduce", ranks, logs.line_times("all_reduce", ranks, 2e-6, 300e9), head), encoding="utf-8")
    return str(path)


def test_a_table_for_people(tmp_path, capsys):
    assert run(["fit", write(tmp_path, head=logs.devices(1, 8))]) == 0
    out = capsys.readouterr().out
    for words in ("nvlink4-h100", "all_reduce", "2 us", "300 GB/s", "learnt", "assumed", "profile of nvlink4-h100"):
        assert words in out
    assert "\x1b" not in out


def test_one_json_document(tmp_path, capsys):
    output = tmp_path / "cluster.yaml"
    assert run(["fit", write(tmp_path, head=logs.devices(1, 8)), "--json", "-o", str(output)]) == 0
    document = json.loads(capsys.readouterr().out)
    (fit,) = document["fits"]
    assert document["format_version"] == 1
    assert fit["alpha_s"] == pytest.approx(2e-6, rel=0.02)
    assert fit["bandwidth_b_per_s"] == pytest.approx(300e9, rel=0.02)
    assert fit["held_out_error"]["median"] < 0.02
    assert document["links"][0]["hockney"]["alpha"] == pytest.approx(2e-6, rel=0.02)
    assert load_any(str(output)).profile.name == "cluster"


def test_files_that_cannot_be_used_are_left_out_and_told(tmp_path, capsys):
    other = tmp_path / "other.txt"
    other.write_text("nothing\n", encoding="utf-8")
    assert run(["fit", str(other), write(tmp_path, head=logs.devices(1, 8))]) == 0
    captured = capsys.readouterr()
    assert "300 GB/s" in captured.out
    assert "warning: " in captured.err
    assert "NO_BENCHMARK_ROWS" in captured.err
    assert run(["fit", str(other)]) == 1
    assert "error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["fit"], "NOTHING_TO_FIT"),
        (["fit", "x", "--ranks", "0"], "OUT_OF_RANGE"),
        (["fit", "no-such-file"], "FILE_NOT_FOUND"),
        (["fit", "--compare", "no-such-file"], "FILE_NOT_FOUND"),
    ],
)
def test_nothing_to_fit(arguments, code, capsys):
    assert run(arguments) == 1
    assert code in capsys.readouterr().err


def test_a_profile_that_cannot_be_written(tmp_path, capsys):
    assert run(["fit", write(tmp_path, head=logs.devices(1, 8)), "-o", str(tmp_path / "no" / "folder.yaml")]) == 1
    assert "OUTPUT_NOT_WRITABLE" in capsys.readouterr().err


def test_measuring_without_torch_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert run(["measure"]) == 1
    err = capsys.readouterr().err
    assert "TORCH_MISSING" in err
    assert "llm-deployment-planner[measure]" in err


@pytest.mark.parametrize("arguments", [["--processes", "1"], ["--processes", "1000"], ["--largest", "512B"], ["--largest", "1TB"]])
def test_what_cannot_be_timed_is_refused(arguments, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    assert run(["measure", *arguments]) == 1
    assert "OUT_OF_RANGE" in capsys.readouterr().err


def worker_result(backend="nccl", nodes=1, **fields):
    times = {
        size: [seconds for pair in logs.line_times("all_reduce", 8, 2e-6, 300e9, [size]).values() for seconds in pair]
        for size in sizes(256, 2**28)
    }
    pairs = [[size, value] for size, both in times.items() for value in both]
    return {
        "backend": backend, "ranks": 8, "nodes": nodes, "version": "2.27.3", "gpu": "NVIDIA H100 80GB HBM3", "times": {"all_reduce": pairs},
        "unsupported": {"all_to_all": "not implemented"}, "accelerator": None, **fields,
    }  # fmt: skip


def test_what_workers_measured_is_fitted_and_put_to_the_gpus_link():
    found = measured(worker_result())
    report = measured_report(found, None)
    assert [link.name for link in report.links] == ["nvlink4-h100"]
    assert report.links[0].profile.hockney.alpha == pytest.approx(2e-6, rel=0.02)
    assert found.unsupported == {"all_to_all": "not implemented"}


def test_what_an_accelerator_reached_enters_the_profile():
    reached = {"memory_bandwidth": 3.0e12, "flops": {"bf16": 650e12}, "copied": 2**30, "side": 8192}
    found = measured(worker_result(accelerator=reached))
    assert found.accelerator.memory_bandwidth == 3.0e12
    assert found.accelerator.flops == {"bf16": 650e12}
    assert "8192" in found.accelerator.source


def test_processors_have_links_of_their_own_and_networks_must_be_named():
    assert measured_report(measured(worker_result("gloo", gpu=None)), None).links[0].name == "gloo-loopback"
    assert measured_report(measured(worker_result("gloo", 2, gpu=None)), None).links[0].name == "gloo-network"
    assert not measured_report(measured(worker_result(nodes=2)), None).links
    assert measured_report(measured(worker_result(nodes=8)), "infiniband-ndr-400").links[0].profile.hockney is not None
    with pytest.raises(PlannerError) as caught:
        measured_report(measured(worker_result(times={})), None)
    assert [fault.code for fault in caught.value.diagnostics] == ["MEASUREMENT_FAILED"]


def test_the_lines_for_many_nodes():
    lines = launch_lines(Options(), "cluster.yaml", "efa-p5")
    assert all(line.startswith("torchrun --nnodes=NODES") and "--link efa-p5 -o cluster.yaml" in line for line in lines)
    assert "--nproc-per-node=1 " in lines[0]


def test_a_launcher_is_told_by_its_environment():
    assert under_launcher({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"})
    assert not under_launcher({"RANK": "0"})


def test_a_failing_worker_is_told_with_its_last_words(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(measurement, "WORKER", "no_such_module_here")
    with pytest.raises(PlannerError) as caught:
        measurement.run_here(Options())
    (fault,) = caught.value.diagnostics
    assert fault.code == "MEASUREMENT_FAILED"
    assert "no_such_module_here" in fault.message
