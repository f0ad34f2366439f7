"""A placement written by hand: deployment, degrees, and the GPU of every rank.

    deployment: chat            # may be left out when the problem has one
    tp: 8
    pp: 2
    ranks: ["h100-01:[0-7]", "h100-02:[0-7]"]     # one replica; `replicas: [[...], [...]]` for several

or `deployments:` with a list of such parts. Engine settings may stand beside the degrees: batch, partition, engine, gpu_memory_utilization,
max_model_len, max_num_seqs, max_batched_tokens, weights, kv_cache.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.gpu_words import gpus_of_words
from planner.placement.inquiry import Inquiry, check_degrees, degrees_of, hosts_assumed, no_degrees, no_deployment
from planner.placement.proposal import (
    KV_CACHES,
    MOST_SEQUENCES,
    MOST_TOKENS,
    WEIGHTS,
    EngineSettings,
    Proposal,
    ProposedDeployment,
    ProposedReplica,
)
from planner.placement.seats import Seats, all_hosts, too_few
from planner.problem.dotted_paths import Path
from planner.problem.source import Source
from planner.problem.yaml_source import read_yaml
from planner.quantities import Kind, QuantityError, parse_quantity

KIND: Final = "yaml"
DEGREES: Final = {
    **{name: name for name in ("tp", "pp", "ep", "dp")},
    "tensor_parallel": "tp", "pipeline_parallel": "pp", "expert_parallel": "ep", "data_parallel": "dp",
    "tensor_parallel_size": "tp", "pipeline_parallel_size": "pp", "expert_parallel_size": "ep", "data_parallel_size": "dp",
}  # fmt: skip
COUNTS: Final = {"batch": MOST_SEQUENCES, "max_model_len": MOST_TOKENS, "max_num_seqs": MOST_SEQUENCES, "max_batched_tokens": MOST_TOKENS}
WORDS: Final = ("engine", "version", "model", "weights", "kv_cache", "draft")
PARTS: Final = (
    "deployment",
    "name",
    "degrees",
    "ranks",
    "gpus",
    "replicas",
    "partition",
    "gpu_memory_utilization",
    "eager",
    "deployments",
    "problem",
)
KNOWN: Final = (*DEGREES, *COUNTS, *WORDS, *PARTS)


@dataclass
class _Part:
    """Values of one mapping with their places, gathered over the levels: what an outer part says holds for the inner ones."""

    degrees: dict[str, int] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    def below(self) -> _Part:
        return _Part(dict(self.degrees), dict(self.values), dict(self.places))


class _Reader:
    def __init__(self, request: Inquiry, source: Source) -> None:
        self.request = request
        self.source = source
        self.faults: list[Diagnostic] = list(source.faults)
        self.seats = Seats(request.fabric)

    def fault(self, code: str, path: Path, message: str, hint: str, *, key: bool = False) -> None:
        self.faults.append(Diagnostic(code, message, hint, place=self.source.place(path, key=key)))

    def deployments(self) -> list[ProposedDeployment]:
        data = self.source.data
        if not isinstance(data, dict):
            self.fault("ROOT_NOT_MAPPING", (), "the file is not made of keys", "begin with `deployment:`, `tp:` and `ranks:`")
            return []
        outer = self.settings(data, (), _Part())
        inner = data.get("deployments")
        if inner is None:
            return self.deployment(data, (), outer)
        if not isinstance(inner, list):
            self.fault("WRONG_TYPE", ("deployments",), "deployments is no list", "write `deployments:` with one `- name: ...` each")
            return []
        found: list[ProposedDeployment] = []
        for index, part in enumerate(inner):
            path: Path = ("deployments", index)
            if isinstance(part, dict):
                found += self.deployment(part, path, self.settings(part, path, outer))
            else:
                self.fault("WRONG_TYPE", path, "is no deployment", "write `name`, degrees and `ranks`")
        return found

    def deployment(self, data: Mapping[str, Any], path: Path, part: _Part) -> list[ProposedDeployment]:
        key = "deployment" if "deployment" in data else "name"
        name = data.get(key)
        if name is None:
            name = self.request.only_deployment()
        place = self.source.place((*path, key))
        if not isinstance(name, str):
            self.faults.append(no_deployment(self.request, place))
            return []
        asked = self.request.deployment_index(name)
        if asked is not None:
            given = self.request.named_degrees()
            part.degrees = {**self.request.fixed_degrees(asked), **(given[0] if given is not None else {}), **part.degrees}
        replicas = data.get("replicas")
        ranks_key = "ranks" if "ranks" in data or "gpus" not in data else "gpus"
        if replicas is None or isinstance(replicas, int):
            ranks = data.get(ranks_key)
            if ranks is None:
                listed = self.seated(part, path, replicas if isinstance(replicas, int) else 1)
            else:
                listed = self.replica(ranks, (*path, ranks_key), part)
        elif isinstance(replicas, list):
            listed = [replica for index, one in enumerate(replicas) for replica in self.one(one, (*path, "replicas", index), part)]
        else:
            self.fault("WRONG_TYPE", (*path, "replicas"), "replicas is no list", "write one list of node:gpu a replica")
            listed = []
        return [ProposedDeployment(name, place, tuple(listed), _settings(part))]

    def one(self, data: Any, path: Path, part: _Part) -> list[ProposedReplica]:
        if isinstance(data, dict):
            key = "gpus" if "gpus" in data else "ranks"
            return self.replica(data.get(key), (*path, key), self.settings(data, path, part))
        return self.replica(data, path, part)

    def seated(self, part: _Part, path: Path, count: int) -> list[ProposedReplica]:
        """Replicas whose file names no GPUs: on the hosts said beside it, else on the first free GPUs of the topology."""
        place = self.source.place(path)
        if not part.degrees:
            self.faults.append(no_degrees(place))
            return []
        if not 1 <= count <= MOST_SEQUENCES:
            self.fault("OUT_OF_RANGE", (*path, "replicas"), f"{count} replicas", "write at least 1")
            return []
        degrees = degrees_of(part.degrees)
        hosts = self.request.named_hosts()
        if not hosts:
            self.faults.append(hosts_assumed(place))
            hosts = all_hosts(self.request.fabric, place)
        found = []
        for _ in range(count):
            gpus = self.seats.seat(hosts, degrees.gpus)
            missing = too_few(degrees.gpus, len(gpus), place)
            self.faults += missing
            found.append(ProposedReplica(degrees, gpus, place, part.values.get("batch"), part.values.get("partition")))
            if missing:
                break
        return found

    def replica(self, data: Any, path: Path, part: _Part) -> list[ProposedReplica]:
        place = self.source.place(path)
        if isinstance(data, str):
            data = [data]
        if not isinstance(data, list):
            self.fault("RANKS_MISSING", path, "no GPUs are named for the ranks", 'write `ranks: ["h100-01:[0-7]"]`, in rank order')
            return []
        words = []
        for index, word in enumerate(data):
            if isinstance(word, str):
                words.append((word, self.source.place((*path, index))))
            else:
                self.fault("WRONG_TYPE", (*path, index), f"`{str(word)[:40]}` names no GPU", "write node:index, such as h100-01:3")
        gpus, faults = gpus_of_words(words, self.request.fabric)
        self.faults += faults
        if not part.degrees:
            self.faults.append(no_degrees(place))
            return []
        return [ProposedReplica(degrees_of(part.degrees), gpus, place, part.values.get("batch"), part.values.get("partition"))]

    def settings(self, data: Mapping[str, Any], path: Path, outer: _Part) -> _Part:
        """Degrees and settings of one mapping over those of the part around it."""
        part = outer.below()
        degrees: dict[str, int] = {}
        nested = data.get("degrees")
        if isinstance(nested, dict):
            self.degrees(nested, (*path, "degrees"), degrees)
        elif nested is not None:
            self.fault("WRONG_TYPE", (*path, "degrees"), "degrees is no mapping", "write `degrees: {tp: 8, pp: 2}`")
        self.degrees({key: value for key, value in data.items() if key in DEGREES}, path, degrees)
        part.degrees.update(degrees)
        for key, value in data.items():
            here = (*path, key)
            if key in COUNTS:
                self.count(key, value, here, part)
            elif key in WORDS:
                self.word(key, value, here, part)
            elif key == "gpu_memory_utilization":
                self.share(value, here, part)
            elif key == "partition":
                self.partition(value, here, part)
            elif key == "eager" and isinstance(value, bool):
                part.values["eager"] = value
            elif key not in KNOWN:
                close = difflib.get_close_matches(key, KNOWN, n=1)
                hint = f"did you mean `{close[0]}`?" if close else "see docs/validate.md for the keys of a placement"
                self.fault("UNKNOWN_KEY", here, f"`{key[:60]}` is no key of a placement", hint, key=True)
        return part

    def degrees(self, data: Mapping[str, Any], path: Path, into: dict[str, int]) -> None:
        for key, value in data.items():
            name = DEGREES.get(key)
            if name is None:
                self.fault("UNKNOWN_KEY", (*path, key), f"`{key[:60]}` is no degree", "write tp, pp, ep and dp", key=True)
            elif isinstance(value, bool) or not isinstance(value, int):
                self.fault("WRONG_TYPE", (*path, key), f"`{str(value)[:40]}` is no whole number", f"write `{key}: 8`")
            else:
                into[name] = value
        try:
            check_degrees(into, self.source.place(path))
        except PlannerError as error:
            self.faults += error.diagnostics
            into.clear()

    def count(self, key: str, value: Any, path: Path, part: _Part) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= COUNTS[key]:
            part.values[key] = value
            part.places[key] = self.source.place(path)
        else:
            self.fault(
                "OUT_OF_RANGE", path, f"`{str(value)[:40]}` is no whole number from 1 to {COUNTS[key]:,}", f"write for example `{key}: 64`"
            )

    def word(self, key: str, value: Any, path: Path, part: _Part) -> None:
        if isinstance(value, dict) and key == "engine":
            value = " ".join(str(value[name]) for name in ("name", "version") if name in value)
        allowed = {"weights": WEIGHTS, "kv_cache": KV_CACHES}.get(key)
        if not isinstance(value, str | float | int) or isinstance(value, bool) or (allowed is not None and value not in allowed):
            hint = f"write one of {', '.join(allowed)}" if allowed is not None else f"write `{key}:` and a name"
            self.fault("WRONG_VALUE", path, f"`{str(value)[:40]}` is no {key.replace('_', ' ')} known here", hint)
            return
        part.values[key] = str(value)[:200]
        part.places[key] = self.source.place(path)

    def share(self, value: Any, path: Path, part: _Part) -> None:
        try:
            share = parse_quantity(value, Kind.FRACTION) if isinstance(value, str | int | float) else -1.0
        except QuantityError as error:
            self.fault("WRONG_VALUE", path, str(error), "write 0.9 or 90%")
            return
        if not 0.0 < share <= 1.0:
            self.fault("OUT_OF_RANGE", path, f"`{str(value)[:40]}` is no share between 0 and 1", "write 0.9 or 90%")
            return
        part.values["gpu_memory_utilization"] = share
        part.places["gpu_memory_utilization"] = self.source.place(path)

    def partition(self, value: Any, path: Path, part: _Part) -> None:
        if isinstance(value, list) and value and all(isinstance(layers, int) and not isinstance(layers, bool) for layers in value):
            part.values["partition"] = tuple(max(-1, min(layers, MOST_TOKENS)) for layers in value)
        else:
            self.fault("WRONG_TYPE", path, "partition is no list of whole numbers", "write the layers of every stage: [40, 40]")


def _settings(part: _Part) -> EngineSettings:
    values = part.values
    engine, _, version = str(values.get("engine", "")).partition(" ")
    return EngineSettings(
        engine=engine or None,
        version=values.get("version") or version.strip() or None,
        model=values.get("model"),
        gpu_memory_utilization=values.get("gpu_memory_utilization"),
        max_model_len=values.get("max_model_len"),
        max_num_seqs=values.get("max_num_seqs"),
        max_batched_tokens=values.get("max_batched_tokens"),
        weights=values.get("weights"),
        kv_cache=values.get("kv_cache"),
        eager=bool(values.get("eager")),
        draft=values.get("draft"),
        places=part.places,
    )


def read_short_yaml(request: Inquiry) -> Proposal:
    """Read a placement written by hand.

    Raises
    ------
    PlannerError
        What keeps the text from being read as YAML at all.
    """
    reader = _Reader(request, read_yaml(request.text, request.file))
    deployments = reader.deployments()
    return Proposal(KIND, request.file, tuple(deployments), tuple(reader.faults))
