"""Coverage-guided fuzzing of one reader: whatever bytes come, it answers with a reading or with diagnostics.

Usage: python benchmarks/fuzz.py READER [--seconds N] [--folder DIR]. Needs atheris: pip install 'llm-deployment-planner[fuzz]'. Readers are the kinds of
`planner topology import`, and prices, guid-map, benchmark (nccl-tests), steps (measured step times). The fuzzer begins with the files that the tests read, keeps
what reaches new code in DIR, and stops at the first exception that is not the reader's own, whose input it writes there. Whole imports are made with
`import-KIND`: what was read must also become a topology, or be refused.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

ROOT = Path(__file__).parents[1]
SEEDS = (ROOT / "tests/topology/importers/inputs", ROOT / "docs/examples")
LONGEST = 4096


def reader_named(name: str) -> Callable[[str], Any]:
    """What reads a text, by its name on the command line."""
    from planner.calibrate.reading import read_runs
    from planner.calibrate.step_rows import steps_of
    from planner.catalog.gpus import gpu
    from planner.topology.importers.completing import Assumptions
    from planner.topology.importers.facts import NicFacts
    from planner.topology.importers.guid_map import read_guid_map
    from planner.topology.importers.importing import SourceFile, import_topology
    from planner.topology.importers.kinds import KINDS, read_file
    from planner.topology.importers.prices import read_prices

    others: dict[str, Callable[[str, str], Any]] = {
        "prices": read_prices,
        "guid-map": read_guid_map,
        "benchmark": read_runs,
        "steps": steps_of,
    }
    if name in others:
        return lambda text: others[name](text, "fuzz")
    kind = name.removeprefix("import-")
    if kind not in KINDS:
        raise SystemExit(f"no reader is called {name}: {', '.join((*KINDS, *others))}, or import-KIND")
    if kind == name:
        return lambda text: read_file(kind, text, "fuzz")
    assumed = Assumptions(gpu("h100-sxm-80gb"), 8, NicFacts(8, 50e9, "roce"))
    return lambda text: import_topology(kind, [SourceFile("fuzz", text)], assumptions=assumed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reader")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()

    import atheris

    # Readers are imported when they are first used: here, so that what they reach counts.
    with atheris.instrument_imports(include=["planner"]):
        from planner.diagnostics import PlannerError
        from planner.topology.importers.kinds import KINDS
        from planner.topology.importers.lines import text_of

        for module, _, _ in KINDS.values():
            import_module(f"planner.topology.importers.{module}")
        read = reader_named(arguments.reader)

    def once(data: bytes) -> None:
        try:
            read(text_of(data, "fuzz"))
        except PlannerError as error:
            if not error.diagnostics or not all(each.code and each.message for each in error.diagnostics):
                raise RuntimeError("an error that says nothing") from error

    folder = arguments.folder or Path(mkdtemp(prefix="planner-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    for seed in (path for source in SEEDS for path in source.iterdir() if path.is_file() and path.stat().st_size <= 4 * LONGEST):
        shutil.copy(seed, folder / seed.name)
    limits = [f"-max_total_time={arguments.seconds}", f"-max_len={LONGEST}", "-timeout=20", f"-artifact_prefix={folder}/found-"]
    atheris.Setup([sys.argv[0], *limits, str(folder)], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
