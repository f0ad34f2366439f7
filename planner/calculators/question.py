"""What a calculator is asked: flags as text -> models, hardware, engine, precisions, lengths and degrees, every fault at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Final, cast

from planner.calculators.flags import FlagReader
from planner.calculators.hardware import MOST_DOMAIN, Hardware, LinkFit, hardware, read_link
from planner.candidates.batches import Targets
from planner.candidates.settings import PoolSetting, batched_tokens, model_length, sequences_asked, utilization
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.engine_choice import engine_for
from planner.catalog.engines import Engine, engine
from planner.catalog.gpus import Gpu, gpu
from planner.catalog.links import NIC_KINDS, Link, link
from planner.cost.setting import Setting
from planner.diagnostics import Diagnostic, Place, PlannerError, Severity
from planner.plan.shape import Degrees
from planner.problem.documents import Deployment, EngineChoice, KvDtype, Memory, PrecisionChoice, WeightsDtype
from planner.problem.precision import precision_notes, resolve_precisions
from planner.problem.profiles import Profile, find_profile, unused_here
from planner.problem.references import names_a_file, read_model_file
from planner.problem.workload import LARGEST_DEGREE, MOST_SEQUENCES, MOST_TOKENS, Workload
from planner.quantities import Kind

WEIGHTS: Final = ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4")
KV_CACHES: Final = ("bf16", "fp16", "fp8", "int8")
MOST_GPUS: Final = 65_535
MOST_LAYOUTS: Final = 2_000
MOST_PRICE: Final = 1e6


@dataclass(frozen=True)
class FlagTexts:
    """Flags of the calculators as they were written; empty or None = absent."""

    model: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    nic: str | None = None
    domain: str | None = None
    nodes: str | None = None
    nics_per_gpu: str | None = None
    alpha: str | None = None
    bandwidth: str | None = None
    tp: tuple[str, ...] = ()
    pp: tuple[str, ...] = ()
    ep: tuple[str, ...] = ()
    dp: tuple[str, ...] = ()
    batch: tuple[str, ...] = ()
    prompt_tokens: tuple[str, ...] = ()
    output_tokens: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    kv_cache: str | None = None
    engine: str = "vllm"
    gpu_memory_utilization: str | None = None
    max_model_len: str | None = None
    max_batched_tokens: str | None = None
    max_num_seqs: str | None = None
    price: str | None = None
    weight_bytes: str | None = None
    parameters: str | None = None
    profile: str = "calibrated"


@dataclass(frozen=True)
class PaperCounts:
    """Weights [B] and parameters that a person writes on paper in place of the model's own; None = the model's."""

    weight_bytes: float | None = None
    parameters: float | None = None


@dataclass(frozen=True)
class Case:
    """One model in one precision on one kind of hardware with one pair of lengths; `price` is $/h of a GPU, None where nobody names one; `profile` is what the profile calls itself."""

    context: PoolSetting
    hardware: Hardware
    price: float | None
    price_source: str
    counts: PaperCounts
    notes: tuple[Diagnostic, ...]
    profile: str = "calibrated"

    @property
    def setting(self) -> Setting:
        """What the physics takes."""
        return self.context.setting


@dataclass(frozen=True)
class Question:
    """All cases asked about, with the degrees and batches to look at; empty degrees = the calculator's own choice."""

    cases: tuple[Case, ...]
    tp: tuple[int, ...]
    pp: tuple[int, ...]
    ep: tuple[int, ...]
    dp: tuple[int, ...]
    batches: tuple[int, ...]

    @property
    def notes(self) -> tuple[Diagnostic, ...]:
        """What is worth knowing about the cases, each thing once."""
        return tuple(dict.fromkeys(note for case in self.cases for note in case.notes))

    def degrees(self, tensor: tuple[int, ...] = (1,)) -> tuple[Degrees, ...]:
        """Every combination of the degrees asked, `tensor` where no TP degree is."""
        columns = (self.tp or tensor, self.pp or (1,), self.ep or (1,), self.dp or (1,))
        return tuple(Degrees(*row) for row in itertools.product(*columns))


@dataclass(frozen=True)
class Defaults:
    """What a calculator assumes where a flag is absent."""

    batch: tuple[str, ...] = ("32",)
    prompt_tokens: tuple[str, ...] = ("2048",)
    output_tokens: tuple[str, ...] = ("512",)
    tensor: tuple[int, ...] = (1,)


def read_model(name: str) -> ModelArchitecture:
    """Model by catalog name, or from the config.json (or its folder) that `name` points to.

    Raises
    ------
    PlannerError
        UNKNOWN_MODEL, or what is wrong with the file.
    """
    folder = FilePath()
    if names_a_file(name, folder):
        return read_model_file(name, folder).architecture
    from planner.catalog.models import model

    return model(name)


def read_question(texts: FlagTexts, defaults: Defaults, reader: FlagReader, gpus: tuple[Gpu, ...] = ()) -> Question:
    """Read all flags; `gpus` are hypothetical ones to look at besides those named.

    Raises
    ------
    PlannerError
        With every fault of every flag.
    """
    models = reader.look_up("--model", texts.model, read_model)
    profile = reader.look_up_one("--profile", texts.profile, read_profile) or Profile()
    boards = (*map(profile.measured.gpu, reader.look_up("--gpu", texts.gpu, gpu)), *gpus)
    machines = _hardware(reader, texts, boards, profile)
    reader.look_up_one("--engine", texts.engine, engine)
    weights: tuple[str | None, ...] = reader.choices("--weights", texts.weights, WEIGHTS) if texts.weights else (None,)
    kv_cache = next(iter(reader.choices("--kv-cache", (texts.kv_cache,), KV_CACHES)), None) if texts.kv_cache is not None else None
    degrees = [reader.counts(f"--{name}", getattr(texts, name), LARGEST_DEGREE) for name in ("tp", "pp", "ep", "dp")]
    batches = reader.counts("--batch", texts.batch or defaults.batch, MOST_SEQUENCES)
    prompts = reader.counts("--prompt-tokens", texts.prompt_tokens or defaults.prompt_tokens, MOST_TOKENS)
    outputs = reader.counts("--output-tokens", texts.output_tokens or defaults.output_tokens, MOST_TOKENS)
    share = reader.quantity("--gpu-memory-utilization", texts.gpu_memory_utilization, Kind.FRACTION, most=1.0)
    longest = reader.count("--max-model-len", texts.max_model_len, MOST_TOKENS)
    chunk = reader.count("--max-batched-tokens", texts.max_batched_tokens, MOST_TOKENS)
    running = reader.count("--max-num-seqs", texts.max_num_seqs, MOST_SEQUENCES)
    price = reader.quantity("--price", texts.price, Kind.MONEY_PER_HOUR, above_zero=False, most=MOST_PRICE)
    counts = _counts(reader, texts, len(models), profile.base)
    widest = [max(column, default=1) for column in degrees]
    if widest[0] * widest[1] * widest[3] > MOST_GPUS:
        message = f"TP {widest[0]} x PP {widest[1]} x DP {widest[3]} is more than {MOST_GPUS} GPUs"
        reader.fault("--tp", "TOO_MANY_VALUES", message, "lower one of --tp, --pp and --dp")
    lengths = [(prompt, output) for prompt in prompts for output in outputs]
    asked = len(models) * len(machines) * len(weights) * len(lengths) * len(batches)
    for column in degrees:
        asked *= max(len(column), 1)
    if asked > MOST_LAYOUTS:
        reader.fault("--tp", "TOO_MANY_VALUES", f"{asked} layouts are asked for, at most {MOST_LAYOUTS} at once", "ask for fewer values")
    reader.finish()
    memory = Memory(gpu_memory_utilization=share, max_model_len=longest, max_batched_tokens=chunk, max_num_seqs=running)
    cases = []
    for architecture, machine, dtype, (prompt, output) in itertools.product(models, machines, weights, lengths):
        if longest is not None and prompt + output > longest:
            message = f"a request has {prompt} + {output} tokens, more than {longest}"
            reader.fault("--max-model-len", "CONTEXT_TOO_LONG", message, f"write at least {prompt + output}")
            continue
        deployment = _deployment(architecture, texts.engine, dtype, kv_cache, prompt, output, memory)
        cases.append(_case(deployment, architecture, machine, engine_for(texts.engine, architecture), profile, price, counts))
    reader.finish()
    return Question(tuple(cases), degrees[0], degrees[1], degrees[2], degrees[3], batches)


def read_profile(text: str) -> Profile:
    """Profile by name, or from the file that `text` names relative to the current folder."""
    return find_profile(text, FilePath())


def _hardware(reader: FlagReader, texts: FlagTexts, boards: tuple[Gpu, ...], profile: Profile) -> tuple[Hardware, ...]:
    nic = reader.look_up_one("--nic", texts.nic, _nic)
    domain = reader.count("--domain", texts.domain, MOST_DOMAIN)
    nodes = reader.count("--nodes", texts.nodes, MOST_GPUS)
    interfaces = reader.quantity("--nics-per-gpu", texts.nics_per_gpu, Kind.FRACTION) if _is_share(texts.nics_per_gpu) else None
    if interfaces is None and texts.nics_per_gpu is not None:
        interfaces = reader.count("--nics-per-gpu", texts.nics_per_gpu, 64)
    fit = LinkFit(
        reader.quantity("--alpha", texts.alpha, Kind.SECONDS, most=1.0),
        reader.quantity("--bandwidth", texts.bandwidth, Kind.BYTES_PER_SECOND, most=1e15),
    )
    found = []
    if not boards and texts.link:
        reader.parts("--link", texts.link)
    for board in boards:
        joined: tuple[Link | None, ...] = reader.look_up("--link", texts.link, partial(read_link, gpu=board)) if texts.link else (None,)
        found += [
            hardware(board, entry, nic, domain=domain, nodes=nodes, nics_per_gpu=interfaces or 1.0, fit=fit, measured=profile.measured)
            for entry in joined
        ]
    return tuple(found)


def _is_share(text: str | None) -> bool:
    return text is not None and ("." in text or "%" in text)


def _nic(name: str) -> Link:
    found = link(name)
    if found.kind not in NIC_KINDS:
        message = f"{found.name} is no network interface"
        raise PlannerError([Diagnostic("UNKNOWN_LINK", message, "write one such as infiniband-ndr-400, roce-400 or efa-p5")])
    return found


def _counts(reader: FlagReader, texts: FlagTexts, models: int, base: str) -> PaperCounts:
    weight_bytes = reader.quantity("--weight-bytes", texts.weight_bytes, Kind.BYTES, most=1e15)
    parameters = reader.number("--parameters", texts.parameters, 1e15)
    given = [flag for flag, text in (("--weight-bytes", texts.weight_bytes), ("--parameters", texts.parameters)) if text is not None]
    for flag in given:
        if base != "hockney":
            reader.fault(flag, "PAPER_COUNT_ONLY", "counts of one's own are paper arithmetic", "add --profile hockney, or leave it out")
        elif models > 1:
            reader.fault(flag, "PAPER_COUNT_ONLY", f"one count is given for {models} models", "ask for one model at a time")
    if parameters == 0.0:
        reader.fault("--parameters", "OUT_OF_RANGE", "a model has parameters", "write their number, 70e9 for example")
    return PaperCounts(weight_bytes, parameters)


def _deployment(
    architecture: ModelArchitecture, engine_name: str, weights: str | None, kv_cache: str | None, prompt: int, output: int, memory: Memory
) -> Deployment:
    """The question as a problem file would put it, so that defaults are resolved exactly as `solve` resolves them."""
    asked = PrecisionChoice(weights=cast("WeightsDtype | None", weights), kv_cache=cast("KvDtype | None", kv_cache))
    return Deployment(
        name="layout",
        model=architecture.name,
        precision=asked if weights is not None or kv_cache is not None else None,
        engine=EngineChoice(name=engine_name),
        workload=Workload(prompt_tokens=prompt, output_tokens=output, concurrency=1),
        memory=memory,
    )


def _case(
    deployment: Deployment,
    architecture: ModelArchitecture,
    machine: Hardware,
    rules: Engine,
    profile: Profile,
    price: float | None,
    counts: PaperCounts,
) -> Case:
    board = machine.gpu
    precision = resolve_precisions(deployment, architecture, rules, board)[0]
    setting = Setting(
        architecture=architecture,
        precision=precision,
        engine=f"{rules.name} {rules.version}",
        gpu=board,
        paths=machine.pool.paths,
        prompt_tokens=float(deployment.workload.prompt_tokens),
        output_tokens=float(deployment.workload.output_tokens),
        max_batched_tokens=batched_tokens(deployment, rules, board),
        max_model_len=model_length(deployment),
        gpu_memory_utilization=utilization(deployment, rules),
        profile=profile.base,
        max_num_seqs=sequences_asked(deployment),
    )
    context = PoolSetting(0, machine.pool, rules, setting, Targets(), sequences_asked(deployment) or rules.sequences(board), 1)
    source = "given" if price is not None else machine.pool.price_source
    notes = [replace(note, place=Place(path="--weights")) for note in precision_notes(deployment, architecture)]
    notes += _context_notes(architecture, deployment.workload)
    notes += [replace(note, place=Place(path="--profile")) for note in unused_here(profile, machine.pool)]
    return Case(context, machine, price if price is not None else machine.pool.price_per_gpu, source, counts, tuple(notes), profile.name)


def _context_notes(architecture: ModelArchitecture, workload: Workload) -> Iterator[Diagnostic]:
    """A calculator prices what a model was not made for, and says so."""
    tokens, longest = workload.prompt_tokens + workload.output_tokens, architecture.max_position
    if 0 < longest < tokens:
        message = f"a request of {tokens:,} tokens is longer than the {longest:,} positions of {architecture.name}"
        hint = f"--prompt-tokens and --output-tokens may add up to {longest}"
        yield Diagnostic("CONTEXT_TOO_LONG", message, hint, Severity.WARNING, Place(path="--prompt-tokens"))
