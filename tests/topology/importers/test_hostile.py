"""Files made to hurt end in a clear error: bombs, endless lists, endless lines, binary."""

from __future__ import annotations

import tracemalloc

import pytest

from planner.diagnostics import PlannerError
from planner.topology.importers.kinds import KINDS, read_file

BILLION_LAUGHS = '<!DOCTYPE s [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><system>&b;</system>'
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
FILES = {
    "entities": (BILLION_LAUGHS, {"XML_FORBIDDEN"}),
    "external entity": ('<!DOCTYPE s SYSTEM "file:///etc/passwd"><system/>', {"XML_FORBIDDEN"}),
    "deep xml": ("<system>" + "<a>" * 100_000, {"NESTED_TOO_DEEP"}),
    "wide xml": ("<system>" + "<a/>" * 200_000 + "</system>", {"TOO_MANY_ELEMENTS"}),
    "large xml": ("<system>" + " " * 9_000_000 + "</system>", {"FILE_TOO_LARGE"}),
    "ten million hosts": ("SwitchName=a Nodes=h[1-10000000]\n", {"HOST_LIST_TOO_LARGE"}),
    "hosts by product": ("SwitchName=a Nodes=h[1-9999]x[1-9999]y[1-9999]\n", {"HOST_LIST_TOO_LARGE"}),
    "many host lists": ("".join(f"SwitchName=s{n} Nodes=h{n}x[1-9999]\n" for n in range(100)), {"HOST_LIST_TOO_LARGE"}),
    "block of ten million": ("BlockName=b Nodes=h[0-9999999]\n", {"HOST_LIST_TOO_LARGE"}),
    "ten million hosts in yaml": ("blocks:\n- switch: s\n  nodes: ['h[1-10000000]']\n", {"HOST_LIST_TOO_LARGE"}),
    "one long line": ("GPU0 X " + "NV18 " * 1_000_000, {"LINE_TOO_LONG", "FILE_TOO_LARGE"}),
    "one long record": ('Switch 1 "' + "a" * 5_000_000, {"LINE_TOO_LONG", "KIND_NOT_FOUND"}),
    "empty lines": ('Switch 1 "S-1"\n' + "\n" * 3_000_000, {"FILE_TOO_LARGE"}),
    "aliases": ("blocks: []\n" + ALIASES, {"TOO_MANY_VALUES"}),
    "deep yaml": ("blocks: " + "[" * 50_000, {"NESTED_TOO_DEEP", "YAML_SYNTAX"}),
    "deep json": ('{"kind": "List", "items": ' + "[" * 200_000, {"NESTED_TOO_DEEP", "JSON_SYNTAX"}),
    "long number": ('{"kind": "List", "items": ' + "9" * 100_000 + "}", {"JSON_SYNTAX"}),
    "many plain hosts": ("SwitchName=a Nodes=" + ",".join(f"h{n}y" for n in range(9000)) + ",h[\n", {"HOST_LIST_INVALID"}),
    "many ranges": (
        "".join(f"SwitchName=s{n} Nodes=h[{','.join(map(str, range(1, 20_000, 2)))}]x{n}\n" for n in range(12)),
        {"HOST_LIST_TOO_LARGE"},
    ),
    "spaces": ('Switch 1 "S-1"\n' + (" " * 60_000 + "[\n") * 400, {"NO_CABLES"}),
    "arrows": ("1 1[ ] ==(" + (" " * 60_000 + "==(\n") * 400, {"NO_RECORDS", "KIND_NOT_FOUND"}),
    "equal signs": ("= Link Type between two GPUs =\n" + ("=" * 60_000 + "\n") * 30, {"LINK_TYPES_MISSING"}),
    "many columns": ("\t" + "\t".join(f"GPU{n}" for n in range(3000)) + "\nGPU0\t X \n", {"TOO_MANY_GPUS"}),
    "more than a file holds": ("GPU0 X\n" * 5_000_000, {"FILE_TOO_LARGE"}),
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_files_end_in_an_error(name):
    text, codes = FILES[name]
    tracemalloc.start()
    try:
        with pytest.raises(PlannerError) as caught:
            read_file("auto", text, "hostile")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.diagnostics[0].code in codes
    # The text itself may be held a second time, never many times over.
    assert peak < 4 * len(text) + 64 * 2**20


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_too_large_is_refused_by_every_reader(kind):
    with pytest.raises(PlannerError) as caught:
        read_file(kind, "x = y\n" * 6_000_000, "large")
    assert {item.code for item in caught.value.diagnostics} & {"FILE_TOO_LARGE", "WRONG_KIND"}
