"""Reading the JSON of nccl-tests, whole and cut."""

from __future__ import annotations

import json

import pytest

from planner.calibrate.identity import identify
from planner.calibrate.reading import read_runs
from planner.diagnostics import PlannerError
from tests.calibrate import logs

TIMES = logs.line_times("all_reduce", 8, 1e-6, 400e9)
LISTED = [
    {"rank": rank, "group": 0, "pid": 1, "hostname": "node0", "device": rank, "device_info": "NVIDIA H100 80GB HBM3"} for rank in range(8)
]


def test_a_report_is_a_run():
    (run,) = read_runs(logs.report("all_reduce", 8, TIMES, listed=LISTED), "out.json")
    assert (run.program, run.version, len(run.rows), len(run.devices)) == ("all_reduce_perf", "2.23.4", len(TIMES), 8)
    assert run.rows[0].seconds == pytest.approx(TIMES[8])
    found = identify(run)
    assert (found.operation, found.ranks, found.nodes, found.gpu.name) == ("all_reduce", 8, 1, "h100-sxm-80gb")


def test_text_and_json_of_one_run_say_the_same():
    (text,) = read_runs(logs.log("all_reduce", 8, TIMES), "out.txt")
    (report,) = read_runs(logs.report("all_reduce", 8, TIMES), "out.json")
    for left, right in zip(text.rows, report.rows, strict=True):
        assert (left.size, left.count, left.reduction, left.root) == (right.size, right.count, right.reduction, right.root)
        assert left.seconds == pytest.approx(right.seconds, rel=1e-3)


def test_an_unfinished_report_is_read_as_far_as_it_goes():
    whole = logs.report("all_reduce", 8, TIMES)
    cut = whole[: int(len(whole) * 0.6)]
    (run,) = read_runs(cut, "out.json")
    assert 3 < len(run.rows) < len(TIMES)
    assert [note.code for note in run.notes] == ["RUN_BROKE_OFF"]


def test_nulls_nans_and_processor_times():
    report = json.loads(logs.report("all_reduce", 8, TIMES))
    report["results"][0]["out_of_place"] = None
    report["results"][1]["in_place"]["bus_bw"] = "nan"
    report["results"][2] = {"size": 8}
    (run,) = read_runs(json.dumps(report), "out.json")
    assert [len(row.timings) for row in run.rows[:3]] == [1, 1, 2]
    assert [note.code for note in run.notes] == ["ROW_CUT_SHORT"]
    report["results"][0] = {**report["results"][3], "out_of_place": {"cpu_time": 3.0, "alg_bw": 1.0, "bus_bw": 1.0, "nwrong": None}}
    (run,) = read_runs(json.dumps(report), "out.json")
    assert "PROCESSOR_TIMES" in [note.code for note in run.notes]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "NOT_JSON"),
        ('{"results": [', "NO_BENCHMARK_ROWS"),
        ('{"name": "a topology"}', "NO_BENCHMARK_ROWS"),
        ('{"results": {}}', "NO_BENCHMARK_ROWS"),
        ('{"results": [1, null, {"size": true, "count": 1, "type": []}]}', "NO_BENCHMARK_ROWS"),
        ('{"a":' * 100_000, "NOT_JSON"),
        ('{"size": ' + "9" * 5000 + "}", "NOT_JSON"),
    ],
)
def test_other_json_is_refused(text, code):
    with pytest.raises(PlannerError) as caught:
        read_runs(text, "out.json")
    assert [fault.code for fault in caught.value.diagnostics] == [code]
