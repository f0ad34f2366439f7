"""Which degrees a model may be cut by: one rule a file, all violations at once, each with its arithmetic, a way out and its source."""

from __future__ import annotations

from planner.candidates.legality.rulebook import (
    Rulebook,
    legal_expert_parallel,
    legal_tensor_parallel,
    rulebook,
    tensor_parallel_violations,
    violations,
)

__all__ = ["Rulebook", "legal_expert_parallel", "legal_tensor_parallel", "rulebook", "tensor_parallel_violations", "violations"]
