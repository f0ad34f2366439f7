"""What the keys of one part of a problem ask of each other.

The rules take the part as a mapping, so that they hold for values read from a file, where other keys may still be wrong, and for
documents made in code alike. A value of the wrong type is left to the document's own check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.problem.bucket_faults import rules_with_buckets, throughput_faults, workload_faults
from planner.problem.fault import Fault, Path, get, items, whole

__all__ = ["Fault", "document_faults"]

DEGREES = ("tp", "pp", "ep", "dp")


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
            if degree in degrees[:index] and whole(degree) is not None:
                yield Fault("DUPLICATE_VALUE", (name, index), f"{degree} is allowed twice", "remove one of them")


def replicas_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """The least number of replicas is not above the most."""
    least, most = whole(given.get("min")), whole(given.get("max"))
    if least is not None and most is not None and least > most:
        yield Fault("MIN_ABOVE_MAX", ("min",), f"min {least} is above max {most}", f"write min at most {most}, or max at least {least}")


def spread_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Replicas are spread over something larger than a GPU."""
    if given.get("over") == "gpu":
        message = "two replicas never share a GPU, so there is nothing to spread"
        yield Fault("SPREAD_OVER_GPUS", ("over",), message, "write `node`, `leaf`, or a kind that the topology names")


def speculation_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """N-grams are looked up without a draft model."""
    for name in ("model", "tp"):
        if given.get("method") == "ngram" and given.get(name) is not None:
            message = f"`{name}` describes a draft, and n-grams are looked up without one"
            yield Fault("RULES_NOT_TOGETHER", (name,), message, f"leave `{name}` or `method` out")


def deployment_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """A request fits the longest context the engine is started for, and figures of one's own fit the workload."""
    yield from throughput_faults(given)
    workload, longest = given.get("workload"), whole(get(given.get("memory"), "max_model_len"))
    for part in items(get(workload, "buckets")) or [workload]:
        prompt, output = whole(get(part, "prompt_tokens")), whole(get(part, "output_tokens"))
        if longest is None or prompt is None or output is None or prompt + output <= longest:
            continue
        message = f"a request has {prompt} + {output} = {prompt + output} tokens, more than max_model_len {longest}"
        yield Fault("CONTEXT_TOO_LONG", ("memory", "max_model_len"), message, f"write at least {prompt + output}, or shorten the workload")


def budget_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """At least one limit is given."""
    if given.get("per_hour") is None and not given.get("gpus"):
        yield Fault("EMPTY_PART", (), "no limit is given", "add `per_hour: $100/h` or `gpus: {h100-sxm-80gb: 16}`, or leave `budget` out")


def problem_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Names of deployments are unique, and rules that exclude one another are not asked together."""
    deployments = given.get("deployments")
    if not isinstance(deployments, Sequence) or isinstance(deployments, str):
        return
    for index, deployment in enumerate(deployments):
        if given.get("current") is not None and get(deployment, "spares"):
            message = "what runs already is kept where it is, and spares are placed with what is placed anew"
            yield Fault("RULES_NOT_TOGETHER", ("deployments", index, "spares"), message, "leave `spares` or `current` out")
        found = rules_with_buckets(deployment, given)
        yield from (replace(fault, path=("deployments", index, *fault.path)) for fault in found)
    if given.get("current") is not None and given.get("objective", "cost") != "cost":
        message = "the price of a move is money, and money is not what is made least"
        yield Fault("RULES_NOT_TOGETHER", ("current",), message, "choose the objective cost, or leave current out")
    if given.get("objective") == "throughput":
        for index, deployment in enumerate(deployments):
            if get(deployment, "may_go_unserved"):
                message = "the objective throughput serves the loads in proportion, as much as there is room for"
                hint = "leave may_go_unserved out, or choose another objective"
                yield Fault("RULES_NOT_TOGETHER", ("deployments", index, "may_go_unserved"), message, hint)
    first: dict[str, int] = {}
    for index, deployment in enumerate(deployments):
        name = get(deployment, "name")
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
    "speculative": speculation_faults,
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
