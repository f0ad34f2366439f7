"""Calculators with a profile file: measured links and GPUs stand before the catalog's, faults are told at their flag or in their file."""

from __future__ import annotations

import json

import pytest

from planner.cli.app import run

PROFILE = """
name: our-cluster
base: {base}
links:
  nvlink4-h100:
    hockney: {{alpha: 30us, bandwidth: 100GB/s}}
    calibrated: {{alpha: 20us, bandwidth: 100GB/s}}
gpus:
  h100-sxm-80gb: {{memory_bandwidth: 2.5TB/s}}
"""
LAYOUT = ("--model", "llama-3.1-70b", "--gpu", "h100-sxm-80gb", "--tp", "8", "--json")


@pytest.fixture
def written(tmp_path):
    def write(text, name="cluster.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def answer(capsys, *arguments):
    assert run(arguments) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("base", ["calibrated", "hockney"])
def test_measured_figures_slow_the_step_down(capsys, written, base):
    plain = answer(capsys, "estimate", *LAYOUT, "--profile", base)["answers"][0]
    own = answer(capsys, "estimate", *LAYOUT, "--profile", written(PROFILE.format(base=base)))["answers"][0]
    assert own["times"]["compute_s"] > 1.1 * plain["times"]["compute_s"]
    if base == "hockney":
        assert own["times"]["tp_comm_s"] > 1.5 * plain["times"]["tp_comm_s"]


@pytest.mark.parametrize("command", ["estimate", "scaling", "crossover", "regimes", "memory"])
def test_every_calculator_takes_a_file(capsys, written, command):
    path = written(PROFILE.format(base="calibrated"))
    assert answer(capsys, command, *LAYOUT, "--profile", path)["profile"] == path


def test_a_profile_of_other_hardware_is_warned_about(capsys, written):
    path = written(PROFILE.format(base="calibrated"))
    assert run(["memory", "--model", "llama-3.1-8b", "--gpu", "l4-24gb", "--profile", path]) == 0
    assert "PROFILE_UNUSED" in capsys.readouterr().err


def test_paper_counts_ask_for_the_textbook_below_the_file(capsys, written):
    arguments = ["estimate", *LAYOUT, "--weight-bytes", "141GB", "--profile"]
    assert run([*arguments, written(PROFILE.format(base="hockney"), "paper.yaml")]) == 0
    capsys.readouterr()
    assert run([*arguments, written(PROFILE.format(base="calibrated"))]) == 1
    assert "PAPER_COUNT_ONLY" in capsys.readouterr().out


def test_faults_of_the_file_and_of_other_flags_come_together(capsys, written):
    path = written("name: x\nlinks: {nvlink4: {hockney: {alpha: fast}}}\n")
    assert run(["memory", "--model", "llama-3.1-8b", "--gpu", "h1000", "--profile", path]) == 1
    told = capsys.readouterr().err
    assert "NOT_A_QUANTITY" in told
    assert "cluster.yaml:2:" in told
    assert "UNKNOWN_GPU" in told


@pytest.mark.parametrize(("named", "code"), [("hokney", "UNKNOWN_PROFILE"), ("./nowhere.yaml", "PROFILE_NOT_FOUND")])
def test_a_profile_that_is_not_there(capsys, named, code):
    assert run(["memory", "--model", "llama-3.1-8b", "--gpu", "h100-sxm-80gb", "--profile", named]) == 1
    assert code in capsys.readouterr().err
