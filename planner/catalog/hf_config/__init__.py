"""Understands Hugging Face `config.json` files: one module an idea, `read_hf_config` in front."""

from planner.catalog.hf_config.reading import read_hf_config

__all__ = ["read_hf_config"]
