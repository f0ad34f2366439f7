"""Reading what nccl-tests prints, in every shape it has had and under every launcher."""

from __future__ import annotations

import pytest

from planner.calibrate.nccl_text import read_nccl_text, version_of
from planner.calibrate.reading import read_runs
from planner.diagnostics import PlannerError, Severity
from tests.calibrate import logs

SIZES = [8, 1024, 2**20, 2**26]
TIMES = {8: (12e-6, 13e-6), 1024: (14e-6, 15e-6), 2**20: (40e-6, 41e-6), 2**26: (700e-6, 710e-6)}
PLAIN = logs.log("all_reduce", 8, TIMES, logs.devices(1, 8))


def only(text):
    (run,) = read_nccl_text(text, "log.txt")
    return run


def times_of(run):
    return {row.size: tuple(round(timing.seconds * 1e6, 2) for timing in row.timings) for row in run.rows}


EXPECTED = {size: tuple(round(seconds * 1e6, 2) for seconds in pair) for size, pair in TIMES.items()}


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:", "   [1,0]<stdout>:", "[0] ", "    ", "\x1b[0m"])
def test_prefixes_of_launchers_are_taken_off(prefix):
    run = only(logs.log("all_reduce", 8, TIMES, logs.devices(1, 8), prefix=prefix))
    assert times_of(run) == EXPECTED
    assert [(device.rank, device.host, device.index) for device in run.devices][7] == (7, "node0", 7)
    assert run.devices[0].name == "NVIDIA H100 80GB HBM3"
    assert run.average_bus == pytest.approx(12.345e9)
    assert not run.notes


def test_markdown_around_a_log_is_left_alone():
    assert times_of(only("*Example output:*\n\n```text\n" + PLAIN + "```\nmore words\n")) == EXPECTED


def test_windows_line_ends():
    assert times_of(only(PLAIN.replace("\n", "\r\n"))) == EXPECTED


def test_a_table_without_its_header_is_read():
    body = "\n".join(line for line in PLAIN.splitlines() if not line.startswith("#"))
    assert times_of(only(body)) == EXPECTED


def test_old_columns_error_and_no_root():
    text = (
        "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
        "#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
        "          16             4     float     sum    21.25    0.00    0.00  1e-07    22.50    0.00    0.00  1e-07\n"
        "     1048576        262144     float     sum    95.00   11.04   19.32  2e-07    96.00   10.92   19.11  5e-01\n"
    )
    run = only(text)
    assert [row.root for row in run.rows] == [None, None]
    assert times_of(run)[16] == (21.25, 22.5)
    assert run.rows[0].seconds == pytest.approx((21.25e-6, 22.5e-6))
    assert run.rows[1].seconds == pytest.approx((95e-6,)), "an error of one half is no rounding"


def test_columns_of_2018_are_milliseconds():
    text = (
        "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
        "     8388608       2097152   float     sum    0.162  51.78  90.62    2e-07    0.160  52.43  91.75    2e-07\n"
    )
    assert only(text).rows[0].seconds == pytest.approx((162e-6, 160e-6))


def test_no_reduction_column():
    text = (
        "#       size         count    type    root     time   algbw   busbw  error     time   algbw   busbw  error\n"
        "       65536         16384   float       0    55.20    1.19    1.19    N/A    50.10    1.31    1.31    N/A\n"
    )
    (row,) = only(text).rows
    assert (row.reduction, row.root, len(row.timings), row.timings[0].wrong) == (None, 0, 2, None)


def test_integers_and_a_timestamp_at_the_end():
    line = logs.row("all_reduce", 8, 2**33, (31.289e-3, 31.294e-3)) + "  2025-05-01 10:11:12"
    (row,) = only(logs.HEADER + line + "\n").rows
    assert row.seconds == pytest.approx((31.289e-3, 31.294e-3))


def test_a_row_broken_over_prefixed_writes_with_messages_between():
    head, tail = "        8192          2048     float     sum      -1", logs.half("all_reduce", 2, 8192, 30e-6)
    text = (
        f"[0] {logs.HEADER.splitlines()[1]}\n"
        f"[0] {head}[0] node0:4242:4242 [0] NCCL INFO 8192 Bytes -> Algo 0 proto 0 time 26.5\n"
        "[0] node0:4242:4242 [0] NCCL INFO 8192 Bytes -> Algo 0 proto 0 time 26.5\n"
        f"[0] {tail}\n"
        f"[0] {tail}\n"
        f"[0] {head.replace('8192', '9216')} {tail}\n"
    )
    run = only(text)
    assert times_of(run) == {8192: (30.0, 30.0), 9216: (30.0,)}
    assert [note.code for note in run.notes] == ["ROW_CUT_SHORT"]


@pytest.mark.parametrize(
    "cut", ["    8388608", "     8388608      2097152     float     sum      -1    70.1", "     8388608      2097152     float"]
)
def test_a_log_that_ends_inside_a_row(cut):
    text = logs.HEADER + "".join(logs.row("all_reduce", 8, size, TIMES[size]) + "\n" for size in SIZES) + cut
    run = only(text)
    assert times_of(run) == EXPECTED
    assert [note.code for note in run.notes] == ["ROW_CUT_SHORT"]


def test_half_a_last_row_is_used():
    text = logs.HEADER + logs.row("all_reduce", 8, 2**20, TIMES[2**20])[:-20]
    assert times_of(only(text)) == {2**20: (40.0,)}


def test_a_run_out_of_memory_keeps_its_sizes():
    foot = "node0: Test NCCL failure common.cu:1204 'unhandled cuda error (run with NCCL_DEBUG=INFO for details)'\n .. node0 pid 7: Test failure common.cu:915\n"
    run = only(logs.log("all_reduce", 8, TIMES, foot=foot))
    assert times_of(run) == EXPECTED
    (note,) = run.notes
    assert note.code == "RUN_BROKE_OFF"
    assert "4 sizes" in note.message


def test_wrong_values_are_not_times():
    line = logs.row("all_reduce", 8, 2**20, (40e-6, 41e-6), in_place_wrong="17")
    (row,) = only(logs.HEADER + line + "\n").rows
    assert row.seconds == pytest.approx((40e-6,))


def test_two_runs_after_each_other_are_two():
    first = "$ mpirun -np 8 ./build/all_reduce_perf -b 8\n" + PLAIN
    second = "$ mpirun -np 8 ./build/all_gather_perf -b 8\n" + logs.log("all_gather", 8, TIMES)
    runs = read_nccl_text(first + second, "log.txt")
    assert [run.program for run in runs] == ["all_reduce_perf", "all_gather_perf"]
    assert [len(run.rows) for run in runs] == [4, 4]
    assert [len(run.devices) for run in runs] == [8, 0]


def test_the_banner_names_program_and_library():
    banner = "# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703\n# Collective test starting: alltoall_perf\n"
    run = only(banner + logs.log("all_to_all", 8, TIMES) + "# Collective test concluded: alltoall_perf\n")
    assert (run.program, run.version) == ("alltoall_perf", "2.27.3")


def test_ranks_that_print_tables_of_their_own_are_runs_of_their_own():
    lines = [pair for rank in ("0", "1") for pair in logs.log("all_reduce", 8, TIMES, prefix=f"{rank}: ").splitlines()]
    interleaved = [line for pair in zip(lines[: len(lines) // 2], lines[len(lines) // 2 :], strict=True) for line in pair]
    runs = read_nccl_text("\n".join(interleaved), "log.txt")
    assert [times_of(run) for run in runs] == [EXPECTED, EXPECTED]


def test_two_runs_printed_into_one_another_are_told():
    head = logs.OPTIONS + "# Using devices\n" + logs.OPTIONS + "#   Rank  0 Pid   13 on nodeA device  0 [0x00] Tesla V100-SXM2-16GB\n"
    head += "#   Rank  0 Pid   20 on nodeB device  0 [0x00] Tesla V100-SXM2-16GB\n"
    run = only(head + logs.HEADER + logs.row("all_reduce", 8, 2**20, TIMES[2**20]) + "\n")
    (note,) = run.notes
    assert note.code == "RUNS_INTERLEAVED"
    assert len(run.devices) == 1
    with pytest.raises(PlannerError) as caught:
        read_nccl_text(head + logs.HEADER, "log.txt")
    assert "MPI=1" in caught.value.diagnostics[0].hint


def test_processor_times_are_refused():
    text = PLAIN.replace("    time ", " cputime ")
    (note,) = only(text).notes
    assert (note.code, note.severity) == ("PROCESSOR_TIMES", Severity.ERROR)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line of it"),
        ("<system version='1'><cpu/></system>\n", "no line of it"),
        ("name: a\nnodes: []\n", "no line of it"),
        (
            logs.OPTIONS + logs.devices(1, 2) + logs.HEADER + "NCCL failure all_reduce.cu:95 'unhandled cuda error'\n",
            "unhandled cuda error",
        ),
        ("        8192          2048     float     sum      -1\n", "times of none are whole"),
    ],
)
def test_files_without_rows_say_what_they_are(text, says):
    with pytest.raises(PlannerError) as caught:
        read_runs(text, "log.txt")
    (fault,) = caught.value.diagnostics
    assert (fault.code, fault.place.file) == ("NO_BENCHMARK_ROWS", "log.txt")
    assert says in fault.message
    assert fault.hint


def test_versions_of_codes():
    assert [version_of(code) for code in (23102, 22304, 2804)] == ["2.31.2", "2.23.4", "2.8.4"]
