"""Alpha and beta from times: what was planted, what was published, and what sizes cannot tell."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.calibrate.fit import fit_times, straightness
from planner.calibrate.identity import Identity, identify
from planner.calibrate.nccl_text import read_nccl_text
from planner.calibrate.pieces import straight_pieces
from tests.calibrate import logs

PUBLISHED = tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))
OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]


def fit_of(text):
    (run,) = read_nccl_text(text, "log.txt")
    return fit_times(run.file, identify(run), [(row.size, seconds) for row in run.rows if row.size for seconds in row.seconds])


def plain(operation, ranks, times):
    pairs = [(size, seconds) for size, pair in times.items() for seconds in pair]
    return fit_times("times", Identity(operation, ranks, 1, None), pairs)


@given(
    operation=st.sampled_from(OPERATIONS),
    ranks=st.sampled_from([2, 4, 8, 16, 64]),
    alpha=st.floats(0.5e-6, 60e-6),
    bandwidth=st.floats(5e9, 800e9),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_planted_constants_come_out_of_noisy_logs(operation, ranks, alpha, bandwidth, seed):
    draw = random.Random(seed)
    times = logs.line_times(operation, ranks, alpha, bandwidth, noise=lambda: draw.gauss(1.0, 0.01))
    fit = fit_of(logs.log(operation, ranks, times))
    assert fit.identity.ranks == ranks
    assert fit.alpha == pytest.approx(alpha, rel=0.02)
    assert fit.bandwidth == pytest.approx(bandwidth, rel=0.02)
    assert fit.held_out.median < 0.05


@given(alpha=st.floats(5e-6, 500e-6), bandwidth=st.floats(0.2e9, 20e9), seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_slow_links_and_few_sizes(alpha, bandwidth, seed):
    draw = random.Random(seed)
    sizes = [2**power for power in range(8, 28)]
    times = logs.line_times("all_reduce", 2, alpha, bandwidth, sizes, noise=lambda: draw.gauss(1.0, 0.005))
    fit = plain("all_reduce", 2, times)
    assert fit.bandwidth == pytest.approx(bandwidth, rel=0.02)
    assert fit.alpha == pytest.approx(alpha, rel=0.02, abs=0.03 * 2048 / bandwidth)
    assert fit.large_sizes.r_squared > 0.99
    assert fit.large_sizes.exponent == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_h100_figures(name):
    entry = PUBLISHED[name]
    fit = fit_of(logs.log("all_reduce", entry["ranks"], {size: (out * 1e-6, back * 1e-6) for size, out, back in entry["rows"]}))
    small = [time for size, *pair in entry["rows"] if size <= 4096 for time in pair]
    assert fit.identity.ranks == entry["ranks"]
    assert fit.bandwidth == pytest.approx(entry["bus_bandwidth"], rel=0.02)
    assert min(small) <= fit.start * 1e6 <= max(small)
    assert fit.start * 1e6 == pytest.approx(np.median(small), rel=0.02)
    assert fit.held_out.median < 0.15
    assert fit.between.median > 0.1, "published curves are not straight, and the fit says so"


def test_the_printed_average_is_not_beta():
    times = logs.line_times("all_reduce", 8, 2e-6, 400e9)
    foot = "# Avg bus bandwidth    : 77.7\n"
    assert fit_of(logs.log("all_reduce", 8, times, foot=foot)).bandwidth == pytest.approx(400e9, rel=0.01)


def test_one_wild_size_moves_neither_constant():
    times = logs.line_times("all_reduce", 8, 2e-6, 400e9)
    times[1024] = (times[1024][0] * 30, times[1024][1] * 30)
    times[2**28] = (times[2**28][0] * 3, times[2**28][1])
    fit = plain("all_reduce", 8, times)
    assert fit.alpha == pytest.approx(2e-6, rel=0.01)
    assert fit.bandwidth == pytest.approx(400e9, rel=0.02)


def test_a_bandwidth_that_still_rises_is_read_off_the_largest_sizes():
    times = {size: (14e-6 + 1.75 * size / min(450e9, 50e9 + size / 4e-3),) * 2 for size in logs.DOUBLINGS}
    fit = plain("all_reduce", 8, times)
    assert fit.bandwidth == pytest.approx(450e9, rel=0.01)


def test_without_small_sizes_alpha_is_refused():
    fit = plain("all_reduce", 8, logs.line_times("all_reduce", 8, 2e-6, 400e9, [2**29, 2**30, 2**31]))
    assert fit.alpha is None
    assert fit.bandwidth is not None
    assert any(sentence.startswith("alpha: the smallest size is 512 MiB") for sentence in fit.refused)
    assert any("start is taken as 0" in sentence for sentence in fit.assumed)


def test_without_large_sizes_beta_is_refused():
    fit = plain("send_receive", 2, logs.line_times("send_receive", 2, 30e-6, 20e9, [256, 512, 1024, 2048, 8192]))
    assert fit.bandwidth is None
    assert fit.alpha == pytest.approx(30e-6, rel=0.02)
    assert any(sentence.startswith("beta: the largest size is 8 KiB") for sentence in fit.refused)


def test_sizes_from_8_kib_stand_in_and_are_told():
    fit = plain("all_reduce", 2, logs.line_times("all_reduce", 2, 15e-6, 20e9, [2**power for power in range(13, 30)]))
    assert fit.alpha == pytest.approx(15e-6, rel=0.02)
    assert any("stand in" in sentence for sentence in fit.assumed)


def test_pieces_part_where_protocols_do():
    def time(size):
        return 10e-6 + size / 2e9 if size <= 64 * 1024 else 50e-6 + size / 40e9 if size < 8 * 2**20 else 200e-6 + size / 400e9

    sizes = np.array(logs.DOUBLINGS, dtype=float)
    pieces = straight_pieces(sizes, np.array([time(size) for size in sizes]))
    assert [(piece.first, piece.last) for piece in pieces] == [(8, 65536), (131072, 2**22), (2**23, 2**33)]
    assert [piece.start for piece in pieces] == pytest.approx([10e-6, 50e-6, 200e-6], rel=1e-6)
    assert [1 / piece.slope for piece in pieces] == pytest.approx([2e9, 40e9, 400e9], rel=1e-6)


def test_a_power_law_is_not_taken_for_a_straight_line():
    sizes = np.array([2.0**power for power in range(23, 31)])
    assert straightness(sizes, 1e-9 * sizes**1.4, 0.0).exponent == pytest.approx(1.4, abs=0.01)
    assert straightness(sizes, 1e-9 * sizes, 0.0).r_squared == pytest.approx(1.0)
    assert straightness(sizes[:2], sizes[:2], 0.0) is None
