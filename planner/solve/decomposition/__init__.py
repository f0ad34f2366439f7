"""Bound, plan and proof deployment by deployment: they meet only in a few rows."""
