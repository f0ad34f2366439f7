"""Turns a case of the tables into what the planner takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from planner.catalog.architecture import ModelArchitecture, Quantization, VisionTower
from planner.catalog.engines import Engine, engine
from planner.catalog.hf_config import read_hf_config
from planner.catalog.models import model
from planner.cost.setting import Precision
from planner.plan.shape import Degrees


def table(name: str) -> list[dict[str, Any]]:
    """Read one table of cases."""
    return YAML(typ="safe").load((Path(__file__).parent / name).read_text(encoding="utf-8"))


def architecture_of(case: dict[str, Any]) -> ModelArchitecture:
    """Understand the config of a case, with its quantization and vision tower; or the entry of the catalog that it names."""
    if "model" in case:
        return model(case["model"])
    config = dict(case["config"])
    if "family" in case:
        config["model_type"] = case["family"]
    if "quantization" in case:
        config["quantization_config"] = case["quantization"]
    architecture = read_hf_config(config, case["title"], case["source"])
    if "scheme" in case:
        architecture = replace(architecture, quantization=Quantization(**case["scheme"]))
    if "vision" in case:
        tower = VisionTower(case["vision"].get("num_attention_heads"), case["vision"].get("parameters"))
        architecture = replace(architecture, vision=tower)
    return architecture


def precision_of(case: dict[str, Any], architecture: ModelArchitecture) -> Precision:
    """Number formats of a case: the checkpoint's own weights, KV as the case says or in 16 bits."""
    scheme = architecture.quantization
    weights = scheme.weights if scheme is not None else architecture.dtype
    return Precision(weights, case.get("kv_cache", architecture.dtype), architecture.dtype, scheme)


def engine_of(case: dict[str, Any]) -> Engine:
    """Engine of a case, with the one fact a case may vary."""
    facts = engine(case["engine"])
    return replace(facts, vocabulary_padding=case["vocabulary_padding"]) if "vocabulary_padding" in case else facts


def degrees_of(proposal: dict[str, Any]) -> Degrees:
    """Degrees of a proposal; those not named are 1."""
    return Degrees(proposal.get("tp", 1), proposal.get("pp", 1), proposal.get("ep", 1), proposal.get("dp", 1))
