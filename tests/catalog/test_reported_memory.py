from __future__ import annotations

import pytest

from planner.catalog.reported_memory import GIB, MIB, reported_by_amd_driver, reported_by_driver, shown_by_smi

# nvidia-smi total [MiB] and driver total [GiB] of the same card, from public logs.
BOTH = {
    "T4": (15_360, 14.6),
    "RTX 3090": (24_576, 23.58),
    "RTX 4090": (24_564, 23.55),
    "RTX 5090": (32_607, 31.36),
    "A100 40 GB": (40_960, 39.5),
    "L40S": (46_068, 44.53),
    "A6000": (49_140, 47.5),
    "H100": (81_559, 79.18),
    "A100 80 GB": (81_920, 79.15),
    "H20": (97_871, 95.0),
    "H200": (143_771, 139.72),
    "B200": (183_359, 178.35),
}


@pytest.mark.parametrize(("shown", "reported"), BOTH.values(), ids=BOTH)
def test_the_rule_agrees_with_cards_of_which_both_figures_are_known(shown, reported):
    assert reported_by_driver(shown * MIB) / GIB == pytest.approx(reported, abs=0.31)


@pytest.mark.parametrize(
    ("nominal", "kind", "shown"), [(24, "gddr-ecc", 23_034), (48, "gddr-ecc", 46_068), (80, "hbm", 81_920), (24, "gddr", 24_576)]
)
def test_ecc_takes_a_sixteenth_of_gddr_and_nothing_of_hbm(nominal, kind, shown):
    assert shown_by_smi(nominal * GIB, kind) / MIB == pytest.approx(shown, rel=0.001)


def test_amd_reports_nearly_the_whole():
    assert reported_by_amd_driver(192 * GIB) / GIB == pytest.approx(191.98)
