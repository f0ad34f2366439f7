"""What a problem names and does not hold: models, engines, GPU types; looked up even where other parts of the file are wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any, Final, TypeVar

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import engine
from planner.catalog.gpus import gpu
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.problem.dotted_paths import Path, find
from planner.problem.source import Source
from planner.problem.source_text import read_source, without_detours

Found = TypeVar("Found")

CONFIG_NAME: Final = "config.json"
# ModelOpt writes the scheme of its checkpoints into a file beside the config.
QUANTIZATION_NAME: Final = "hf_quant_config.json"


@dataclass(frozen=True)
class Model:
    """A model that a deployment names: its architecture, and what identifies its contents (a catalog name, or the config itself)."""

    architecture: ModelArchitecture
    contents: Any


@dataclass
class References:
    """Everything the deployments of a problem name. `models` has None where a model could not be found or read."""

    models: list[Model | None]
    faults: list[Diagnostic]
    drafts: list[Model | None] = field(default_factory=list)


def look_up(source: Source, folder: FilePath) -> References:
    """Look up the models, engines and GPU types that the data of `source` names; paths are relative to `folder`."""
    found = References([], [])
    deployments = find(source.data, ("deployments",))
    for index, deployment in enumerate(deployments if isinstance(deployments, list) else ()):
        here: Path = ("deployments", index)
        keys: dict[str, Any] = deployment if isinstance(deployment, dict) else {}
        name: Any = keys.get("model")
        asked: Any = keys.get("engine")
        model = _try(found, source, (*here, "model"), partial(_model, name, folder)) if isinstance(name, str) and name else None
        found.models.append(model)
        draft: Any = find(deployment, ("speculative", "model"))
        named = isinstance(draft, str) and bool(draft)
        found.drafts.append(_try(found, source, (*here, "speculative", "model"), partial(_model, draft, folder)) if named else None)
        path: Path = (*here, "engine")
        version = None
        if isinstance(asked, dict):
            asked, version, path = asked.get("name"), asked.get("version"), (*path, "name")
        if isinstance(asked, str) and asked:
            number = version if isinstance(version, str) else None
            _try(found, source, path, partial(engine, asked, number))
        figures: Any = keys.get("throughput")
        for number_of, entry in enumerate(figures if isinstance(figures, list) else ()):
            measured = entry.get("gpu") if isinstance(entry, dict) else None
            if isinstance(measured, str) and measured:
                _try(found, source, (*here, "throughput", number_of, "gpu"), partial(gpu, measured))
    types = find(source.data, ("budget", "gpus"))
    for name in types if isinstance(types, dict) else ():
        _try(found, source, ("budget", "gpus", name), partial(gpu, name), key=True)
    return found


def unknown_gpus(source: Source, root: Path) -> list[Diagnostic]:
    """GPU types of a topology that are not known; for files that are no topology yet, whose names are looked up otherwise when it is built."""
    found = References([], [])
    for part in ("nodes", "build"):
        groups = find(source.data, (*root, part))
        for index, group in enumerate(groups if isinstance(groups, list) else ()):
            name = group.get("gpu") if isinstance(group, dict) else None
            if isinstance(name, str) and name:
                _try(found, source, (*root, part, index, "gpu"), partial(gpu, name))
    return found.faults


def _try(found: References, source: Source, path: Path, find_it: Callable[[], Found], *, key: bool = False) -> Found | None:
    try:
        return find_it()
    except PlannerError as error:
        place = source.place(path, key=key)
        # A fault inside another file keeps its place there; a fault of the name belongs where the name stands.
        found.faults += [
            fault if fault.place is not None and fault.place.line is not None else replace(fault, place=place)
            for fault in error.diagnostics
        ]
        return None


def names_a_file(name: str, folder: FilePath) -> bool:
    """Tell whether a model is named by the path of its config.json (or of the folder that holds it) rather than by catalog name."""
    if name.endswith(".json") or name.startswith(("./", "../", "/", "~")):
        return True
    try:
        return (folder / name / CONFIG_NAME).is_file()
    except (OSError, ValueError):
        return False


def _model(name: str, folder: FilePath) -> Model:
    if not names_a_file(name, folder):
        from planner.catalog.models import model

        known = model(name)
        return Model(known, known.name)
    return read_model_file(name, folder)


def read_model_file(name: str, folder: FilePath) -> Model:
    """Architecture of the Hugging Face config.json that `name` points to, relative to `folder`.

    Raises
    ------
    PlannerError
        MODEL_FILE_NOT_FOUND, MODEL_FILE_NOT_JSON with the place inside it, or what `read_hf_config` finds missing.
    """
    from planner.catalog.hf_config import read_hf_config

    try:
        named = folder / FilePath(name).expanduser()
        path = FilePath(without_detours(named / CONFIG_NAME if named.is_dir() else named))
    except (OSError, ValueError, RuntimeError):
        message = f"the path {name[:100]!r} cannot be used"
        raise PlannerError([Diagnostic("FILE_NOT_READABLE", message, "name a config.json, or a model of the catalog")]) from None
    config = _read_json(path)
    quantization = path.with_name(QUANTIZATION_NAME)
    if quantization.is_file():
        config = {**config, "hf_quant_config": _read_json(quantization)}
    label = path.parent.name if path.name == CONFIG_NAME and path.parent.name else path.stem
    return Model(read_hf_config(config, label, str(path)), config)


def _read_json(path: FilePath) -> dict[str, Any]:
    """JSON object in a file of a model."""
    try:
        text = read_source(str(path))
    except PlannerError as error:
        raise PlannerError([_about_file(fault, path) for fault in error.diagnostics]) from None
    hint = "name the config.json of a Hugging Face model"
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(str(path), error.lineno, error.colno)
        raise PlannerError([Diagnostic("MODEL_FILE_NOT_JSON", f"this is not JSON: {error.msg.lower()}", hint, place=place)]) from None
    except (RecursionError, ValueError):
        raise PlannerError([Diagnostic("MODEL_FILE_NOT_JSON", f"{path} is nested too deeply or holds too long a number", hint)]) from None
    if not isinstance(config, dict):
        raise PlannerError([Diagnostic("MODEL_FILE_NOT_JSON", f"{path} holds no JSON object", hint)])
    return config


def _about_file(fault: Diagnostic, path: FilePath) -> Diagnostic:
    """The same fault told from where the file is named; a place inside the file is kept."""
    if fault.place is not None and fault.place.line is not None:
        return fault
    code = "MODEL_FILE_NOT_FOUND" if fault.code == "FILE_NOT_FOUND" else fault.code
    return replace(fault, code=code, message=f"{path}: {fault.message}", place=None)
