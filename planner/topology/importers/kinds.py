"""Formats by name: which reader takes which, and what a text looks like when nobody says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from planner.catalog.nearest import nearest
from planner.diagnostics import Diagnostic, PlannerError
from planner.topology.importers.facts import Reading
from planner.topology.importers.lines import refusal

AUTO: Final = "auto"

# Kind -> module, reader, what it reads. The order is the one in which a text is tried: from the most telling marks to the least.
KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "nccl": ("nccl_xml", "read_nccl_xml", "NCCL or RCCL topology XML"),
    "kueue": ("kueue", "read_kueue", "Kueue Topology objects, with a list of nodes"),
    "kubernetes": ("kubernetes", "read_kubernetes", "kubectl get nodes -o json"),
    "slurm": ("slurm", "read_slurm", "Slurm topology.conf or topology.yaml"),
    "topograph": ("topograph", "read_topograph", "topograph models and output"),
    "iblinkinfo": ("iblinkinfo", "read_iblinkinfo", "iblinkinfo"),
    "ibnetdiscover": ("ibnetdiscover", "read_ibnetdiscover", "ibnetdiscover or an ibsim netlist"),
    "rocm-smi": ("rocm_smi", "read_rocm_smi", "rocm-smi --showtopo"),
    "nvidia-smi": ("nvidia_smi", "read_nvidia_smi", "nvidia-smi topo -m"),
}
_ALIASES: Final[Mapping[str, str]] = {
    "k8s": "kubernetes",
    "rccl": "nccl",
    "nccl-xml": "nccl",
    "ibsim": "ibnetdiscover",
    "topo": "nvidia-smi",
    "nvidia-smi-topo": "nvidia-smi",
    "rocm-smi-showtopo": "rocm-smi",
}
_HEAD: Final = 65_536


def kind_named(name: str) -> str:
    """Kind by its name or a shorter one; `auto` stays what it is.

    Raises
    ------
    PlannerError
        UNKNOWN_KIND with the nearest kinds.
    """
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    wanted = _ALIASES.get(wanted, wanted)
    if wanted in KINDS or wanted == AUTO:
        return wanted
    close = nearest(wanted, [*KINDS, *_ALIASES], limit=3)
    hint = f"nearest: {', '.join(close)}" if close else f"write auto, or one of {', '.join(KINDS)}"
    raise PlannerError([Diagnostic("UNKNOWN_KIND", f"no format is called {name[:60]!r}", hint)])


def detect(text: str) -> str | None:
    """Kind that a text looks like by its beginning; None where it looks like none."""
    head = text[:_HEAD]
    for kind, (module, _, _) in KINDS.items():
        looks_like: Callable[[str], bool] = import_module(f"planner.topology.importers.{module}").looks_like
        if looks_like(head):
            return kind
    return None


def read_file(kind: str, text: str, file: str) -> Reading:
    """Read one file as a kind, or as what it looks like.

    Raises
    ------
    PlannerError
        KIND_NOT_FOUND, WRONG_KIND where it plainly is another kind, and the reader's own.
    """
    found = detect(text)
    if kind == AUTO:
        if found is None:
            raise refusal("KIND_NOT_FOUND", "looks like none of the formats that are read", f"name its kind: {', '.join(KINDS)}", file)
        kind = found
    module, function, _ = KINDS[kind]
    reader: Callable[[str, str], Reading] = getattr(import_module(f"planner.topology.importers.{module}"), function)
    try:
        return reader(text, file)
    except PlannerError as error:
        # topograph writes Slurm's form, and an NCCL graph file is refused by its own reader: only a plain mix-up is told as such.
        if found is None or found == kind:
            raise
        message = f"looks like {KINDS[found][2]}, not like {KINDS[kind][2]}"
        mixed = refusal("WRONG_KIND", message, f"write `planner topology import {found} {file}`", file)
        raise PlannerError([*mixed.diagnostics, *error.diagnostics]) from None
