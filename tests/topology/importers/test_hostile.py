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
    "many host lists": ("SwitchName=s1 Nodes=h1x[1-999]\nSwitchName=s2 Nodes=h2x[1-29999]\n", {"HOST_LIST_TOO_LARGE"}),
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
        f"SwitchName=s1 Nodes=h[1-2000]\nSwitchName=s2 Nodes=h[{','.join(map(str, range(1, 20_000, 2)))},30000-60000]x\n",
        {"HOST_LIST_TOO_LARGE"},
    ),
    "one switch again and again": ("SwitchName=s Nodes=h[1-2]\n" * 5_000, {"DUPLICATE_SWITCH"}),
    "attributes without end": ("<system><cpu " + " ".join(f'a{n}="1"' for n in range(100_000)) + "/></system>", {"LINE_TOO_LONG"}),
    "attributes everywhere": ("<system>" + '<a a="" b="" c="" d="" e="" f="" g=""/>' * 45_000 + "</system>", {"TOO_MANY_ELEMENTS"}),
    "references": ("<system>" + "&amp;" * 700_000 + "</system>", {"TOO_MANY_ELEMENTS"}),
    "a dump of a whole cluster": (
        "<system>" + '<cpu host_hash="%d"><pci class="0x0302"/></cpu>' * 3000 % tuple(range(3000)) + "</system>",
        {"TOO_MANY_VALUES"},
    ),
    "empty objects": ('{"kind": "List", "items": [' + "{}," * 800_000 + "{}]}", {"TOO_MANY_VALUES"}),
    "spaces": ('Switch 1 "S-1"\n' + (" " * 60_000 + "[\n") * 250, {"NO_CABLES"}),
    "arrows": ("1 1[ ] ==(" + (" " * 60_000 + "==(\n") * 250, {"NO_RECORDS", "KIND_NOT_FOUND"}),
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
