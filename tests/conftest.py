"""Settings of the whole test run."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("project", deadline=None)
settings.load_profile("project")
