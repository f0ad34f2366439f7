"""What keeps a file's data from being a document, in words of the file: one diagnostic for every fault, at its place.

The documents are pydantic classes; this turns what their validation reports into diagnostics with code, place, message and what to write
instead. Nothing of pydantic's own wording is shown.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from planner.diagnostics import Diagnostic
from planner.problem.document_types import choices_of, field_at, homes_of_keys, keys_of, quantity_of, type_at
from planner.problem.dotted_paths import Path, find, step
from planner.problem.source import Source
from planner.quantities import QuantityError
from planner.quantities.reading import shown_value
from planner.quantities.units import SI_UNITS

Document = TypeVar("Document", bound=BaseModel)

# More than anybody reads, and each of them is looked up in the file.
MOST_DETAILS: Final = 200

FILE_CONTEXT: Final = {"bare_numbers": False}

# What a required key may look like, where a bare name does not say it.
EXAMPLES: Final[dict[str, str]] = {
    "topology": "topology: ../topologies/two_node_h100.yaml",
    "deployments": "deployments: [{name: chat, model: llama-3.1-70b, workload: {prompt_tokens: 2048, output_tokens: 512, concurrency: 32}}]",
    "model": "model: llama-3.1-70b",
    "workload": "workload: {prompt_tokens: 2048, output_tokens: 512, concurrency: 32}",
    "prompt_tokens": "prompt_tokens: 2048",
    "output_tokens": "output_tokens: 512",
    "gpu": "gpu: h100-sxm-80gb",
    "count": "count: 8",
    "speed": "speed: 400Gb/s",
}


def read_document(kind: type[Document], source: Source, root: Path = ()) -> tuple[Document | None, list[Diagnostic]]:
    """Make a document of the data at `root` of a file.

    Returns
    -------
    tuple
        The document, or None when the data is none; and every fault found.
    """
    data = find(source.data, root)
    try:
        return kind.model_validate(data, context=FILE_CONTEXT), []
    except ValidationError as error:
        details = error.errors(include_url=False)[:MOST_DETAILS]
    except RecursionError:
        place = source.place(root)
        return None, [Diagnostic("NESTED_TOO_DEEP", "the values are nested too deeply", "write a flat mapping", place=place)]
    faults: dict[tuple[Path, str], Diagnostic] = {}
    for detail in details:
        if detail["type"] == "planner_fault":
            continue
        path = _path_in_data(detail, data)
        if detail["type"] == "too_short" and len(step_or_empty(data, path)) > 0:
            continue  # elements are there; each has reported what is wrong with it
        fault = _Fault(kind, detail, path, data)
        code, message, hint = fault.words()
        place = source.place((*root, *path), key=detail["type"] == "extra_forbidden")
        faults.setdefault((path, code), Diagnostic(code, message, hint, place=place))
    return None, list(faults.values())


def step_or_empty(data: Any, path: Path) -> list[Any]:
    """List at `path`, empty where there is none."""
    found = find(data, path)
    return found if isinstance(found, list) else []


def _path_in_data(detail: ErrorDetails, data: Any) -> Path:
    """Path of a validation error in the data: tags that name the form of a union are no part of it."""
    path: Path = ()
    parts = detail["loc"]
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        there = step(data, part) is not None or (isinstance(data, dict) and part in data)
        if there or (last and detail["type"] in {"missing", "extra_forbidden"}):
            path = (*path, part)
            data = step(data, part)
    return path


class _Fault:
    """One validation error and what is known about its place."""

    def __init__(self, root: type[BaseModel], detail: ErrorDetails, path: Path, data: Any) -> None:
        self.root, self.detail, self.path = root, detail, path
        self.value = detail["input"] if detail["type"] != "missing" else None
        self.shown = shown_value(self.value)
        self.kind = str(detail["type"])
        self.context: dict[str, Any] = detail.get("ctx") or {}
        self.key = next((part for part in reversed(path) if isinstance(part, str)), "")
        self.field = field_at(root, path)
        self.data = data

    def words(self) -> tuple[str, str, str]:
        """Code, message and hint."""
        raised = self.context.get("error")
        if isinstance(raised, QuantityError):
            if self.value is None:
                return self.empty()
            return raised.code, raised.message, raised.hint
        if self.value is None and self.kind not in {"missing", "extra_forbidden"}:
            return self.empty()
        words = _WORDS.get(self.kind)
        if words is not None:
            return words(self)
        for end, bound in (("_type", "WRONG_TYPE"), ("_parsing", "WRONG_TYPE")):
            if self.kind.endswith(end):
                return bound, f"{self.shown} is not what belongs here", self.expected()
        if raised is not None:
            return "WRONG_VALUE", f"{self.shown} cannot be used: {raised}", self.expected()
        return "WRONG_VALUE", f"{self.shown} cannot be used here", self.expected()

    def expected(self) -> str:
        """Hint from what the document says about the key."""
        description = self.field.description if self.field is not None else None
        return f"expected: {description}" if description else "see `planner schema` for what may stand here"

    def empty(self) -> tuple[str, str, str]:
        """A key without a value."""
        return (
            "MISSING_VALUE",
            f"`{self.key or 'the file'}` has no value",
            f"write {EXAMPLES[self.key]}" if self.key in EXAMPLES else self.expected(),
        )

    def missing(self) -> tuple[str, str, str]:
        """A required key is not there."""
        key = str(self.path[-1])
        description = self.field.description if self.field is not None else None
        added = EXAMPLES.get(key, f"`{key}: ...`" + (f" ({description[0].lower()}{description[1:]})" if description else ""))
        return "MISSING_KEY", f"`{key}` is missing", f"add {added}"

    def unknown(self) -> tuple[str, str, str]:
        """A key that the document does not have: the nearest one, or where it belongs."""
        key = str(self.path[-1])
        allowed = keys_of(type_at(self.root, self.path[:-1]))
        close = difflib.get_close_matches(key, allowed, n=2)
        home = homes_of_keys(self.root).get(key)
        if home is not None and not (close and close[0].startswith(key)):
            hint = f"`{key}` belongs under `{home}`" if home else f"`{key}` belongs at the top of the file"
        elif close:
            hint = f"write {' or '.join(f'`{name}`' for name in close)}"
        else:
            hint = f"known here: {', '.join(allowed)}" if allowed else "remove it"
        return "UNKNOWN_KEY", f"`{key[:60]}` is not a key of this part", hint

    def whole_number(self) -> tuple[str, str, str]:
        """Not an integer."""
        if isinstance(self.value, float) and not math.isfinite(self.value):
            return "NOT_FINITE", f"{self.shown} is not a finite number", "write a whole number such as 8"
        if isinstance(self.value, float):
            hint = f"write {math.ceil(self.value)}" if abs(self.value) < 1e15 else "write a whole number such as 8"
            written = "is written with a point or an exponent" if self.value == math.ceil(self.value) else "is not a whole number"
            return "WRONG_TYPE", f"{self.shown} {written}", hint
        if isinstance(self.value, str) and self.value.strip().isdecimal():
            return "WRONG_TYPE", f"{self.shown} is text, not a number", f"write {self.value.strip()[:20]} without quotes"
        return "WRONG_TYPE", f"{self.shown} is not a whole number", "write a whole number such as 8"

    def number(self) -> tuple[str, str, str]:
        """Not a number, or not a finite one."""
        if self.kind == "finite_number":
            return "NOT_FINITE", f"{self.shown} is not a finite number", "write a number such as 2"
        return "WRONG_TYPE", f"{self.shown} is not a number", "write a number such as 2"

    def text(self) -> tuple[str, str, str]:
        """Not text."""
        if isinstance(self.value, bool | int | float):
            return (
                "WRONG_TYPE",
                f"{self.shown} is read as a {'truth value' if isinstance(self.value, bool) else 'number'}",
                'put it in quotes, as in "0.12"',
            )
        return "WRONG_TYPE", "text is needed here", self.expected()

    def flag(self) -> tuple[str, str, str]:
        """Not true or false."""
        return "WRONG_TYPE", f"{self.shown} is neither true nor false", "write true or false"

    def mapping(self) -> tuple[str, str, str]:
        """Not a mapping."""
        allowed = keys_of(type_at(self.root, self.path))
        known = f"its keys are: {', '.join(allowed)}" if allowed else "write `key: value` lines"
        return "WRONG_TYPE", f"{self.described()} stands where keys are needed", known

    def sequence(self) -> tuple[str, str, str]:
        """Not a list."""
        return (
            "WRONG_TYPE",
            f"{self.described()} stands where a list is needed",
            "write a list: [a, b], or one line with a dash for each element",
        )

    def described(self) -> str:
        """The value, or its form where it is long."""
        if isinstance(self.value, dict):
            return "a mapping"
        return "a list" if isinstance(self.value, list | tuple) else self.shown

    def choice(self) -> tuple[str, str, str]:
        """Not one of the words allowed."""
        allowed = choices_of(type_at(self.root, self.path))
        if not allowed:
            return "WRONG_CHOICE", f"{self.shown} is not known here", self.expected()
        close = difflib.get_close_matches(str(self.value).lower(), allowed, n=1)
        hint = f"write {close[0]}" if close else f"write one of {', '.join(allowed)}"
        return "WRONG_CHOICE", f"{self.shown} is not one of {', '.join(allowed)}", hint

    def bound(self) -> tuple[str, str, str]:
        """Outside the range that makes sense."""
        says = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
        name, limit = next((name, self.context[name]) for name in says if name in self.context)
        quantity = quantity_of(type_at(self.root, self.path))
        unit = f" {SI_UNITS[quantity.kind]}" if quantity is not None and limit else ""
        return "OUT_OF_RANGE", f"{self.shown} is out of range", f"write {says[name]} {limit:,.12g}{unit}"

    def length(self) -> tuple[str, str, str]:
        """Too short or too long."""
        if "min_length" in self.context:
            return (
                "EMPTY_LIST" if self.kind == "too_short" else "MISSING_VALUE",
                f"`{self.key}` is empty",
                (f"write {EXAMPLES[self.key]}" if self.key in EXAMPLES else self.expected()),
            )
        return "OUT_OF_RANGE", f"`{self.key}` is longer than {self.context.get('max_length')}", "make it shorter"

    def pattern(self) -> tuple[str, str, str]:
        """Text of the wrong form."""
        return "WRONG_VALUE", f"{self.shown} is not allowed here", self.expected()


_Words = Callable[[_Fault], tuple[str, str, str]]
_WORDS: Final[dict[str, _Words]] = {
    "missing": _Fault.missing,
    "extra_forbidden": _Fault.unknown,
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _Fault.whole_number),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), _Fault.number),
    **dict.fromkeys(("string_type", "string_unicode"), _Fault.text),
    **dict.fromkeys(("bool_type", "bool_parsing"), _Fault.flag),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), _Fault.mapping),
    **dict.fromkeys(("tuple_type", "list_type", "iterable_type"), _Fault.sequence),
    **dict.fromkeys(("literal_error", "enum", "union_tag_invalid"), _Fault.choice),
    **dict.fromkeys(("greater_than", "greater_than_equal", "less_than", "less_than_equal"), _Fault.bound),
    **dict.fromkeys(("too_short", "too_long", "string_too_short", "string_too_long"), _Fault.length),
    "string_pattern_mismatch": _Fault.pattern,
}
