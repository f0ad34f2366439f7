"""Tables of the page: what else there was, what is not possible and why, what every figure rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from planner.plan.document import PlanDocument, RejectedDocument, ShapeDocument, SourceDocument
from planner.report.where import where_words
from planner.report.words import milliseconds, per_hour, percent, shape_words

MOST_ALTERNATIVES: Final = 40
MOST_OF_ONE: Final = 12
LEAST_OF_ONE: Final = 2
MOST_NAMED: Final = 8


@dataclass(frozen=True)
class Table:
    """Heads, rows of cells, and which columns hold figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figures: frozenset[int] = frozenset()


def alternatives_table(plan: PlanDocument) -> Table:
    """The plan's own shapes first, then what would also serve, ranked, with what makes it lose."""
    rows = []
    most = max(LEAST_OF_ONE, min(MOST_OF_ONE, MOST_ALTERNATIVES // max(1, len(plan.deployments))))
    for deployment in plan.deployments:
        seen: set[ShapeDocument] = set()
        for replica in deployment.replicas:
            if replica.shape in seen:
                continue
            seen.add(replica.shape)
            same = [item for item in deployment.replicas if item.shape == replica.shape]
            price = None if replica.price_per_hour is None else sum(item.price_per_hour or 0.0 for item in same)
            gpus = sum(len(item.ranks) for item in same)
            tpot, ttft = milliseconds(replica.times.tpot_s), milliseconds(replica.times.ttft_s)
            told = (
                deployment.name,
                _shape(replica.shape),
                where_words(plan, deployment.name, replica.shape),
                str(len(same)),
                str(gpus),
                per_hour(price, plan.currency),
            )
            rows.append((*told, tpot, ttft, "chosen"))
        others = [item for item in plan.alternatives if item.deployment == deployment.name]
        rows += [
            (
                deployment.name,
                _shape(other.shape),
                where_words(plan, deployment.name, other.shape),
                str(other.replicas),
                str(other.gpus),
                per_hour(other.price_per_hour, plan.currency),
                milliseconds(other.tpot_s),
                milliseconds(other.ttft_s),
                other.reason,
            )
            for other in others[:most]
        ]
    heads = ("model", "shape", "GPU type", "replicas", "GPUs", "price", "per token", "first token", "why not")
    return Table(heads, tuple(rows), frozenset({3, 4, 5, 6, 7}))


def _shape(shape: ShapeDocument) -> str:
    return shape_words(shape.tp, shape.pp, shape.ep, shape.dp)


def rejected_table(plan: PlanDocument) -> Table:
    """Rules that shapes break, the nearest miss of each in words."""
    groups: dict[tuple[str, str, str], list[RejectedDocument]] = {}
    for item in plan.rejected:
        groups.setdefault((item.deployment, item.code, item.shape.gpu), []).append(item)
    rows = []
    for (name, code, _), items in groups.items():
        shape = items[0].shape
        if len({item.shape.nodes for item in items}) > 1:
            shape = shape.model_copy(update={"nodes": ""})
        gpu = where_words(plan, name, shape)
        others = [other for other in dict.fromkeys(_shape(item.shape) for item in items[1:]) if other != _shape(shape)]
        named = ", ".join(others[:MOST_NAMED]) + (f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else "")
        rows.append((name, code, gpu, f"{_shape(items[0].shape)}: {items[0].message}", named))
    return Table(("model", "rule", "GPU type", "nearest miss", "also"), tuple(rows))


def sources_table(plan: PlanDocument) -> Table:
    """What every figure rests on, a guess called a guess; alike sources of several models once."""
    owners: dict[SourceDocument, list[str]] = {}
    for item in plan.sources:
        owners.setdefault(item.model_copy(update={"deployment": ""}), []).append(item.deployment)
    everyone = len({item.deployment for item in plan.sources})
    rows = []
    for item, names in owners.items():
        error = ""
        if item.median_error is not None and item.p90_error is not None:
            error = f"median {percent(item.median_error, 1)}, P90 {percent(item.p90_error, 1)} over {item.rows} rows"
        rows.append((item.figure, item.basis, error, item.source, "all" if len(names) == everyone else ", ".join(names)))
    return Table(("figure", "basis", "error where fitted", "source", "model"), tuple(rows))


def links_table(plan: PlanDocument) -> Table:
    """Links of the fabric by level."""
    links = () if plan.fabric is None else plan.fabric.links
    rows = tuple(
        (
            link.gpu,
            link.level,
            link.link,
            f"{link.bandwidth / 1e9:,.0f} GB/s",
            f"{link.alpha * 1e6:.1f} us",
            "" if link.oversubscription == 1 else f"{link.oversubscription:g} : 1",
        )
        for link in links
    )
    return Table(("GPU type", "level", "link", "a GPU gets", "start-up", "oversubscribed"), rows, frozenset({3, 4, 5}))
