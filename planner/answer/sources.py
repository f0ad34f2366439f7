"""What the figures of a plan rest on: which constants, from where, fitted on how much and with which error."""

from __future__ import annotations

from collections.abc import Iterator

from planner.candidates.menu import Menu
from planner.candidates.settings import PoolSetting
from planner.catalog.step_times import step_constants
from planner.plan.document import SourceDocument
from planner.plan.outcome import Outcome
from planner.plan.shape import Shape
from planner.problem.workload import measured_for


def plan_sources(menu: Menu, outcome: Outcome, names: list[str]) -> tuple[SourceDocument, ...]:
    """Sources of the step times, the memory, the links and the price of every deployment, each GPU type once."""
    found: list[SourceDocument] = []
    seen: set[tuple[int, int]] = set()
    for replica in outcome.replicas:
        shape = replica.shape
        if (shape.deployment, shape.pool) in seen:
            continue
        seen.add((shape.deployment, shape.pool))
        context = menu.setting_of(shape)
        name = names[shape.deployment]
        found.extend(_figures_of_its_own(name, context, shape))
        found.append(_step_times(name, context))
        found.extend(_companions(name, context))
        gpu = context.pool.gpu
        memory = gpu.memory
        found.append(SourceDocument(deployment=name, figure=f"memory of {gpu.name}", basis=memory.basis, source=memory.source))
        if shape.degrees.gpus > 1:
            link = next(path for path in context.setting.paths if path.level == shape.locality).link
            alpha = link.hockney_alpha if context.setting.profile == "hockney" else link.calibrated_alpha
            found.append(SourceDocument(deployment=name, figure=f"alpha of {link.name}", basis=alpha.basis, source=alpha.source))
        if context.pool.price_per_gpu is not None:
            source = context.pool.price_source
            basis = "given" if source == "topology" else "datasheet"
            found.append(SourceDocument(deployment=name, figure=f"price of {gpu.name}", basis=basis, source=source))
    return tuple(found)


def _figures_of_its_own(name: str, context: PoolSetting, shape: Shape) -> Iterator[SourceDocument]:
    """Where the throughput comes from when the problem gives it."""
    degrees = shape.degrees
    key = (degrees.tensor_parallel, degrees.pipeline_parallel, degrees.expert_parallel, degrees.data_parallel)
    gpu = context.pool.gpu.name
    entry = measured_for(context.measured, gpu, key)
    if entry is not None:
        source = entry.source or "the problem's own figures"
        yield SourceDocument(deployment=name, figure=f"throughput on {gpu}", basis="measured", source=source)


def _companions(name: str, context: PoolSetting) -> Iterator[SourceDocument]:
    """Where the tokens that a step of speculative decoding gains and the time of adapters come from."""
    expected, profile = context.setting.architecture.speculation, context.setting.profile
    if context.setting.architecture.adapters is not None and profile == "calibrated":
        yield SourceDocument(
            deployment=name, figure="kernels of adapters", basis="assumed", source="Punica, arXiv 2310.18547 (docs/memory.md)"
        )
    if expected is not None:
        figure = f"{expected.yielded:.2f} tokens a step of speculative decoding"
        yield SourceDocument(deployment=name, figure=figure, basis="assumed", source="the acceptance given in the problem")


def _step_times(name: str, context: PoolSetting) -> SourceDocument:
    """Where the times come from: the textbook, or an engine's constants with the error of their fit."""
    if context.setting.profile == "hockney":
        return SourceDocument(
            deployment=name, figure="times", basis="derived", source="textbook alpha-beta model (docs/physics-hockney.md)"
        )
    constants = step_constants(context.setting.engine, context.pool.gpu.architecture)
    # Constants that stand in for a generation nobody measured say nothing about their error there.
    fitted = constants.rows > 0 and constants.basis != "assumed"
    return SourceDocument(
        deployment=name,
        figure=f"times of {constants.engine} on {context.pool.gpu.architecture}",
        basis=constants.basis,
        source=constants.source,
        rows=constants.rows if fitted else 0,
        median_error=constants.median_error if fitted else None,
        p90_error=constants.p90_error if fitted else None,
    )
