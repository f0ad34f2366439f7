"""Deployment planner for LLM inference: which parallelism, on which GPUs, at what cost, and how sure is that."""

__version__ = "0.1.0"
