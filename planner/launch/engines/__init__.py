"""Command lines of the serving engines: one file an engine."""
