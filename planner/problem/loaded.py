"""What loading makes of files: a problem, a topology or a profile, ready to be used, with notes and warnings about them."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.catalog.architecture import ModelArchitecture
from planner.diagnostics import Diagnostic
from planner.problem.current_plan import CurrentPlan
from planner.problem.documents import Problem
from planner.problem.profiles import Profile
from planner.topology.document import TopologyDocument
from planner.topology.fabric import Fabric


@dataclass(frozen=True)
class LoadedProblem:
    """A problem ready to be planned: `architectures` one per deployment, `warnings` notes and warnings about the files.

    `current` is the plan that runs already, where the problem names one. `fabric` holds what the profile measured; `problem.profile` is the physics below it, calibrated or hockney.
    """

    problem: Problem
    fabric: Fabric
    architectures: tuple[ModelArchitecture, ...]
    sha256: str
    warnings: tuple[Diagnostic, ...] = ()
    topology: TopologyDocument | None = None
    profile: Profile = field(default_factory=Profile)
    current: CurrentPlan | None = None

    def __repr__(self) -> str:
        return f"<LoadedProblem {self.summary}>"

    @property
    def summary(self) -> str:
        """One line that says what was read."""
        count = len(self.problem.deployments)
        gpus = sum(pool.nodes * pool.gpus_per_node for pool in self.fabric.pools)
        return f"{self.problem.name}: a valid problem, {count} deployment{'s' if count > 1 else ''} on {gpus} GPUs"


@dataclass(frozen=True)
class LoadedTopology:
    """A topology by itself, ready to be used."""

    document: TopologyDocument
    fabric: Fabric
    sha256: str
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def summary(self) -> str:
        """One line that says what was read."""
        nodes = sum(pool.nodes for pool in self.fabric.pools)
        gpus = sum(pool.nodes * pool.gpus_per_node for pool in self.fabric.pools)
        return f"{self.document.name}: a valid topology, {nodes} node{'s' if nodes > 1 else ''} with {gpus} GPUs"


@dataclass(frozen=True)
class LoadedProfile:
    """A profile file by itself."""

    profile: Profile
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def summary(self) -> str:
        """One line that says what was read."""
        return self.profile.summary
