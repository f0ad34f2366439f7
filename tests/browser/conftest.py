"""Chromium without a window, at a width and in a colour scheme."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


@contextmanager
def browser(width, dark):
    """A browser window; every message of its console is kept."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield window
    finally:
        window.quit()


@pytest.fixture(scope="session")
def plans(tmp_path_factory):
    """Pages of plans: two nodes, an NVL72 rack, a mixed fleet with holes, no plan at all, and the same plan on 128 nodes."""
    from pathlib import Path

    import planner
    from planner.plan.document import PlanDocument
    from planner.report.page import plan_page

    problems = Path(__file__).parents[2] / "problems"
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name in ("two_node_h100", "nvl72_rack", "mixed_fleet", "eight_free_as_6_plus_2"):
        found[name] = planner.solve(str(problems / f"{name}.yaml")).plan
    data = planner.solve(str(problems / "two_node_h100.yaml"), ["nodes.h100-[01-02].name=h100-[001-128]"]).plan
    found["many_nodes"] = PlanDocument.model_validate(data.model_dump())
    found["front"] = planner.solve(str(problems / "mixed_fleet.yaml"), pareto="tpot").plan
    for name, plan in found.items():
        (folder / f"{name}.html").write_text(plan_page(plan), encoding="utf-8")
    return folder, found
