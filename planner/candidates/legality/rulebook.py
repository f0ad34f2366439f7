"""All rules together, with the answers kept: a menu asks about thousands of degrees that differ in one number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Final

from planner.candidates.legality import (
    attention_dp,
    compressed,
    cross_attention,
    dtype_support,
    experts,
    fp8_block,
    heads,
    kernel_tile,
    kv_heads,
    layers,
    microscaling,
    quantization_group,
    recurrent_groups,
    speculation,
    vision,
    vocabulary,
)
from planner.candidates.legality.question import Question, Rule
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engines import Engine
from planner.catalog.gpus import Gpu
from planner.cost.memory_companions import draft_precision
from planner.cost.setting import Precision
from planner.diagnostics import Diagnostic, errors
from planner.plan.shape import Degrees

Key = Callable[[Degrees], tuple[int, ...]]


def _tensor(degrees: Degrees) -> tuple[int, ...]:
    return (degrees.tensor_parallel,)


def _stage(degrees: Degrees) -> tuple[int, ...]:
    return (degrees.tensor_parallel, degrees.expert_parallel, degrees.data_parallel)


def _pipeline(degrees: Degrees) -> tuple[int, ...]:
    return (degrees.pipeline_parallel,)


def _nothing(degrees: Degrees) -> tuple[int, ...]:
    del degrees
    return ()


# Each rule with the degrees it looks at: its answer is kept for every choice of those.
RULES: Final[Mapping[str, tuple[Rule, Key]]] = {
    "dtype": (dtype_support.check, _nothing),
    "heads": (heads.check, _tensor),
    "kv_heads": (kv_heads.check, _tensor),
    "compressed_attention": (compressed.support, _pipeline),
    "output_groups": (compressed.output_groups, _tensor),
    "recurrent_groups": (recurrent_groups.check, _tensor),
    "vocabulary": (vocabulary.check, _tensor),
    "fp8_block": (fp8_block.check, _stage),
    "quantization_group": (quantization_group.check, _stage),
    "microscaling": (microscaling.check, _stage),
    "kernel_tile": (kernel_tile.check, _stage),
    "experts": (experts.check, _stage),
    "attention_dp": (attention_dp.check, _stage),
    "layers": (layers.check, _pipeline),
    "speculation_stages": (speculation.stages, _pipeline),
    "speculation": (speculation.check, _stage),
    "vision_heads": (vision.check, _tensor),
    "cross_attention": (cross_attention.check, _nothing),
}

# Rules that follow each other and look at the stage, or at the pipeline, are answered together.
_RUNS: Final = tuple(
    (piped, tuple((name, *rule) for name, rule in run)) for piped, run in groupby(RULES.items(), key=lambda item: item[1][1] is _pipeline)
)


class Rulebook:
    """The rules as they hold for one model, precision, engine version and GPU."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._answers: dict[tuple[str, tuple[int, ...]], tuple[Diagnostic, ...]] = {}
        self._runs: dict[tuple[int, ...], tuple[Diagnostic, ...]] = {}

    def violations(self, degrees: Degrees) -> tuple[Diagnostic, ...]:
        """Everything that is wrong with `degrees`, errors first, then warnings; empty = legal."""
        found: list[Diagnostic] = []
        for number, (piped, rules) in enumerate(_RUNS):
            run = (number, *(_pipeline(degrees) if piped else _stage(degrees)))
            if run not in self._runs:
                self._runs[run] = tuple(item for rule in rules for item in self._answer(*rule, degrees))
            found.extend(self._runs[run])
        found.extend(self._of_the_draft(degrees))
        if not found:
            return ()
        broken = errors(found)
        return (*broken, *(item for item in found if item not in broken))

    def _answer(self, name: str, check: Rule, key: Key, degrees: Degrees) -> tuple[Diagnostic, ...]:
        place = (name, key(degrees))
        if place not in self._answers:
            self._answers[place] = tuple(check(self.question, degrees))
        return self._answers[place]

    def tensor_parallel_violations(self, tensor_parallel: int) -> tuple[Diagnostic, ...]:
        """What is wrong with a tensor-parallel degree whatever the other degrees, as the function of this name tells."""
        plain = self.violations(Degrees(tensor_parallel))
        if errors(plain) and self.question.expert_parts() and tensor_parallel > 1:
            spread = self.violations(Degrees(tensor_parallel, expert_parallel=tensor_parallel))
            if not errors(spread):
                return spread
        return plain

    def _of_the_draft(self, degrees: Degrees) -> tuple[Diagnostic, ...]:
        """What is wrong with cutting a draft model like the model it serves; prediction layers of the checkpoint follow the model's own rules."""
        question = self.question
        draft = question.architecture.draft
        if draft is None or draft.alone or draft.shares_ends:
            return ()
        book = rulebook(draft.architecture, draft_precision(draft, question.precision), question.engine, question.gpu)
        found = book.violations(Degrees(degrees.tensor_parallel))
        return tuple(replace(item, message=f"draft {draft.architecture.name}: {item.message}") for item in found)

    def legal(self, degrees: Degrees) -> bool:
        """Tell whether no rule is broken; warnings do not count."""
        return not errors(self.violations(degrees))

    def legal_mask(self, candidates: Iterable[Degrees]) -> list[bool]:
        """Legality of many degrees, in order."""
        return [self.legal(degrees) for degrees in candidates]


@lru_cache(maxsize=256)
def rulebook(architecture: ModelArchitecture, precision: Precision, engine: Engine, gpu: Gpu) -> Rulebook:
    """Rules for one model, precision, engine version and GPU; the same object for the same question."""
    return Rulebook(Question(architecture, precision, engine, gpu))


def violations(architecture: ModelArchitecture, precision: Precision, engine: Engine, gpu: Gpu, degrees: Degrees) -> tuple[Diagnostic, ...]:
    """Everything that is wrong with running `architecture` at `degrees`, errors first; never only the first of them."""
    return rulebook(architecture, precision, engine, gpu).violations(degrees)


def tensor_parallel_violations(
    architecture: ModelArchitecture, precision: Precision, engine: Engine, gpu: Gpu, tensor_parallel: int
) -> tuple[Diagnostic, ...]:
    """What is wrong with a tensor-parallel degree whatever the other degrees: empty of errors when some expert parallelism makes it legal.

    Experts kept whole (EP over all ranks of the stage) escape the rules on their width, so TP8 with EP8 may be legal where TP8 alone is not.
    """
    return rulebook(architecture, precision, engine, gpu).tensor_parallel_violations(tensor_parallel)


def legal_tensor_parallel(
    architecture: ModelArchitecture, precision: Precision, engine: Engine, gpu: Gpu, limit: int = 64
) -> tuple[int, ...]:
    """Tensor-parallel degrees up to `limit` that are legal, alone or with some expert parallelism."""
    return tuple(
        degree for degree in range(1, limit + 1) if not errors(tensor_parallel_violations(architecture, precision, engine, gpu, degree))
    )


def legal_expert_parallel(
    architecture: ModelArchitecture, precision: Precision, engine: Engine, gpu: Gpu, tensor_parallel: int, data_parallel: int = 1
) -> tuple[int, ...]:
    """Expert-parallel degrees that are legal for stages of t x dp ranks; 1 = experts cut like other matrices."""
    book = rulebook(architecture, precision, engine, gpu)
    stage = tensor_parallel * data_parallel
    candidates = [degree for degree in range(1, stage + 1) if stage % degree == 0]
    return tuple(degree for degree in candidates if book.legal(Degrees(tensor_parallel, 1, degree, data_parallel)))
