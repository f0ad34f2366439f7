"""Models by name: a Hugging Face config each, read only when asked for.

`data/models/` holds one file a model with its source, `data/model_names.json` every name and Hugging Face id in plain letters with the file it means.
A model whose known config lacks fields that memory or legality depends on stays in the catalog and says so when it is asked for: give its own config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from planner.catalog.architecture import LayerKind, ModelArchitecture
from planner.catalog.hf_config import read_hf_config
from planner.catalog.nearest import plain, unknown_name
from planner.catalog.read import read_table
from planner.diagnostics import PlannerError


@cache
def _names() -> Mapping[str, str]:
    names: dict[str, str] = read_table("model_names.json")
    return names


def model_names() -> tuple[str, ...]:
    """Catalog names of all models, the refused ones included, in alphabetical order."""
    return tuple(sorted(set(_names().values())))


@cache
def _read(name: str) -> ModelArchitecture:
    entry = read_table(f"models/{name}.json")
    architecture = read_hf_config(entry["config"], name, entry["source"])
    return replace(architecture, notes=(*architecture.notes, *entry.get("assumed", ())))


def model(name: str) -> ModelArchitecture:
    """Look up a model by catalog name or Hugging Face id, without regard to case and punctuation.

    Raises
    ------
    PlannerError
        UNKNOWN_MODEL with the nearest names; MODEL_NOT_UNDERSTOOD with the missing fields for an entry whose config is known in part only.
    """
    found = _names().get(plain(name))
    if found is None:
        raise unknown_name("UNKNOWN_MODEL", "model", name, model_names(), "planner catalog models")
    return _read(found)


def same_model(one: ModelArchitecture, other: ModelArchitecture) -> bool:
    """Tell whether two architectures are one model, whatever format their weights are stored in and whichever of them are kept in more bits."""
    return one.hidden_size == other.hidden_size and _layers(one) == _layers(other)


def _layers(architecture: ModelArchitecture) -> list[LayerKind]:
    kinds = [replace(kind, kept_high=()) for kind in architecture.layer_kinds]
    return [kinds[number] for number in architecture.layer_sequence]


def published_checkpoint(name: str) -> str:
    """Hugging Face id of a model's checkpoint: the id itself where `name` is one, else the repository that the catalog's config was read from.

    Raises
    ------
    PlannerError
        UNKNOWN_MODEL with the nearest names.
    """
    found = _names().get(plain(name))
    if found is None:
        raise unknown_name("UNKNOWN_MODEL", "model", name, model_names(), "planner catalog models")
    source: str = read_table(f"models/{found}.json")["source"]
    return name if name.count("/") == 1 else source.split(" ", 1)[0]


@cache
def checkpoint_in_format(name: str, weights: str) -> tuple[str, str] | None:
    """Another checkpoint of the same model whose linear weights are stored as `weights`, as (catalog name, Hugging Face id); None where none is known.

    Checkpoints of one model have the same name but for what follows it (`llama-3.1-405b`, `llama-3.1-405b-fp8`).
    """
    own = _names().get(plain(name))
    if own is None:
        return None
    asked = _read(own)
    for other in model_names():
        if other == own or not (other.startswith(f"{own}-") or own.startswith(f"{other}-")) or other in refused_models():
            continue
        found = _read(other)
        stored = found.dtype if found.quantization is None else found.quantization.weights
        if stored == weights and same_model(found, asked):
            return other, published_checkpoint(other)
    return None


def models() -> tuple[ModelArchitecture, ...]:
    """Every model that is understood, in alphabetical order of names."""
    refused = refused_models()
    return tuple(_read(name) for name in model_names() if name not in refused)


@cache
def refused_models() -> Mapping[str, PlannerError]:
    """Models known by name whose published config is incomplete, with what is missing."""
    refused: dict[str, PlannerError] = {}
    for name in model_names():
        try:
            _read(name)
        except PlannerError as error:
            refused[name] = error
    return refused
