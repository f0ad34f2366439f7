"""LAUNCH FILES: a plan in the formats of engines and schedulers, each rank on the GPU that the plan gives it."""
