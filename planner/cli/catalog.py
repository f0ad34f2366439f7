"""`planner catalog`: what is known, and from where."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from planner.cli.console import Common, answer_console, print_json
from planner.cli.exit_codes import ExitCode

NO_COMMON = Common()
GIB = 2.0**30


def catalog(
    kind: Literal["gpus", "models", "links", "engines", "codes"],
    /,
    *,
    as_csv: Annotated[bool, Parameter(name="--csv", negative="")] = False,
    common: Common = NO_COMMON,
) -> int:
    """List what the planner knows, each entry with its source.

    Parameters
    ----------
    kind
        gpus, models, links, engines, or codes (every diagnostic code with its meaning).
    as_csv
        Print comma-separated values.
    common
        Options of every command.
    """
    rows = list({"gpus": _gpus, "models": _models, "links": _links, "engines": _engines, "codes": _codes}[kind]())
    if common.json:
        print_json({"format_version": 1, kind: rows})
    elif as_csv:
        writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    else:
        _print_table(rows, common)
    return ExitCode.ANSWERED


def _print_table(rows: Iterable[Mapping[str, Any]], common: Common) -> None:
    from rich.table import Table

    rows = list(rows)
    table = Table(box=None, pad_edge=False, show_edge=False)
    for column in rows[0]:
        right = all(row[column] is None or isinstance(row[column], int | float) for row in rows)
        prose = column in ("source", "meaning", "repair")
        table.add_column(column, justify="right" if right else "left", no_wrap=not prose, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else f"{value:g}" if isinstance(value, float) else str(value) for value in row.values()))
    answer_console(common, width=None if sys.stdout.isatty() else 200).print(table)


def _gpus() -> Iterator[dict[str, Any]]:
    from planner.catalog.gpus import gpus

    for gpu in gpus():
        yield {
            "name": gpu.name,
            "memory_gib": round(gpu.memory.value / GIB, 2),
            "memory_basis": gpu.memory.basis,
            "bandwidth_gb_s": gpu.memory_bandwidth.value / 1e9,
            **{f"{dtype}_tflops": gpu.flops[dtype].value / 1e12 if dtype in gpu.flops else None for dtype in ("bf16", "fp8")},
            "scale_up": gpu.scale_up or "",
            "domain": gpu.scale_up_domain,
            "usd_per_hour": None if gpu.price is None else round(gpu.price.per_gpu_hour, 2),
            "source": gpu.source,
        }


def _models() -> Iterator[dict[str, Any]]:
    from planner.catalog.models import models

    for model in models():
        kinds = model.kind_counts()
        heads = max((kind.attention.heads for kind, _ in kinds if kind.attention is not None), default=0)
        kv_heads = sorted({kind.attention.kv_heads for kind, _ in kinds if kind.attention is not None})
        experts = max((kind.feed_forward.experts for kind, _ in kinds if kind.feed_forward is not None), default=0)
        yield {
            "name": model.name,
            "layers": model.layers,
            "hidden": model.hidden_size,
            "heads": heads,
            "kv_heads": "/".join(map(str, kv_heads)),
            "experts": experts,
            "weights": "/".join(model.quantization.formats) if model.quantization is not None else model.dtype,
            "context": model.max_position,
            "source": model.source,
        }


def _links() -> Iterator[dict[str, Any]]:
    from planner.catalog.links import links

    for link in links():
        yield {
            "name": link.name,
            "kind": link.kind,
            "gb_s": link.bandwidth.value / 1e9,
            "hockney_alpha_us": link.hockney_alpha.value * 1e6,
            "hockney_gb_s": link.hockney_bandwidth.value / 1e9,
            "calibrated_alpha_us": link.calibrated_alpha.value * 1e6,
            "calibrated_gb_s": link.calibrated_bandwidth.value / 1e9,
            "source": link.bandwidth.source,
        }


def _engines() -> Iterator[dict[str, Any]]:
    from planner.catalog.engines import engines

    for engine in engines():
        yield {
            "name": engine.name,
            "version": engine.version,
            "gpu_memory_utilization": engine.gpu_memory_utilization,
            "max_num_seqs": engine.max_num_seqs,
            "max_num_batched_tokens": engine.max_num_batched_tokens,
            "source": engine.source,
        }


def _codes() -> Iterator[dict[str, Any]]:
    from planner.catalog.codes import codes

    for code, (meaning, repair) in sorted(codes().items()):
        yield {"code": code, "meaning": meaning, "repair": repair}
