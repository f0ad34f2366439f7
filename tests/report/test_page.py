"""The page of a plan: every figure of it is there, nothing from elsewhere is loaded, names are text whatever they hold."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import planner
from planner.cli.app import run
from planner.plan.document import PlanDocument
from planner.report.page import plan_page
from planner.report.page.answer import places_of, runs_of
from planner.report.page.bars import first_token_bar, memory_bar, token_bar
from planner.report.page.fabric_map import MOST_DRAWN, boxes_of
from planner.report.words import milliseconds, per_hour

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.stem for path in (ROOT / "problems").glob("*.yaml"))
VOID = {"meta", "link", "br", "img"}


class Structure(HTMLParser):
    """Tags that are opened and closed in order, the text outside scripts, and every address."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.addresses, self.wrong = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in {"src", "href"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


def read(page):
    structure = Structure()
    structure.feed(page)
    structure.close()
    return structure


@pytest.fixture(scope="module")
def plans():
    return {}


def plan_named(name, plans):
    if name not in plans:
        plans[name] = planner.solve(str(ROOT / "problems" / f"{name}.yaml")).plan
    return plans[name]


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_plan_becomes_a_sound_page(name, plans):
    """Tags are balanced, nothing is loaded from anywhere, the status stands at the top."""
    plan = plan_named(name, plans)
    page = plan_page(plan)
    structure = read(page)
    assert not structure.wrong
    assert structure.open == []
    assert structure.addresses == ["data:,"]
    assert "http" not in re.sub(r"\w+://\S+", "", "".join(structure.text)) or "https://" not in page
    words = " ".join(" ".join(structure.text).split())
    assert plan.problem in words
    if plan.cost_per_hour is not None:
        assert per_hour(plan.cost_per_hour, plan.currency) in words
    for deployment in plan.deployments:
        for replica in deployment.replicas:
            assert milliseconds(replica.times.tpot_s) in words
            for rank in replica.ranks:
                assert f"{rank.node} GPU {rank.gpu} · {deployment.name}" in page


def test_an_impossible_problem_says_so_and_why(plans):
    """No plan: the reason and the nearest misses with their rule."""
    plan = plan_named("eight_free_as_6_plus_2", plans)
    words = " ".join(" ".join(read(plan_page(plan)).text).split())
    assert "impossible as asked" in words
    assert plan.repairs
    assert all(item.message in words and item.hint in words for item in plan.repairs)
    assert plan.rejected
    assert all(item.code in words and item.message in words for item in plan.rejected)


def test_names_are_text(plans):
    """A name with markup in it stays a name."""
    data = plan_named("two_node_h100", plans).model_dump(mode="json")
    data["problem"] = "<script>alert(1)</script>"
    data["deployments"][0]["name"] = '"><img src=x onerror=alert(1)>'
    page = plan_page(PlanDocument.model_validate(data))
    assert "<script>alert" not in page
    assert "<img" not in page
    assert read(page).addresses == ["data:,"]


def test_bars_add_up(plans):
    """The parts of a time are the time; the parts of the memory and what is free are the budget."""
    for name in SHIPPED:
        for deployment in plan_named(name, plans).deployments:
            for replica in deployment.replicas:
                for bar in (token_bar(replica, deployment.asked), first_token_bar(replica, deployment.asked), memory_bar(replica)):
                    assert sum(part.width for part in bar.segments) <= 100 + 1e-6
                    assert all(0 <= mark.at <= 100 + 1e-6 for mark in bar.marks)
                full = sum(part.width for part in memory_bar(replica).segments)
                assert full == pytest.approx(100, abs=0.1)
                parts = replica.times
                assert parts.compute_s + parts.tp_comm_s + parts.pp_comm_s + parts.ep_comm_s + parts.fixed_s == pytest.approx(parts.tpot_s)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_map_counts_every_gpu_once(name, plans):
    """Used, idle, taken and failed GPUs of all boxes are the fabric's; every rank has its cell."""
    plan = plan_named(name, plans)
    boxes = boxes_of(plan)
    assert sum(box.gpus for box in boxes) == plan.gpus_total
    assert sum(sum(box.used.values()) for box in boxes) == plan.gpus_used
    assert all(box.idle >= 0 for box in boxes)
    assert sum(box.idle + box.taken + box.failed + sum(box.used.values()) for box in boxes) == plan.gpus_total
    cells = [cell for box in boxes for tile in box.tiles for cell in tile.cells for _ in range(tile.count)]
    assert len(cells) == plan.gpus_total
    assert sum(cell.state == "used" for cell in cells) == plan.gpus_used


def test_a_large_fabric_is_drawn_by_leaf(plans):
    """Beyond a thousand nodes a leaf is one bar; idle nodes of a middling fabric are folded into one tile."""
    data = plan_named("two_node_h100", plans).model_dump(mode="json")
    for count, drawn in ((100, True), (MOST_DRAWN + 1, False)):
        (entry,) = data["fabric"]["nodes"]
        width = max(2, len(str(count)))
        names = f"h100-[{1:0{width}}-{count:0{width}}]" if width > 2 else f"h100-[01-{count}]"
        changed = {**entry, "nodes": names, "count": count, "free_gpus": 8 * count}
        wide = json.loads(json.dumps(data).replace('"h100-01"', f'"h100-{1:0{width}}"'))
        wide["fabric"]["nodes"] = [changed]
        (box,) = boxes_of(PlanDocument.model_validate(wide))
        assert (len(box.tiles) > 0) is drawn
        assert box.idle == 8 * count - 8
        assert sum(tile.count for tile in box.tiles) == (count if drawn else 0)


def test_a_plan_without_a_fabric_shows_the_nodes_it_uses(plans):
    """Plans of an older planner have none."""
    plan = plan_named("two_node_h100", plans).model_copy(update={"fabric": None})
    (box,) = boxes_of(plan)
    assert [tile.name for tile in box.tiles] == ["h100-01"]
    assert read(plan_page(plan)).wrong == []


def test_spares_and_buckets_are_shown(plans):
    """A GPU kept free is no idle one; what a replica serves of each bucket stands beside it."""
    plan = planner.solve(str(ROOT / "problems/two_node_h100.yaml"), ["deployments.chat.spares=1"]).plan
    (box,) = boxes_of(plan)
    assert (box.idle, box.spare, sum(box.used.values())) == (0, 8, 8)
    assert plan_page(plan).count("kept free for a lost replica of chat") == 8
    toy = plan_named("melange_toy", plans)
    page = plan_page(toy)
    assert all(bucket.name in page for deployment in toy.deployments for replica in deployment.replicas for bucket in replica.buckets)


def test_runs_and_places(plans):
    """Runs are folded, nodes with the same GPUs too."""
    assert runs_of([0, 1, 2, 3, 6]) == "0-3,6"
    assert runs_of([5]) == "5"
    (deployment,) = plan_named("405b_bf16_four_nodes", plans).deployments
    assert places_of(deployment.replicas).endswith("GPUs 0-7")


def test_the_command_writes_the_page_and_audits(tmp_path, capsys):
    """With its problem the plan is audited; a plan that was changed is refused, an old one is warned of."""
    problem, plan, page = str(ROOT / "problems/two_node_h100.yaml"), tmp_path / "plan.json", tmp_path / "plan.html"
    assert run(["solve", problem, "-o", str(plan), "-q"]) == 0
    assert run(["report", str(plan), "-o", str(page), "--problem", problem]) == 0
    assert "every figure recomputed by the independent audit" in page.read_text(encoding="utf-8")
    assert run(["report", str(plan), "-o", str(page), "--problem", problem, "--set", "nodes.h100-[01-02].price=$25/h"]) == 1
    data = json.loads(plan.read_text(encoding="utf-8"))
    data["cost_per_hour"] = 1.0
    plan.write_text(json.dumps(data), encoding="utf-8")
    capsys.readouterr()
    assert run(["report", str(plan), "-o", str(page), "--problem", problem]) == 1
    assert "PRICE_MISMATCH" in capsys.readouterr().err
    assert run(["report", str(plan), "-o", str(tmp_path / "no" / "such.html")]) == 1
    assert "OUTPUT_NOT_WRITABLE" in capsys.readouterr().err
