"""What is worth knowing about the kernels of the shapes that were chosen, where another version or setting of the engine would be faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.candidates.menu import Menu
from planner.catalog.expert_tiles import expert_tile
from planner.cost.compute import kernel_dtype
from planner.cost.setting import Setting
from planner.cost.tensor import EXPERT_SPLITS
from planner.cost.tensors import layer_tensors
from planner.diagnostics import Diagnostic, Place, Severity
from planner.plan.shape import Shape


def kernel_notes(menu: Menu, names: tuple[str, ...], shapes: Iterable[Shape]) -> Iterator[Diagnostic]:
    """Warn of each deployment whose experts compute tiles without tokens, placed at it."""
    warned: set[int] = set()
    for shape in dict.fromkeys(shapes):
        known = menu.settings.get((shape.deployment, shape.pool, shape.weights_dtype, shape.kv_dtype))
        if known is None or shape.deployment in warned or known.setting.profile == "hockney":
            continue
        rows = _rows(known.setting, shape.degrees.tensor_parallel)
        if rows:
            warned.add(shape.deployment)
            engine = known.setting.engine_facts
            message = f"{engine.title} {engine.version} multiplies {rows} rows for every expert of a rank in every step, whether it has tokens or not"
            hint = "name the version you run, or set VLLM_MOE_USE_DEEP_GEMM=0 and plan for 0.16: its times are those without"
            place = Place(path=f"deployments.{names[shape.deployment]}")
            yield Diagnostic("EXPERT_TILES", f"{names[shape.deployment]} as {shape.degrees}: {message}", hint, Severity.WARNING, place)


def _rows(setting: Setting, tensor_parallel: int) -> int:
    """Rows that every expert costs at this degree, 0 where only tokens do."""
    architecture = setting.architecture
    for kind, _ in architecture.kind_counts():
        for tensor in layer_tensors(kind, architecture.hidden_size):
            if tensor.split in EXPERT_SPLITS:
                tile = expert_tile(setting.engine, setting.gpu, kernel_dtype(tensor, setting.precision, architecture.dtype))
                return 0 if tile is None or tensor_parallel in tile.spared else tile.rows
    return 0
