"""JSON Schema of problem, topology and profile files, for editors (the first line of a file names it) and for other programs' checks.

The schema is that of the documents, so it knows every key, choice and bound; what keys ask of each other, and names that must exist, are
checked by `load` only.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import BaseModel

from planner.problem.documents import Problem
from planner.problem.profile_document import ProfileDocument
from planner.topology.document import TopologyDocument

Kind = Literal["problem", "topology", "profile"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# Bounds that pydantic puts around a type of our own keep its names for them.
_BOUNDS: Final = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
_DOCUMENTS: Final[dict[str, type[BaseModel]]] = {"problem": Problem, "topology": TopologyDocument, "profile": ProfileDocument}


def json_schema(kind: Kind) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one kind of file, keys in a stable order."""
    generated = _DOCUMENTS[kind].model_json_schema(mode="validation")
    title = {"problem": "Deployment problem", "topology": "Cluster topology", "profile": "Measured profile"}[kind]
    return {"$schema": DIALECT, "title": title, **{key: _tidy(value) for key, value in generated.items() if key != "title"}}


def schema_text(kind: Kind) -> str:
    """JSON Schema as the committed files hold it."""
    return json.dumps(json_schema(kind), indent=2, ensure_ascii=False) + "\n"


def _tidy(schema: Any) -> Any:
    """Drop the titles made up from key names, which only repeat them, and the discriminators of other dialects."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("properties"), dict):
        properties = {name: _tidy(value) for name, value in schema["properties"].items()}
        rest = {key: _tidy(value) for key, value in schema.items() if key not in {"properties", "title", "discriminator"}}
        return {**rest, "properties": properties}
    kept = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str)) and key != "discriminator"}
    return {_BOUNDS.get(key, key) if isinstance(value, int | float) else key: _tidy(value) for key, value in kept.items()}
