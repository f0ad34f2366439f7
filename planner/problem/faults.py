"""What the keys of one part of a problem ask of each other.

The rules take the part as a mapping, so that they hold for values read from a file, where other keys may still be wrong, and for
documents made in code alike. A value of the wrong type is left to the document's own check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Path = tuple[str | int, ...]
DEGREES = ("tp", "pp", "ep", "dp")


@dataclass(frozen=True, slots=True)
class Fault:
    """One disagreement: `path` leads from the part to the value at fault (empty = the part itself)."""

    code: str
    path: Path
    message: str
    hint: str


def _get(part: object, key: str) -> Any:
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def workload_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Exactly one of concurrency and request_rate is given."""
    closed, open_ = given.get("concurrency") is not None, given.get("request_rate") is not None
    if closed and open_:
        message = "both concurrency and request_rate are given, and each sets the load"
        yield Fault("TWO_LOADS", ("request_rate",), message, "keep one of them")
    elif not closed and not open_:
        yield Fault("NO_LOAD", (), "no load is given", "add `concurrency: 32` (sequences at once) or `request_rate: 4/s`")


def slo_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """At least one target is given."""
    if given.get("tpot") is None and given.get("ttft") is None:
        yield Fault("EMPTY_PART", (), "no target is given", "add `tpot: 60ms` or `ttft: 3s`, or leave `slo` out")


def parallelism_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Every list of allowed degrees names at least one, none twice; at least one list is given."""
    if all(given.get(name) is None for name in DEGREES):
        yield Fault("EMPTY_PART", (), "no degree is given", "add for example `tp: 8`, or leave `parallelism` out")
    for name in DEGREES:
        degrees = given.get(name)
        if not isinstance(degrees, list | tuple):
            continue
        if not degrees:
            yield Fault("EMPTY_LIST", (name,), "no degree is allowed", f"write `{name}: 8` or `{name}: [4, 8]`, or leave `{name}` out")
        for index, degree in enumerate(degrees):
            if degree in degrees[:index] and _whole(degree) is not None:
                yield Fault("DUPLICATE_VALUE", (name, index), f"{degree} is allowed twice", "remove one of them")


def replicas_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """The least number of replicas is not above the most."""
    least, most = _whole(given.get("min")), _whole(given.get("max"))
    if least is not None and most is not None and least > most:
        yield Fault("MIN_ABOVE_MAX", ("min",), f"min {least} is above max {most}", f"write min at most {most}, or max at least {least}")


def spread_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Replicas are spread over something larger than a GPU."""
    if given.get("over") == "gpu":
        message = "two replicas never share a GPU, so there is nothing to spread"
        yield Fault("SPREAD_OVER_GPUS", ("over",), message, "write `node`, `leaf`, or a kind that the topology names")


def deployment_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """A request fits the longest context the engine is started for."""
    workload, longest = given.get("workload"), _whole(_get(given.get("memory"), "max_model_len"))
    prompt, output = _whole(_get(workload, "prompt_tokens")), _whole(_get(workload, "output_tokens"))
    if longest is not None and prompt is not None and output is not None and prompt + output > longest:
        message = f"a request has {prompt} + {output} = {prompt + output} tokens, more than max_model_len {longest}"
        yield Fault("CONTEXT_TOO_LONG", ("memory", "max_model_len"), message, f"write at least {prompt + output}, or shorten the workload")


def budget_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """At least one limit is given."""
    if given.get("per_hour") is None and not given.get("gpus"):
        yield Fault("EMPTY_PART", (), "no limit is given", "add `per_hour: $100/h` or `gpus: {h100-sxm-80gb: 16}`, or leave `budget` out")


def problem_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Names of deployments are unique."""
    deployments = given.get("deployments")
    if not isinstance(deployments, Sequence) or isinstance(deployments, str):
        return
    if given.get("current") is not None and given.get("objective", "cost") != "cost":
        message = "the price of a move is money, and money is not what is made least"
        yield Fault("RULES_NOT_TOGETHER", ("current",), message, "choose the objective cost, or leave current out")
    if given.get("objective") == "throughput":
        for index, deployment in enumerate(deployments):
            if _get(deployment, "may_go_unserved"):
                message = "the objective throughput serves the loads in proportion, as much as there is room for"
                hint = "leave may_go_unserved out, or choose another objective"
                yield Fault("RULES_NOT_TOGETHER", ("deployments", index, "may_go_unserved"), message, hint)
    first: dict[str, int] = {}
    for index, deployment in enumerate(deployments):
        name = _get(deployment, "name")
        if not isinstance(name, str):
            continue
        if name in first:
            message = f"two deployments are named `{name}`"
            yield Fault("DUPLICATE_NAME", ("deployments", index, "name"), message, f"rename one of them, for example `{name}-{index + 1}`")
        first.setdefault(name, index)


_DEPLOYMENT_PARTS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Fault]]] = {
    "workload": workload_faults,
    "slo": slo_faults,
    "parallelism": parallelism_faults,
    "replicas": replicas_faults,
    "spread": spread_faults,
}


def document_faults(data: Any) -> Iterator[Fault]:
    """All disagreements of a whole problem, given as plain data of which any part may be wrong; paths begin at the problem."""
    if not isinstance(data, Mapping):
        return
    yield from problem_faults(data)
    yield from _within(("budget",), data.get("budget"), budget_faults)
    deployments = data.get("deployments")
    for index, deployment in enumerate(deployments if isinstance(deployments, list | tuple) else ()):
        if not isinstance(deployment, Mapping):
            continue
        yield from _within(("deployments", index), deployment, deployment_faults)
        for key, rule in _DEPLOYMENT_PARTS.items():
            yield from _within(("deployments", index, key), deployment.get(key), rule)
        if isinstance(deployment.get("spread"), str):
            found = spread_faults({"over": deployment["spread"]})
            yield from (replace(fault, path=("deployments", index, "spread")) for fault in found)


def _within(path: Path, part: Any, rule: Callable[[Mapping[str, Any]], Iterator[Fault]]) -> Iterator[Fault]:
    if isinstance(part, Mapping):
        yield from (replace(fault, path=(*path, *fault.path)) for fault in rule(part))
