"""`planner topology`: read what operators have into a topology file, and show a topology as tables and graphs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from planner.cli.console import Common, answer_console, print_diagnostics, print_json
from planner.cli.exit_codes import ExitCode
from planner.diagnostics import Diagnostic, PlannerError

if TYPE_CHECKING:
    from planner.topology.fabric import Fabric

NO_COMMON = Common()
MOST_ROWS = 48
TITLES = {"pools": "nodes", "levels": "levels", "leaves": "leaves", "domains": "scale-up domains", "suspicions": "looks wrong"}

topology = App(name="topology", help="Read a topology from what operators have, or show one.")


@topology.command(name="import")
def import_files(
    kind: str,
    files: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    gpu: str | None = None,
    gpus: int | None = None,
    nics: str | None = None,
    fabric: Literal["infiniband", "roce", "efa", "ethernet"] | None = None,
    hosts: str | None = None,
    name: str | None = None,
    guid_map: str | None = None,
    prices: str | None = None,
    common: Common = NO_COMMON,
) -> int:
    """Read files of one kind, or several kinds at once with `auto`, into one commented topology file.

    Parameters
    ----------
    kind
        nvidia-smi, rocm-smi, nccl (and rccl), ibnetdiscover (and ibsim), iblinkinfo, slurm, topograph, kubernetes, kueue, or auto.
    files
        Files to read, `-` for standard input; several are joined by host name and GUID.
    output
        Write the topology here (.json for JSON without comments) in place of standard output.
    gpu
        GPU type of nodes whose files do not name it (`planner catalog gpus`).
    gpus
        GPUs of one node where no file counts them.
    nics
        Network interfaces of one node where no file tells: 8x400Gb/s, or 400Gb/s where only the speed is missing.
    fabric
        Kind of the network where no file tells.
    hosts
        Host list of the nodes that a matrix or a dump stands for, such as h100-[01-16].
    name
        Name of the topology; that of the first file when absent.
    guid_map
        File with lines `GUID HOST`, for adapters that name no host.
    prices
        CSV of prices with columns gpu, count and usd_per_hour, instance and provider where known.
    common
        Options of every command.
    """
    from planner.topology.importers.importing import import_topology

    if not files:
        raise PlannerError([Diagnostic("NO_FILES", "no file is named", "planner topology import KIND FILE...")])
    sources, guids, price_list = _read_inputs(files, guid_map, prices)
    imported = import_topology(
        kind,
        sources,
        name=name or _stem(files[0]) or "imported",
        assumptions=_assumptions(gpu, gpus, nics, fabric),
        hosts=hosts,
        guid_map=guids,
        prices=price_list,
    )
    if output is not None:
        _write(output, json.dumps(imported.data, indent=2) + "\n" if output.suffix == ".json" else imported.text)
    if common.json:
        print_json(
            {
                "format_version": 1,
                "kinds": list(imported.kinds),
                "learnt": list(imported.learnt),
                "topology": imported.data,
                "diagnostics": _rows(imported.diagnostics),
            }
        )
    elif output is None:
        sys.stdout.write(imported.text)
    else:
        sys.stdout.write(f"wrote {output}: {_size(imported.fabric)}\n")
    print_diagnostics(imported.diagnostics, common)
    return ExitCode.ANSWERED


def _size(fabric: Fabric) -> str:
    from planner.report.words import quantity_of

    return f"{quantity_of(len(fabric.nodes), 'node')} with {quantity_of(len(fabric.inventory.state), 'GPU')}"


def _read_inputs(files: Sequence[str], guid_map: str | None, prices: str | None) -> tuple[list[Any], dict[str, str], Any]:
    """Read all files, and report every one that cannot be read."""
    from planner.topology.importers.guid_map import read_guid_map
    from planner.topology.importers.importing import SourceFile
    from planner.topology.importers.prices import read_prices

    faults: list[Diagnostic] = []
    sources, guids, price_list = [], {}, None
    for path in files:
        try:
            stem = _stem(path)
            sources.append(SourceFile(_shown(path), _read(path), (stem,) if stem else ()))
        except PlannerError as error:
            faults.extend(error.diagnostics)
    try:
        guids = read_guid_map(_read(guid_map), _shown(guid_map)) if guid_map is not None else {}
    except PlannerError as error:
        faults.extend(error.diagnostics)
    try:
        price_list = read_prices(_read(prices), _shown(prices)) if prices is not None else None
    except PlannerError as error:
        faults.extend(error.diagnostics)
    if faults:
        raise PlannerError(faults)
    return sources, guids, price_list


def _shown(path: str) -> str:
    from planner.problem.source_text import display_name

    return display_name(path)


def _stem(path: str) -> str:
    return "" if path == "-" else Path(path).stem


def _read(path: str) -> str:
    from planner.problem.source_text import read_bounded
    from planner.topology.importers.lines import text_of

    return text_of(read_bounded(path, "give the output of one command a file"), _shown(path))


def _assumptions(gpu: str | None, gpus: int | None, nics: str | None, fabric: str | None) -> Any:
    from planner.catalog.gpus import gpu as gpu_named
    from planner.topology.importers.completing import Assumptions
    from planner.topology.importers.facts import NicFacts

    faults: list[Diagnostic] = []
    found = None
    try:
        found = gpu_named(gpu) if gpu is not None else None
    except PlannerError as error:
        faults.extend(error.diagnostics)
    if gpus is not None and not 1 <= gpus <= 1024:
        faults.append(Diagnostic("GPU_COUNT_UNKNOWN", f"--gpus {gpus} is no number of GPUs of one node", "write --gpus 8"))
    read: NicFacts | None = None
    if nics is not None:
        from planner.quantities import Kind, QuantityError, parse_quantity

        count, times, _ = nics.strip().lower().partition("x")
        try:
            bandwidth = parse_quantity(nics.strip()[len(count) + 1 :] if times else nics.strip(), Kind.BYTES_PER_SECOND)
        except QuantityError as error:
            bandwidth = 0.0
            faults.append(Diagnostic("NICS_INVALID", f"--nics {nics[:40]}: {error}", "write 8x400Gb/s or 400Gb/s"))
        number = int(count) if times and count.strip().isascii() and count.strip().isdigit() and len(count) < 6 else None
        if not faults and ((times and not 1 <= (number or 0) <= 1024) or bandwidth <= 0):
            faults.append(Diagnostic("NICS_INVALID", f"--nics {nics[:40]} is no count and speed", "write 8x400Gb/s or 400Gb/s"))
        read = NicFacts(number, bandwidth)
    if faults:
        raise PlannerError(faults)
    return Assumptions(found, gpus, read, fabric)


def _rows(diagnostics: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    from planner.cli.console import diagnostics_document

    rows: list[dict[str, Any]] = diagnostics_document("valid", diagnostics)["diagnostics"]
    return rows


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write {output}: {error.strerror or error}"
        hint = "name a file in a folder that exists and may be written"
        raise PlannerError([Diagnostic("OUTPUT_NOT_WRITABLE", message, hint)]) from error


@topology.command
def show(
    file: str,
    /,
    *,
    table: Literal["pools", "levels", "leaves", "domains", "suspicions"] | None = None,
    graph: Path | None = None,
    graph_gpus: Annotated[bool, Parameter(negative="")] = False,
    as_csv: Annotated[bool, Parameter(name="--csv", negative="")] = False,
    common: Common = NO_COMMON,
) -> int:
    """Show a topology: nodes, levels, leaves, domains, oversubscription, and what looks wrong.

    Parameters
    ----------
    file
        Topology or problem file, or `-` for standard input.
    table
        Show only this table.
    graph
        Also write the graph: .json (networkx node-link form, which topologies accept under `graph:`) or .graphml.
    graph_gpus
        Write every GPU into the graph, not only hosts and switches.
    as_csv
        Print comma-separated values of one table (pools, unless --table names another).
    common
        Options of every command.
    """
    from planner.problem.load import load_any
    from planner.report.topology import TABLES

    loaded = load_any(file)
    if not hasattr(loaded, "fabric"):
        raise PlannerError([Diagnostic("NOT_A_TOPOLOGY", f"{file} is a profile of measured links", "name a topology or a problem")])
    wanted = [table] if table is not None else ["pools"] if as_csv else list(TABLES)
    tables = {name: TABLES[name](loaded.fabric) for name in wanted}
    if graph is not None:
        _write_graph(graph, loaded.fabric.gpu_graph if graph_gpus else loaded.fabric.graph)
    if common.json:
        print_json({"format_version": 1, "topology": loaded.fabric.name, **tables})
    elif as_csv:
        rows = tables[wanted[0]]
        writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        sys.stdout.write(f"{loaded.fabric.name}: {_size(loaded.fabric)}\n")
        for name, rows in tables.items():
            cut = rows if table is not None else rows[:MOST_ROWS]
            _print_table(TITLES[name], cut, common)
            if len(cut) < len(rows):
                sys.stdout.write(f"and {len(rows) - len(cut)} more: --table {name}\n")
    print_diagnostics(loaded.warnings, common)
    return ExitCode.ANSWERED


def _print_table(title: str, rows: Sequence[Mapping[str, Any]], common: Common) -> None:
    from rich.table import Table

    if not rows:
        return
    table = Table(title=f"\n{title}", title_justify="left", box=None, pad_edge=False, show_edge=False)
    for column in rows[0]:
        right = all(isinstance(row[column], int | float) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:g}" if isinstance(value, float) else str(value) for value in row.values()))
    answer_console(common, width=None if sys.stdout.isatty() else 180).print(table)


def _write_graph(path: Path, graph: Any) -> None:
    """Write a graph as node-link JSON or GraphML, by the name of its file."""
    import networkx as nx

    if path.suffix == ".json":
        _write(path, json.dumps(nx.node_link_data(graph, edges="edges"), indent=1) + "\n")
        return
    if path.suffix != ".graphml":
        raise PlannerError(
            [Diagnostic("GRAPH_FORMAT_UNKNOWN", f"no graph is written as `{path.suffix}`", "name a file that ends in .json or .graphml")]
        )
    # GraphML holds scalars only; lists and mappings are written as JSON text.
    flat = nx.Graph(**graph.graph)
    for vertex, keys in graph.nodes(data=True):
        flat.add_node(
            vertex,
            **{
                key: value if isinstance(value, str | int | float | bool) else json.dumps(value)
                for key, value in keys.items()
                if value is not None
            },
        )
    flat.add_edges_from(graph.edges(data=True))
    _write(path, "\n".join(nx.generate_graphml(flat)) + "\n")
