"""`iblinkinfo` -> an InfiniBand subnet. It names the far end of a link by lid and description; speeds are those of one lane.

Widths and lane speeds as printed by linux-rdma/rdma-core infiniband-diags: 25.78125 Gb/s is EDR, 53.125 HDR, 106.25 NDR, 212.5 XDR, each with its encoding.
"""

from __future__ import annotations

import re
from typing import Final

from planner.topology.importers.facts import Reading
from planner.topology.importers.lines import clean_lines, refusal
from planner.topology.importers.subnet import LANE_GIGABITS, LARGEST, Device, Subnet, reading_of

KIND: Final = "iblinkinfo"

_HEADER: Final = re.compile(r"(CA|Switch|Router):\s+(?:(0x[0-9a-fA-F]{1,16})\s+)?(.{0,256}?):?\s*")
_LINK: Final = re.compile(
    r'(?:(0x[0-9a-fA-F]{1,16})[ \t]{1,20})?(?:"([^"]{0,256})"[ \t]{1,20})?(\d{1,6})[ \t]{1,20}(\d{1,3})\[[^\]]{0,20}\][ \t]{0,20}'
    r'==\([ \t]{0,20}(?:(\d{1,2})X[ \t]{1,20}([\d.]{1,12})[ \t]{1,20}Gbps[ \t]{1,20})?[^)]{0,60}\)==>[ \t]{0,20}(?:(0x[0-9a-fA-F]{1,16})[ \t]{1,20})?(\d{1,6})[ \t]{1,20}(\d{1,3})\[[^\]]{0,20}\][ \t]{0,20}"([^"]{0,256})"'
)
# Signalling rate of one lane [Gb/s] -> the data rate that the standard's name counts.
_LANES: Final = ((2.5, "SDR"), (5.0, "DDR"), (10.0, "QDR"), (10.3125, "FDR10"), (14.0625, "FDR"), (25.78125, "EDR"), (53.125, "HDR"),
                 (106.25, "NDR"), (212.5, "XDR"))  # fmt: skip


def _speed(width: str | None, rate: str | None) -> float | None:
    """Speed of a port in one direction [B/s]."""
    try:
        printed = float(rate or "")
    except ValueError:
        return None
    nearest, name = min(_LANES, key=lambda lane: abs(lane[0] - printed))
    if not width or abs(nearest - printed) > 0.05 * nearest:
        return None
    return int(width) * LANE_GIGABITS[name] * 1e9 / 8


def read_iblinkinfo(text: str, file: str) -> Reading:
    """Read the output of `iblinkinfo`, with its headers or as one line a link (`-l`).

    Raises
    ------
    PlannerError
        NO_RECORDS, NO_CABLES, and those of `clean_lines`.
    """
    subnet = Subnet(KIND, file)
    lines = clean_lines(text, file, LARGEST)
    header: tuple[bool, str] | None = None
    switches: set[str] = set()
    links: list[tuple[bool, str, re.Match[str], int]] = []
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        link = _LINK.match(stripped)
        if link is not None:
            switch, name = header or (False, "")
            name = link[2] or name
            switch = switch if link[2] is None else _is_switch(link[2])
            links.append((switch, name, link, number))
            if switch:
                switches.add(link[3])
            continue
        found = _HEADER.fullmatch(stripped)
        if found is not None:
            header = (found[1] == "Switch", found[3].strip())
    for switch, name, link, number in links:
        guids = (link[1].lower().removeprefix("0x").rjust(16, "0"),) if link[1] and not switch else ()
        subnet.device(f"lid-{link[3]}", Device(switch or link[3] in switches, name, guids, number))
        far = (link[7].lower().removeprefix("0x").rjust(16, "0"),) if link[7] else ()
        subnet.device(f"lid-{link[8]}", Device(link[8] in switches or _is_switch(link[10]), link[10], far, number))
        subnet.cable((f"lid-{link[3]}", int(link[4])), (f"lid-{link[8]}", int(link[9])), _speed(link[5], link[6]), number)
    if not links:
        raise refusal("NO_RECORDS", "holds no link that is up", "save the output of `iblinkinfo`", file)
    return reading_of(subnet)


def _is_switch(description: str) -> bool:
    """Tell a switch by its description where no record of its own says so: switches of this vendor name their chip."""
    return re.search(r"/U\d+$|^MF\d+;", description) is not None


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like iblinkinfo's."""
    return re.search(r"==\([^)]{0,80}\)==>", head) is not None
