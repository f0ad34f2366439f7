"""`ibnetdiscover` and ibsim netlists -> an InfiniBand subnet, record by record.

Form: linux-rdma/rdma-core infiniband-diags man page, section topology file; ibsim's dialect (linux-rdma/ibsim) writes Hca for Ca, free names and
no speeds, and may name a cable at one of its ends only.
"""

from __future__ import annotations

import re
from typing import Final

from planner.topology.importers.facts import Reading
from planner.topology.importers.lines import clean_lines, refusal
from planner.topology.importers.subnet import LARGEST, Device, Subnet, reading_of, speed_of

KIND: Final = "ibnetdiscover"

_RECORD: Final = re.compile(r'(Switch|Ca|Hca|Rt)\s+(\d{1,3})\s+"([^"]{1,128})"(?:\s*#\s*"([^"]{0,256})")?')
_PORT: Final = re.compile(r'\[(\d{1,3})\](?:\((\w{1,20})\))?\s*"([^"]{1,128})"\s*\[(\d{1,3})\](?:\((\w{1,20})\))?\s*(.*)')
_GUID: Final = re.compile(r"(?:sysimgguid|caguid|switchguid|rtguid)=(?:0x)?([0-9a-fA-F]{1,16})\b")
_NAME: Final = re.compile(r'"([^"]{0,256})"')
_SWITCH_ID: Final = re.compile(r"S-[0-9a-fA-F]{1,16}")
_ADAPTER_ID: Final = re.compile(r"[HR]-([0-9a-fA-F]{1,16})")


def _guid(text: str) -> str:
    return text.lower().removeprefix("0x").rjust(16, "0")


def read_ibnetdiscover(text: str, file: str) -> Reading:
    """Read the output of `ibnetdiscover`, or an ibsim netlist.

    Raises
    ------
    PlannerError
        NO_RECORDS, NO_CABLES, and those of `clean_lines`.
    """
    subnet = Subnet(KIND, file)
    current: str | None = None
    guids: list[str] = []
    for number, line in enumerate(clean_lines(text, file, LARGEST), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("["):
            port = _PORT.match(stripped)
            if port is not None and current is not None:
                _read_port(subnet, current, port, number)
            continue
        record = _RECORD.match(stripped)
        if record is not None:
            current = record[3]
            own = _ADAPTER_ID.fullmatch(current)
            known = [*guids, *([_guid(own[1])] if own is not None else [])]
            # ibsim names nothing in comments: there the identity is the name.
            description = record[4] if record[4] is not None else "" if re.fullmatch(r"[SHR]-[0-9a-fA-F]{1,16}", current) else current
            subnet.device(current, Device(record[1] == "Switch", description, tuple(dict.fromkeys(known)), number))
            guids = []
            continue
        guid = _GUID.match(stripped)
        if guid is not None:
            guids.append(_guid(guid[1]))
    if not subnet.devices:
        raise refusal("NO_RECORDS", "holds no record of a switch or an adapter", "save the output of `ibnetdiscover`", file)
    _drop_dangling(subnet)
    return reading_of(subnet)


def _read_port(subnet: Subnet, current: str, port: re.Match[str], line: int) -> None:
    """Note a cable, and the device at its other end as far as the cable's remark describes it."""
    other = port[3]
    adapter = _ADAPTER_ID.fullmatch(other)
    if other not in subnet.devices and (adapter is not None or _SWITCH_ID.fullmatch(other)):
        names = _NAME.findall(port[6])
        guids = (_guid(adapter[1]),) if adapter is not None else ()
        subnet.device(other, Device(adapter is None, names[0] if names else "", guids, line))
    subnet.cable((current, int(port[1])), (other, int(port[4])), speed_of(port[6]), line)


def _drop_dangling(subnet: Subnet) -> None:
    """Forget cables to names that no record describes (free names of a netlist that was cut)."""
    for ends in [ends for ends in subnet.cables if any(identity not in subnet.devices for identity, _ in ends)]:
        del subnet.cables[ends]


def looks_like(head: str) -> bool:
    """Tell whether the beginning of a text looks like ibnetdiscover's or an ibsim netlist."""
    return re.search(r'^[ \t]*(?:Switch|Ca|Hca|Rt)[ \t]+\d+[ \t]+"', head, re.MULTILINE) is not None
