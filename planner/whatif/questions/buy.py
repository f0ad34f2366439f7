"""Buy A or B: nodes of a group that is there, or of a GPU type of the catalog, and what each lets the fleet carry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from planner.catalog.gpus import Gpu, gpu
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.whatif.patching import Base, patched
from planner.whatif.questions import Question
from planner.whatif.questions.groups import group_named
from planner.whatif.questions.served import greatest_share
from planner.whatif.results import QuestionResult
from planner.whatif.scenarios import Change, Scenario, text_of
from planner.whatif.study import Study

_ASKED: Final = re.compile(r"(.+?)(?::\+?([0-9]{1,5}))?")
NVL72: Final = 72


@dataclass(frozen=True, slots=True)
class Option:
    """What could be bought: its words, and the change that puts it into the topology."""

    words: str
    change: Change


def read(base: Base, asked: tuple[str, ...]) -> Question:
    """Read what could be bought, each GROUP[:NODES] or GPU[:NODES].

    Raises
    ------
    PlannerError
        UNKNOWN_PATH or PURCHASE_NOT_UNDERSTOOD for each that is neither, and what keeps the enlarged topology from being built.
    """
    options: list[Option] = []
    faults: list[Diagnostic] = []
    for text in asked:
        try:
            option = _option(base, text.strip())
            patched(base, Scenario(text, (option.change,), Place("--buy")))
            options.append(option)
        except PlannerError as error:
            faults += error.diagnostics
    if faults:
        raise PlannerError(faults)
    return partial(_answer, options)


def _option(base: Base, text: str) -> Option:
    found = _ASKED.fullmatch(text)
    name, count = (found[1], int(found[2] or 1)) if found else (text, 0)
    if count < 1:
        message = f"`{text[:60]}` names nothing to buy"
        raise PlannerError([Diagnostic("PURCHASE_NOT_UNDERSTOOD", message, "write GROUP:NODES or GPU:NODES", place=Place("--buy"))])
    try:
        group = group_named(base, name)
    except PlannerError as unknown:
        try:
            known = gpu(name)
        except PlannerError:
            raise unknown from None
        return Option(f"{count} new nodes of {known.name}", _new_nodes(base, known, count))
    return Option(f"{count} more of {group.name}", group.change(group.nodes + count))


def _new_nodes(base: Base, bought: Gpu, count: int) -> Change:
    """Change that adds nodes of a type the fleet does not have: interfaces like those that are there, a leaf of their own, the catalog's price."""
    topology = base.data["topology"]
    groups = [*(topology.get("nodes") or []), *(topology.get("build") or [])]
    nics = next((group["nics"] for group in groups if group.get("nics")), None)
    wired = {} if nics is None else {"nics": nics}
    if bought.scale_up_domain >= NVL72:
        rack = {"kind": "nvl72", "name": "bought", "gpu": bought.name, "racks": count, **wired}
        return Change("build", text_of([*(topology.get("build") or []), rack]))
    numbers = f"[1-{count}]" if count > 1 else "1"
    leaf = {"leaf": "bought-leaf"} if nics is not None and any("leaf" in group or "kind" in group for group in groups) else {}
    new = {"name": f"bought-{numbers}", "gpu": bought.name, "gpus": 8, **wired, **leaf}
    return Change("nodes", text_of([*(topology.get("nodes") or []), new]))


def _answer(options: list[Option], study: Study) -> QuestionResult:
    rows: list[dict[str, Any]] = []
    share_now, proved = greatest_share(study, study.base.loaded)
    now = study.base_solved
    rows.append(_row("nothing", None, now.status, now.plan.cost_per_hour, share_now, share_now))
    price_now = _fleet_price(study, ())
    for option in options:
        answer = study.solved(option.change)
        share, sure = greatest_share(study, study.loaded((option.change,)))
        proved = proved and sure
        price = _fleet_price(study, (option.change,))
        more = None if price is None or price_now is None else price - price_now
        rows.append(_row(option.words, more, answer.status, answer.plan.cost_per_hour, share, share_now))
    bought = rows[1:]
    best = max(bought, key=lambda row: (row["status"] in {"optimal", "feasible"}, row["load_per_money"] or 0.0, row["load"]))
    gained = f"the fleet then carries {best['load']:.2f} times the loads ({share_now:.2f} now)"
    per = "" if best["price"] is None else f" for {best['price']:,.2f}/h"
    sentence = f"{best['buy']}{per}: {gained}" + ("" if best["load_per_money"] is None else ", the most for its price")
    return QuestionResult(
        question="buy",
        subject=" or ".join(option.words for option in options),
        value=best["buy"],
        unit="",
        proved=proved,
        sentence=sentence,
        rows=tuple(rows),
    )


def _row(words: str, price: float | None, status: str, cost: float | None, share: float, before: float) -> dict[str, Any]:
    """One thing to buy: its price [per hour], the plan's cost with it, the greatest factor on all loads, and how much of it 1.00/h buys."""
    return {
        "buy": words,
        "price": price,
        "status": status,
        "cost_per_hour": cost,
        "load": round(share, 4),
        "load_per_money": None if not price else round((share - before) / price, 8),
    }


def _fleet_price(study: Study, changes: tuple[Change, ...]) -> float | None:
    """Price of the whole fleet per hour, None where a node has none."""
    pools = (study.loaded(changes) if changes else study.base.loaded).fabric.pools
    prices = [None if pool.price_per_node is None else pool.price_per_node * pool.nodes for pool in pools]
    return None if None in prices else sum(price for price in prices if price is not None)
