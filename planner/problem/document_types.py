"""What a document type allows at a path: its keys, what they mean, in which unit they are measured."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from planner.problem.dotted_paths import Path
from planner.quantities.fields import QuantityType

_UNIONS = (Union, types.UnionType)


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The plain types an annotation may stand for, without Annotated and Optional."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in _UNIONS:
        for member in get_args(annotation):
            yield from _alternatives(member)
    elif annotation is not type(None):
        yield annotation


def documents_in(annotation: Any) -> tuple[type[BaseModel], ...]:
    """Document classes that a value of this type may be."""
    return tuple(kind for kind in _alternatives(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel))


def _below(annotation: Any, part: str | int) -> Any:
    """Type of what stands under one key or position, None where nothing may."""
    found: list[Any] = []
    for kind in _alternatives(annotation):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if part in kind.model_fields:
                found.append(whole_annotation(kind.model_fields[str(part)]))
        elif get_origin(kind) in {tuple, list} and isinstance(part, int):
            found.append(get_args(kind)[0])
        elif get_origin(kind) is dict and isinstance(part, str):
            found.append(get_args(kind)[1])
    if not found:
        return None
    return functools.reduce(operator.or_, found)


def whole_annotation(field: FieldInfo) -> Any:
    """Annotation of a field with the metadata that pydantic takes out of it."""
    annotation: Any = field.annotation
    for item in field.metadata:
        annotation = Annotated[annotation, item]
    return annotation


def type_at(root: Any, path: Path) -> Any:
    """Type that belongs at `path` below the type `root`, None where nothing may stand."""
    found: Any = root
    for part in path:
        found = _below(found, part)
    return found


def field_at(root: type[BaseModel], path: Path) -> FieldInfo | None:
    """Field that the last key of `path` names, None where it is no field."""
    if not path or not isinstance(path[-1], str):
        return None
    owners = documents_in(type_at(root, path[:-1]))
    return next((owner.model_fields[path[-1]] for owner in owners if path[-1] in owner.model_fields), None)


def keys_of(annotation: Any) -> tuple[str, ...]:
    """Keys a mapping of this type may have, in the order of the document."""
    return tuple(dict.fromkeys(key for kind in documents_in(annotation) for key in kind.model_fields))


def quantity_of(annotation: Any) -> QuantityType | None:
    """Quantity that a value of this type is, None for other values."""
    if get_origin(annotation) is Annotated:
        kind, *metadata = get_args(annotation)
        return next((item for item in metadata if isinstance(item, QuantityType)), None) or quantity_of(kind)
    if get_origin(annotation) in _UNIONS:
        return next((found for member in get_args(annotation) if (found := quantity_of(member)) is not None), None)
    return None


def choices_of(annotation: Any) -> tuple[str, ...]:
    """Words that a value of this type may be."""
    return tuple(str(word) for kind in _alternatives(annotation) if get_origin(kind) is Literal for word in get_args(kind))


def open_mapping(annotation: Any) -> bool:
    """Tell whether any key may stand in a mapping of this type."""
    return any(get_origin(kind) is dict for kind in _alternatives(annotation))


def holds_text_only(annotation: Any) -> bool:
    """Tell whether a value of this type is text whatever it looks like: `0.12` is a version, not a number."""
    kinds = list(_alternatives(annotation))
    return bool(kinds) and all(kind is str for kind in kinds)


@functools.cache
def homes_of_keys(root: type[BaseModel]) -> dict[str, str]:
    """Where each key of a document belongs, as a path of keys: `tp` under `deployments.parallelism`."""
    homes: dict[str, str] = {}
    todo: list[tuple[type[BaseModel], str]] = [(root, "")]
    seen: set[type[BaseModel]] = set()
    while todo:
        kind, path = todo.pop(0)
        if kind in seen:
            continue
        seen.add(kind)
        for key, field in kind.model_fields.items():
            homes.setdefault(key, path)
            inner = _alternatives(whole_annotation(field))
            for form in inner:
                parts = get_args(form) if get_origin(form) in {tuple, list, dict} else (form,)
                todo += [(document, f"{path}.{key}".strip(".")) for part in parts for document in documents_in(part)]
    return homes
