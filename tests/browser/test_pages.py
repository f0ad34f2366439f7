"""The pages in a real browser: nothing is cut, nothing overlaps, nothing complains, and what is clicked answers."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import planner
from planner.report.page.answer import answer_lines
from planner.ui.controls import controls_of
from planner.ui.question import Question
from planner.ui.server import PageServer
from planner.whatif.patching import open_base
from tests.browser.conftest import browser

pytestmark = pytest.mark.browser

PAGES = ("two_node_h100", "nvl72_rack", "mixed_fleet", "eight_free_as_6_plus_2", "many_nodes", "front")
PROBLEM = str(Path(__file__).parents[2] / "problems/two_node_h100.yaml")

CUT = """
const cut = [];
for (const part of document.querySelectorAll('body *')) {
  if (part.closest('.scroll, .unseen, .track, #tip, select') || !part.getClientRects().length) continue;
  const box = part.getBoundingClientRect();
  if (box.right > innerWidth + 1 || box.left < -1) cut.push(part.tagName + '.' + part.className + ' ' + Math.round(box.right));
}
return cut.slice(0, 5);
"""
OVERLAPS = """
const found = [];
for (const kind of ['main > section', '.answer > div', '.bar', '.tiles > .node', '.gpus > i', '.key > li', 'tbody > tr']) {
  for (const parent of new Set([...document.querySelectorAll(kind)].map((part) => part.parentElement))) {
    const boxes = [...parent.children].filter((part) => part.getClientRects().length).map((part) => part.getBoundingClientRect());
    for (let i = 1; i < boxes.length; i++) {
      const [a, b] = [boxes[i - 1], boxes[i]];
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1) found.push(kind);
    }
  }
}
return [...new Set(found)];
"""
FAINT = """
const light = (text) => { const [r, g, b] = text.match(/[0-9.]+/g).slice(0, 3).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (part) => { for (let at = part; at; at = at.parentElement) { const c = getComputedStyle(at).backgroundColor; if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255, 255, 255)'; };
const faint = [];
for (const part of document.querySelectorAll('h1, h2, h3, h4, p, dt, dd, li, th, td, summary, small')) {
  if (!part.getClientRects().length || part.closest('.unseen')) continue;
  const [a, b] = [light(getComputedStyle(part).color), light(behind(part))];
  if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) faint.push(part.tagName + ' ' + part.textContent.slice(0, 30));
}
return faint.slice(0, 5);
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(plans, name, width, dark):
    """Nothing reaches beyond the window, nothing lies upon another thing, text stands out from its ground, the console is silent."""
    folder, _ = plans
    with browser(width, dark) as window:
        window.get(f"file://{folder / name}.html")
        assert window.execute_script("return document.documentElement.scrollWidth") <= width
        assert window.execute_script(CUT) == []
        assert window.execute_script(OVERLAPS) == []
        assert window.execute_script(FAINT) == []
        window.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        assert window.execute_script(CUT) == []
        assert window.execute_script(OVERLAPS) == []
        assert window.get_log("browser") == []


def test_a_page_answers_to_pointer_and_keys(plans):
    """The figure under the pointer is told; a name in the legend dims the others; the button changes the colours."""
    folder, found = plans
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    with browser(1280, dark=False) as window:
        window.get(f"file://{folder / 'mixed_fleet'}.html")
        cell = window.find_element(By.CSS_SELECTOR, ".gpus i.used")
        ActionChains(window).move_to_element(cell).perform()
        tip = window.find_element(By.ID, "tip")
        assert tip.is_displayed()
        assert tip.text == cell.get_attribute("data-tip")
        button = window.find_element(By.CSS_SELECTOR, ".only")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        shown = len(window.find_elements(By.CSS_SELECTOR, ".gpus i.shown"))
        assert shown == sum(len(replica.ranks) for replica in found["mixed_fleet"].deployments[0].replicas)
        button.click()
        assert window.find_elements(By.CSS_SELECTOR, ".gpus i.shown") == []
        ground = "return getComputedStyle(document.body).backgroundColor"
        before = window.execute_script(ground)
        window.find_element(By.ID, "theme").click()
        assert window.execute_script(ground) != before
        assert window.get_log("browser") == []


def test_two_hundred_moves_end_in_the_last_answer():
    """A slider dragged wildly: one answer is shown, that of the last value, and nothing is solved any more."""
    base = open_base(PROBLEM)
    server = PageServer(("127.0.0.1", 0), Question(PROBLEM, (), ()), controls_of(base), "two nodes", open_to_others=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    with server, browser(1280, dark=False) as window:
        window.get(server.url)
        window.execute_script(
            "const slider = document.querySelector('input[type=range]');"
            "for (let move = 0; move <= 200; move++) {"
            "  slider.value = move < 200 ? 1 + (move * 7) % 200 : 64;"
            "  slider.dispatchEvent(new Event('input', { bubbles: true }));"
            "}"
        )
        end = time.monotonic() + 120
        words = ""
        while "concurrency=64" not in words and time.monotonic() < end:
            time.sleep(0.2)
            words = window.execute_script("return document.getElementById('changes').textContent")
        assert words == "changed: deployments.chat.workload.concurrency=64"
        (line, *_) = answer_lines(planner.solve(PROBLEM, ["deployments.chat.workload.concurrency=64"]).plan, audited=True)
        assert line.words in window.execute_script("return document.getElementById('answer').textContent")
        assert not server.desk.busy
        assert window.get_log("browser") == []
        server.shutdown()
