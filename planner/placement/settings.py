"""What a deployment runs with as it is placed: the problem's wishes, changed by what the placement says, engine defaults for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from planner.candidates.settings import PoolSetting, pool_settings
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import Engine, engine
from planner.catalog.models import model, same_model
from planner.catalog.versions import version_key
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.companions import with_placed
from planner.placement.proposal import EngineSettings, warning
from planner.problem.documents import EngineChoice, Memory, PrecisionChoice
from planner.problem.load import LoadedProblem
from planner.topology.pools import Pool

# Before prefill was cut into chunks by default, vLLM admitted as many tokens to a step as its context is long (engine arguments of v0.5 to v0.7).
UNCHUNKED_BEFORE = version_key("0.8")


@dataclass(frozen=True)
class Running:
    """One deployment as it is placed.

    `loaded` is the problem with this deployment's settings in place of those asked. `context` is the longest sequence the engine is started for
    [tokens], None where nobody says. `sequences` is the engine's limit on one data-parallel rank, None = its default. `strict` tells that the engine
    refuses to start where its pool cannot hold that context or so many states.
    """

    loaded: LoadedProblem
    index: int
    settings: EngineSettings
    engine: Engine
    context: int | None
    sequences: int | None
    strict: bool

    @property
    def architecture(self) -> ModelArchitecture:
        """The model it serves."""
        return self.loaded.architectures[self.index]

    def on(self, pool: Pool) -> PoolSetting:
        """Setting of the deployment on a pool, in the first of the number formats it may run in; the limits as placed."""
        found = next(pool_settings(self.loaded, self.index, pool))
        inner = replace(found.setting, max_model_len=self.context or found.setting.max_model_len, max_num_seqs=self.sequences or 0)
        return replace(found, setting=inner, sequences_per_rank=self.sequences or found.sequences_per_rank)


def running(loaded: LoadedProblem, index: int, settings: EngineSettings) -> tuple[Running, list[Diagnostic]]:
    """Deployment `index` as placed, and where it runs otherwise than the problem asks."""
    faults: list[Diagnostic] = []
    asked = loaded.problem.deployments[index]
    changes: dict[str, Any] = {}
    rules = _engine(settings, EngineChoice(name=asked.engine.name, version=asked.engine.version), changes, faults)
    named = _model(loaded, index, settings, faults)
    architecture, companions, told = with_placed(loaded.architectures[index], named, asked, settings)
    faults += told
    changes |= companions
    changes["precision"] = _precision(asked.precision, settings, architecture, rules, faults)
    memory = asked.memory or Memory()
    given = {
        "gpu_memory_utilization": settings.gpu_memory_utilization,
        "max_model_len": settings.max_model_len,
        "max_batched_tokens": settings.max_batched_tokens,
    }
    if settings.from_command and rules.name == "vllm" and given["max_model_len"] is None and architecture.max_position > 0:
        given["max_model_len"] = architecture.max_position  # the engine's own default
    if (
        settings.from_command
        and given["max_batched_tokens"] is None
        and rules.name == "vllm"
        and version_key(rules.version) < UNCHUNKED_BEFORE
    ):
        given["max_batched_tokens"] = max(given["max_model_len"] or 0, 2048)
    kept = {name: value for name, value in given.items() if value is not None or settings.from_command}
    faults += _differences(memory, kept, settings)
    changes["memory"] = memory.model_copy(update=kept)
    deployments = list(loaded.problem.deployments)
    deployments[index] = asked.model_copy(update=changes)
    architectures = list(loaded.architectures)
    architectures[index] = architecture
    problem = loaded.problem.model_copy(update={"deployments": tuple(deployments)})
    effective = replace(loaded, problem=problem, architectures=tuple(architectures))
    context: int | None = changes["memory"].max_model_len
    faults += _context(context, architecture, asked.workload.prompt_tokens + asked.workload.output_tokens, settings)
    strict = rules.name == "vllm"
    return Running(effective, index, settings, rules, context, settings.max_num_seqs, strict), faults


def _engine(settings: EngineSettings, asked: EngineChoice, changes: dict[str, Any], faults: list[Diagnostic]) -> Engine:
    own = engine(asked.name, asked.version)
    if settings.engine is None:
        return own
    place = settings.places.get("engine")
    try:
        rules = engine(settings.engine, settings.version)
    except PlannerError as error:
        message = f"{error.diagnostics[0].message}; the placement is judged by the rules of {own.title} {own.version}"
        faults.append(warning("ENGINE_ASSUMED", message, "check what this engine does differently", place))
        return own
    if rules.name == own.name and settings.version is None:
        return own
    if rules.name != own.name:
        message = f"the placement runs {rules.title}, the problem asks for {own.title}: {rules.title} {rules.version} is judged"
        faults.append(warning("ENGINE_MISMATCH", message, "write the engine that will run into the problem", place))
    changes["engine"] = EngineChoice(name=rules.name, version=settings.version)
    return rules


def _model(loaded: LoadedProblem, index: int, settings: EngineSettings, faults: list[Diagnostic]) -> ModelArchitecture:
    """The problem's model, in the format of the checkpoint that the placement names."""
    own = loaded.architectures[index]
    asked = loaded.problem.deployments[index].model
    if settings.model is None or settings.model in {asked, own.name}:
        return own
    try:
        named = model(settings.model)
    except PlannerError:
        return own
    if same_model(named, own):
        return named
    if not settings.from_command:
        message = f"the placement serves {settings.model}, the deployment is {asked}"
        faults.append(Diagnostic("MODEL_MISMATCH", message, f"serve {asked}, or change the problem", place=settings.places.get("model")))
    return own


def _precision(
    asked: PrecisionChoice | None, settings: EngineSettings, architecture: ModelArchitecture, rules: Engine, faults: list[Diagnostic]
) -> PrecisionChoice | None:
    """Number formats as placed; a command without a format for the KV cache runs the engine's default, whatever the problem asks."""
    weights = settings.weights if settings.weights is not None else (asked.weights if asked is not None else None)
    own = architecture.quantization
    if settings.from_command and settings.weights is None and own is not None and weights not in {None, "any"}:
        weights = None
    kv_cache = settings.kv_cache
    wanted = asked.kv_cache if asked is not None else None
    if not settings.from_command:
        kv_cache = kv_cache if kv_cache is not None else wanted
    elif wanted not in {None, "any"} and (kv_cache or rules.kv_cache_dtype(architecture)) != wanted:
        message = f"the problem asks for a {wanted} KV cache, the command runs {kv_cache or 'the default of its engine'}"
        faults.append(warning("SETTING_DIFFERS", message, f"add --kv-cache-dtype {wanted}", settings.places.get("kv_cache")))
    return None if weights is None and kv_cache is None else PrecisionChoice(weights=weights, kv_cache=kv_cache)


def _differences(memory: Memory, kept: dict[str, Any], settings: EngineSettings) -> Iterator[Diagnostic]:
    """Settings of the problem that the placement does not run with."""
    for name, value in kept.items():
        wanted = getattr(memory, name)
        if wanted is not None and value != wanted:
            message = f"the problem asks for {name} {wanted}, the placement runs {'the default of its engine' if value is None else value}"
            yield warning("SETTING_DIFFERS", message, f"set {name} to {wanted}", settings.places.get(name))


def _context(context: int | None, architecture: ModelArchitecture, request: int, settings: EngineSettings) -> Iterator[Diagnostic]:
    """A request fits the context the engine is started for, and that the positions of the model."""
    place: Place | None = settings.places.get("max_model_len")
    if context is None:
        return
    if context < request:
        message = f"a request has {request:,} tokens, the engine is started for {context:,}"
        yield Diagnostic("CONTEXT_TOO_LONG", message, f"start it for at least {request}", place=place)
    if 0 < architecture.max_position < context:
        message = f"a context of {context:,} tokens is more than the {architecture.max_position:,} positions of {architecture.name}"
        yield Diagnostic("CONTEXT_TOO_LONG", message, f"start it for at most {architecture.max_position}", place=place)
