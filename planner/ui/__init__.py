"""A LOCAL PAGE for questions: load, targets, prices, GPU counts and failures are moved, the plan answers."""
