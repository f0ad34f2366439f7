"""Operation, ranks and nodes from what a run prints, and what contradicts it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.calibrate.identity import identify
from planner.calibrate.nccl_text import read_nccl_text
from planner.diagnostics import PlannerError
from tests.calibrate import logs


def identified(operation, ranks, head="", file="log.txt", sizes=(2**20, 2**26, 2**30, 2**33), **said):
    times = logs.line_times(operation, ranks, 1e-6, 300e9, sizes)
    (run,) = read_nccl_text(logs.log(operation, ranks, times, head), file)
    return identify(run, **said)


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive"])
def test_the_operation_is_told_by_its_columns(operation):
    found = identified(operation, 8 if operation != "send_receive" else 2)
    assert found.operation == operation
    assert found.ranks == (8 if operation != "send_receive" else 2)


@given(st.integers(min_value=2, max_value=100))
@settings(max_examples=40, deadline=None)
def test_ranks_come_out_of_the_bandwidths(ranks):
    assert identified("all_reduce", ranks).ranks == ranks


@given(st.sampled_from(["all_gather", "reduce_scatter", "all_to_all"]), st.integers(min_value=1, max_value=12))
@settings(max_examples=30, deadline=None)
def test_ranks_are_exact_where_counts_tell(operation, power):
    assert identified(operation, 2**power).ranks == 2**power


def test_thousands_of_ranks_are_a_range_and_the_device_list_decides_inside_it():
    alone = identified("all_reduce", 1024)
    assert any("busbw/algbw allows" in sentence for sentence in alone.assumed)
    assert abs(alone.ranks / 1024 - 1) < 0.1
    listed = identified("all_reduce", 1024, "#  Rank 1023 Group  0 Pid   7 on node255 device  3 [0x01] NVIDIA GB200\n")
    assert listed.ranks == 1024


def test_a_device_list_that_says_otherwise_is_contradicted():
    found = identified("all_reduce", 128, "#  Rank 143 Group  0 Pid   7 on node35 device  3 [0x01] NVIDIA GB200\n")
    assert found.ranks == 128
    (warning,) = found.warnings
    assert warning.code == "RANKS_CONTRADICT"
    assert "rank 143" in warning.message
    assert "128" in warning.message


def test_a_file_name_that_says_otherwise_is_contradicted():
    found = identified("all_reduce", 96, file="results/h100_64gpu_ib.txt")
    assert found.ranks == 96
    assert [warning.code for warning in found.warnings] == ["RANKS_CONTRADICT"]
    assert not identified("all_reduce", 64, file="results/h100_64gpu_ib.txt").warnings


def test_nodes_and_gpu_of_the_device_list():
    found = identified("all_reduce", 16, logs.devices(2, 8))
    assert (found.ranks, found.nodes, found.gpu.name) == (16, 2, "h100-sxm-80gb")


def test_nodes_that_nobody_names():
    assert identified("all_reduce", 8).nodes == 1
    assert identified("all_reduce", 16).nodes == 2
    assert identified("all_reduce", 13).nodes is None
    assert any("node" in sentence for sentence in identified("all_reduce", 16).assumed)


def test_what_is_given_counts_first():
    (run,) = read_nccl_text(logs.log("all_reduce", 8, logs.line_times("all_reduce", 8, 1e-6, 300e9)), "log.txt")
    found = identify(run, ranks=4, nodes=4, operation="all_to_all")
    assert (found.operation, found.ranks, found.nodes) == ("all_to_all", 4, 4)


def test_one_rank_crosses_no_link():
    times = {2**20: (30e-6, 31e-6), 2**30: (900e-6, 910e-6)}
    with pytest.raises(PlannerError) as caught:
        identify(read_nccl_text(logs.log("all_reduce", 1, times), "log.txt")[0])
    assert [fault.code for fault in caught.value.diagnostics] == ["ONE_RANK"]


def test_small_sizes_alone_do_not_tell_the_ranks():
    with pytest.raises(PlannerError) as caught:
        identified("all_reduce", 16, sizes=(8, 16, 512))
    assert [fault.code for fault in caught.value.diagnostics] == ["RANKS_UNKNOWN"]
    assert identified("all_reduce", 16, logs.devices(2, 8), sizes=(8, 16, 512)).ranks == 16


def test_empty_rows_are_no_rows():
    with pytest.raises(PlannerError) as caught:
        identify(read_nccl_text(logs.log("all_reduce", 8, {0: (1e-6, 1e-6)}), "log.txt")[0])
    assert [fault.code for fault in caught.value.diagnostics] == ["NO_BENCHMARK_ROWS"]


def test_operations_without_a_form_are_refused():
    text = logs.log("all_reduce", 8, {2**20: (30e-6, 31e-6)}).replace("    sum      -1", "   none       0")
    with pytest.raises(PlannerError) as caught:
        identify(read_nccl_text(text, "log.txt")[0])
    assert [fault.code for fault in caught.value.diagnostics] == ["OPERATION_NOT_MODELLED"]
