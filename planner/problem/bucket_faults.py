"""What the keys of a workload, its buckets and figures of one's own ask of each other.

As in `faults`, values may still be wrong by themselves; such are left to the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from planner.problem.fault import Fault, get, items, whole
from planner.quantities import Kind, QuantityError, parse_quantity

LENGTHS = ("prompt_tokens", "output_tokens")
EXAMPLES = {"prompt_tokens": "prompt_tokens: 2048", "output_tokens": "output_tokens: 512"}
NEAR_WHOLE = Fraction(1, 10**6)
FINISH = "leave `buckets` out, or "


def workload_faults(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Exactly one of concurrency and request_rate is given, and lengths either once or by bucket."""
    closed, open_ = given.get("concurrency") is not None, given.get("request_rate") is not None
    if closed and open_:
        message = "both concurrency and request_rate are given, and each sets the load"
        yield Fault("TWO_LOADS", ("request_rate",), message, "keep one of them")
    elif not closed and not open_:
        yield Fault("NO_LOAD", (), "no load is given", "add `concurrency: 32` (sequences at once) or `request_rate: 4/s`")
    if given.get("buckets") is None:
        for key in LENGTHS:
            if given.get(key, 1) == 0:
                yield Fault("OUT_OF_RANGE", (key,), "0 is out of range", "write at least 1")
            elif key not in given:
                yield Fault("MISSING_KEY", (key,), f"`{key}` is missing", f"add {EXAMPLES[key]}")
        if given.get("slices") is not None:
            yield Fault("RULES_NOT_TOGETHER", ("slices",), "there are no buckets to slice", "add `buckets`, or leave `slices` out")
        return
    for key in LENGTHS:
        if given.get(key):
            message = f"`{key}` is given for all requests, and the buckets give lengths of their own"
            yield Fault("LENGTHS_TWICE", (key,), message, f"leave `{key}` out, or `buckets`")
    yield from _bucket_faults(given.get("buckets"))


def bucket_names(buckets: Any) -> list[str | None]:
    """Names of buckets as they are written, or their lengths; None for one that has neither."""
    found: list[str | None] = []
    for bucket in items(buckets):
        name, lengths = get(bucket, "name"), [whole(get(bucket, key)) for key in LENGTHS]
        default = None if None in lengths else f"{lengths[0]}-{lengths[1]}"
        found.append(name if isinstance(name, str) and name else default)
    return found


def _bucket_faults(buckets: Any) -> Iterator[Fault]:
    """Names differ, and shares add up to one."""
    first: dict[str, int] = {}
    for index, name in enumerate(bucket_names(buckets)):
        if name is not None and name in first:
            yield Fault("DUPLICATE_NAME", ("buckets", index), f"two buckets are named `{name}`", "give one of them another `name`")
        first.setdefault(name or "", index)
    shares = [_share(get(bucket, "share")) for bucket in items(buckets)]
    known = [share for share in shares if share is not None]
    if known and len(known) == len(shares) and abs((total := sum(known, Fraction(0))) - 1) > NEAR_WHOLE:
        missing = abs(1 - total)
        hint = f"{'add' if total < 1 else 'take away'} {float(100 * missing):.6g} %, so that they add up to 100 %"
        yield Fault("SHARES_NOT_WHOLE", ("buckets",), f"the shares of the buckets add up to {float(100 * total):.6g} %", hint)


def _share(value: Any) -> Fraction | None:
    if value is None or isinstance(value, bool):
        return None
    try:
        number = parse_quantity(value, Kind.FRACTION)
    except (QuantityError, ValueError, TypeError):
        return None
    return Fraction(repr(float(number))) if 0 < number <= 1 else None


def rules_with_buckets(deployment: Any, problem: Mapping[str, Any]) -> Iterator[Fault]:
    """Rules and objectives that say nothing exact of a load in buckets, or of measured figures, each with what to write instead."""
    workload, objective = get(deployment, "workload"), problem.get("objective")
    if problem.get("current") is not None and (get(deployment, "throughput") or items(get(workload, "buckets"))):
        message = "what runs already is judged by the model, not by figures of one's own or bucket by bucket"
        key = ("throughput",) if get(deployment, "throughput") else ("workload", "buckets")
        yield Fault("RULES_NOT_TOGETHER", key, message, "leave `current` out, or give the deployment one pair of lengths and no figures")
    if not items(get(workload, "buckets")):
        return
    if get(deployment, "resilience") is not None:
        message = "what is left of every bucket after a loss depends on where its requests are sent then"
        yield Fault("RULES_NOT_TOGETHER", ("resilience",), message, FINISH + "ask for `spares: 1` in place of `resilience`")
    if objective == "latency":
        message = "the objective latency compares one time per token, and every bucket has its own"
        yield Fault("RULES_NOT_TOGETHER", ("workload", "buckets"), message, FINISH + "give targets in `slo` and choose another objective")
    if objective == "throughput" and get(workload, "slices") is not None:
        message = "the objective throughput serves any share of a bucket, whole slices or not"
        yield Fault("RULES_NOT_TOGETHER", ("workload", "slices"), message, "leave `slices` out, or choose another objective")


def throughput_faults(deployment: Any) -> Iterator[Fault]:
    """Figures of one's own are of the load's kind, one for every bucket, each shape once."""
    workload, figures = get(deployment, "workload"), get(deployment, "throughput")
    if not isinstance(figures, list | tuple):
        return
    names = bucket_names(get(workload, "buckets"))
    kind = "sequences" if get(workload, "concurrency") is not None else "rate" if get(workload, "request_rate") is not None else ""
    first: dict[tuple[Any, ...], int] = {}
    for index, entry in enumerate(figures):
        if not isinstance(entry, Mapping) and not hasattr(entry, "gpu"):
            continue
        yield from _entry_faults(("throughput", index), entry, kind, names)
        shape = tuple(get(entry, key) or 1 for key in ("tp", "pp", "ep", "dp"))
        key = (get(entry, "gpu"), *shape)
        if all(isinstance(part, str | int) for part in key):
            if key in first:
                message = f"figures of this shape on {key[0]} are given twice"
                yield Fault("DUPLICATE_VALUE", ("throughput", index, "gpu"), message, "keep one of them")
            first.setdefault(key, index)


def _entry_faults(path: tuple[str | int, ...], entry: Any, kind: str, names: Sequence[str | None]) -> Iterator[Fault]:
    given = [key for key in ("rate", "sequences") if get(entry, key) is not None]
    if not given:
        right = kind or "rate"
        example = "4/s" if right == "rate" else "32"
        if names:
            example = f"{{{', '.join(f'{name}: {example}' for name in names)}}}"
        yield Fault("FIGURE_MISSING", path, "no figure is given", f"add `{right}: {example}`")
        return
    if kind and given != [kind]:
        asked = "concurrency" if kind == "sequences" else "request_rate"
        wrong = next(key for key in given if key != kind)
        message = f"`{wrong}` is given, and the load is a {asked}"
        yield Fault("FIGURE_OF_ANOTHER_KIND", (*path, wrong), message, f"give `{kind}`")
        return
    yield from _figure_faults((*path, given[0]), get(entry, given[0]), names)


def _figure_faults(path: tuple[str | int, ...], figures: Any, names: Sequence[str | None]) -> Iterator[Fault]:
    """One figure for the whole load, or one for every bucket."""
    example = "4/s" if path[-1] == "rate" else "32"
    known = [name for name in names if name is not None]
    by_bucket = isinstance(figures, Mapping) and set(figures) != {""}
    if not names and by_bucket:
        yield Fault("FIGURE_OF_NO_BUCKET", path, "figures are given by bucket, and the workload has none", f"write `{path[-1]}: {example}`")
    if not names or None in names:
        return
    if not by_bucket:
        shown = ", ".join(f"{name}: {example}" for name in known)
        yield Fault("FIGURE_MISSING", path, "one figure is given, and the workload has buckets", f"write `{path[-1]}: {{{shown}}}`")
        return
    for name in figures:
        if name not in known:
            yield Fault("FIGURE_OF_NO_BUCKET", (*path, name), f"no bucket is named `{name}`", f"the buckets are {', '.join(known)}")
    for name in known:
        if name not in figures:
            message = f"the bucket `{name}` has no figure"
            yield Fault("FIGURE_MISSING", path, message, f"add `{name}: {example}`, or `{name}: 0` where it is not served")
    if set(known) == set(figures) and all(value in {0, "0", "0/s"} for value in figures.values() if not isinstance(value, dict | list)):
        yield Fault("FIGURE_MISSING", path, "every figure is 0", "leave this shape out, or give what it serves")
