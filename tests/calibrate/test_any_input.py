"""Whatever a file holds, a reader answers with runs or with a PlannerError, soon and without much memory."""

from __future__ import annotations

import os
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.calibrate.identity import identify
from planner.calibrate.log_lines import read_lines
from planner.calibrate.profile_text import profile_text
from planner.calibrate.reading import read_benchmark, read_runs
from planner.calibrate.report import Given, fit_files
from planner.calibrate.step_rows import steps_of
from planner.diagnostics import PlannerError
from planner.problem.profiles import read_profile
from planner.problem.yaml_source import read_yaml
from tests.calibrate import logs

TIMES = logs.line_times("all_reduce", 8, 1e-6, 300e9, [8, 512, 2**14, 2**20, 2**24, 2**27])
LOG = logs.log("all_reduce", 8, TIMES, logs.devices(1, 8))
REPORT = logs.report("all_reduce", 8, TIMES)
STEPS = "model,gpu,tp,batch,prompt_tokens,output_tokens,tpot_ms\nllama-3.1-8b,h100-sxm-80gb,1,8,512,128,7.1\n"
PROFILE = (
    "name: p\nlinks:\n  nvlink4:\n    hockney: {alpha: 1us, bandwidth: 300GB/s}\n    collectives:\n      - operation: all_reduce\n        alpha: 1us\n"
    "        groups: [{ranks: 8, pieces: [{below: 1MiB, last: 64KiB, start: 9us}, {last: 1GiB, start: 20us, bandwidth: 300GB/s}]}]\n"
)
JUNK = st.sampled_from(
    [
        "",
        "\n",
        "0: ",
        "N/A",
        "nan",
        "inf",
        "-1",
        "1e999",
        "\x1b[0m",
        "sum",
        "{",
        "}",
        "[",
        '"',
        "#",
        "\x00",
        "９",
        "9" * 400,
        "float",
        "\r",
        ":",
    ]
)


@st.composite
def broken(draw, text):
    """A valid file with pieces cut out, doubled, and junk put in."""
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 80)))
        text = text[:start] + draw(JUNK | st.text(max_size=12)) + draw(st.sampled_from(["", text[start:end]])) + text[end:]
    return text


def faults_of(read):
    """Diagnostics of a reading that was refused, none of one that went well; anything else fails the test."""
    try:
        read()
    except PlannerError as error:
        return error.diagnostics
    return ()


def identified(text):
    """Read and identify every run: what `planner fit` does with a file."""
    return [identify(run) for run in read_runs(text, "any.txt")]


@given(broken(LOG) | broken(REPORT) | st.text(max_size=400))
@settings(max_examples=60, deadline=None)
def test_benchmark_files(text):
    assert all(fault.code and fault.message and fault.hint for fault in faults_of(lambda: identified(text)))


@given(data=st.binary(max_size=300) | broken(LOG).map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(max_examples=40, deadline=None)
def test_whole_fits_of_any_bytes(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "log"
    path.write_bytes(data)
    faults = faults_of(lambda: profile_text(fit_files([str(path)], Given(("nvlink4",))).profile("p")))
    assert all(fault.code and fault.message for fault in faults)


@given(broken(STEPS) | st.text(max_size=300))
@settings(max_examples=50, deadline=None)
def test_step_times(text):
    assert {fault.code for fault in faults_of(lambda: steps_of(text, "any.csv"))} <= {"BAD_STEP_TIMES"}


@given(broken(PROFILE))
@settings(max_examples=50, deadline=None)
def test_profiles(text):
    assert all(fault.code and fault.message for fault in faults_of(lambda: read_profile(read_yaml(text, "any.yaml"))))


@given(st.text(alphabet="0123456789:[],<>stdou #\n\r\x1b[m NCINFO", max_size=200))
@settings(max_examples=50, deadline=None)
def test_lines_of_anything(text):
    assert all(line.number >= 1 for line in read_lines(text))


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x7fELF\x00\x00\x01", "BINARY_FILE"),
        (LOG.encode("utf-16"), "BINARY_FILE"),
        (b"8" * (20 * 2**20), "NO_BENCHMARK_ROWS"),
        (b"8 8 float " * 2**20, "NO_BENCHMARK_ROWS"),
        (b"[1,0]<stdout>:" * 2**20, "NO_BENCHMARK_ROWS"),
        (b"\n" * 2**24, "FILE_TOO_LARGE"),
        (b'{"results": [' + b"[" * 2**20, "NO_BENCHMARK_ROWS"),
    ],
    ids=["binary", "utf-16", "one-number", "one-line", "prefixes", "empty-lines", "brackets"],
)
def test_hostile_files_end_in_a_clear_error(tmp_path, content, code):
    path = tmp_path / "hostile"
    path.write_bytes(content)
    with pytest.raises(PlannerError) as caught:
        read_benchmark(str(path))
    assert [fault.code for fault in caught.value.diagnostics] == [code]


def test_a_file_of_a_gigabyte_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.write(b"1" * 4096)
        os.truncate(path, 2**30)
    tracemalloc.start()
    with pytest.raises(PlannerError) as caught:
        read_benchmark(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [fault.code for fault in caught.value.diagnostics] == ["FILE_TOO_LARGE"]
    assert peak < 100 * 2**20


def test_a_line_of_many_rows_does_not_hide_the_others():
    text = "9 " * 10_000 + "\n" + LOG
    assert len(read_runs(text, "log.txt")[0].rows) == len(TIMES)
