"""One serving command -> how it cuts its model, its settings, and the hosts and devices it runs on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from planner.catalog.architecture import ModelArchitecture
from planner.diagnostics import Diagnostic, Place, PlannerError
from planner.placement.companions import placed_adapters, placed_speculation, unreadable
from planner.placement.flags import Options, read_options
from planner.placement.gpu_words import gpu_indices, host_names, slices
from planner.placement.proposal import EngineSettings, ProposedGpu
from planner.placement.seats import Host
from planner.placement.shell_text import Word, assignment
from planner.plan.shape import Degrees

VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
PARTITIONS: Final = ("VLLM_PP_LAYER_PARTITION", "SGLANG_PP_LAYER_PARTITION")
_WEIGHTS: Final = {
    "fp8": "fp8", "w8a8_fp8": "fp8", "fbgemm_fp8": "fp8", "awq": "int4", "awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4",
    "modelopt_fp4": "nvfp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "w8a8_int8": "int8", "experts_int8": "int8",
}  # fmt: skip
_DTYPES: Final = {"half": "fp16", "float16": "fp16", "bfloat16": "bf16"}
_KV_CACHES: Final = {
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "int8": "int8",
}


@dataclass
class EngineCommand:
    """One command: its engine, options, environment, and what stands before the engine's name (launchers with their hosts).

    `gpus` are those of its ranks where a comment names them (`# gpus:`), since a job counts its devices from 0.
    """

    engine: str
    options: Options
    place: Place
    hosts: tuple[Host, ...] = ()
    devices: tuple[int, ...] | None = None
    gpus: tuple[ProposedGpu, ...] = ()
    sliced: Place | None = None
    partition: tuple[int, ...] | None = None
    version: str | None = None
    faults: list[Diagnostic] = field(default_factory=list)

    @property
    def model(self) -> str | None:
        """Model as the command names it."""
        named = self.options.text("model")
        if named is None and self.options.rest:
            named = self.options.rest[0].text
        return named

    def degrees(self, architecture: ModelArchitecture | None) -> tuple[Degrees, int]:
        """Degrees of one replica and how many replicas the command starts.

        Data parallelism of a model with experts is attention ranks inside one replica; without experts every rank is a replica. SGLang's TP counts
        all ranks of a stage, those of data-parallel attention included.
        """
        options = self.options
        tensor, pipeline, data = options.whole("tp"), options.whole("pp"), options.whole("dp")
        experts = architecture is not None and any(
            kind.feed_forward is not None and kind.feed_forward.experts for kind in architecture.layer_kinds
        )
        if self.engine == "sglang":
            inside = options.on("dp_attention") and data > 1
            attention = max(tensor // data, 1) if inside else tensor
            spread = tensor if options.on("expert_parallel") else options.whole("ep")
            return Degrees(attention, pipeline, spread, data if inside else 1), 1 if inside else data
        if self.engine == "tensorrt-llm":
            if options.on("attention_dp"):
                return Degrees(1, pipeline, options.whole("ep"), tensor), 1
            return Degrees(tensor, pipeline, options.whole("ep")), 1
        if not experts:
            return Degrees(tensor, pipeline, tensor if options.on("expert_parallel") else 1), data
        return Degrees(tensor, pipeline, tensor * data if options.on("expert_parallel") else 1, data), 1

    def settings(self) -> EngineSettings:
        """What the options say about memory, formats and limits."""
        options = self.options
        quantization = (options.text("quantization") or "").lower()
        dtype = (options.text("dtype") or "").lower()
        speculation = placed_speculation(self.engine, options, self.model)
        return EngineSettings(
            engine=self.engine,
            version=self.version,
            model=self.model,
            gpu_memory_utilization=options.share("gpu_memory_utilization"),
            max_model_len=options.given("max_model_len"),
            max_num_seqs=self._of_one_rank(options.given("max_num_seqs")),
            max_batched_tokens=self._of_one_rank(options.given("max_batched_tokens")),
            weights=_WEIGHTS.get(quantization) or _DTYPES.get(dtype),
            kv_cache=_KV_CACHES.get((options.text("kv_cache") or "").lower()),
            eager=options.on("eager"),
            draft=None if speculation is None else speculation.model,
            speculation=speculation,
            adapters=placed_adapters(self.engine, options),
            from_command=True,
            places=options.places,
        )

    def _of_one_rank(self, limit: int | None) -> int | None:
        """A limit of one data-parallel rank: SGLang divides its own among the attention ranks (server_args.py and tp_worker.py of 0.5.5)."""
        if limit is None or self.engine != "sglang" or not self.options.on("dp_attention"):
            return limit
        return max(limit // self.options.whole("dp"), 1)


def find_engine(words: Sequence[Word]) -> tuple[str, int, int] | None:
    """Engine that a command starts, where its name begins and where its options do; None for other commands."""
    for index, word in enumerate(words):
        name = word.text.rsplit("/", 1)[-1]
        following = words[index + 1].text if index + 1 < len(words) else ""
        if name == "vllm" and following == "serve":
            return "vllm", index, index + 2
        if word.text in {"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server", "dynamo.vllm"}:
            return "vllm", index, index + 1
        if word.text in {"sglang.launch_server", "dynamo.sglang"}:
            return "sglang", index, index + 1
        if name == "sglang" and following == "serve":
            return "sglang", index, index + 2
        if name == "trtllm-serve":
            return "tensorrt-llm", index, index + (2 if following == "serve" else 1)
        if word.text == "dynamo.trtllm":
            return "tensorrt-llm", index, index + 1
    return None


def engine_command(words: Sequence[Word], environment: dict[str, Word]) -> EngineCommand | None:
    """Read one command; None where it starts no engine known here.

    `environment` holds what earlier `export` lines set. A value that cannot be read becomes a fault of the command.
    """
    found = find_engine(words)
    if found is None:
        return None
    engine, begin, first = found
    command = EngineCommand(engine, read_options(engine, words[first:]), words[begin].place)
    own = dict(environment)
    before = list(words[:begin])
    for word in before:
        named = assignment(word)
        if named is not None:
            own[named[0]] = named[1]
    for setting in VISIBLE:
        if setting in own:
            _visible(command, own[setting])
            break
    for setting in PARTITIONS:
        if setting in own:
            _partition(command, own[setting])
    try:
        command.hosts = _launcher_hosts(before)
    except PlannerError as error:
        command.faults += error.diagnostics
    command.faults += [*command.options.faults, *unreadable(command.options)]
    return command


def _visible(command: EngineCommand, value: Word) -> None:
    """Devices a variable makes visible; `all` and shell variables say nothing."""
    text = value.text.strip()
    if text.lower() in {"", "all"} or text.startswith("$"):
        return
    if any(slices(part) for part in text.split(",")):
        command.sliced = value.place
        command.devices = tuple(range(len(text.split(","))))
        return
    try:
        command.devices = gpu_indices(text, value.place)
    except PlannerError as error:
        command.faults += error.diagnostics


def _partition(command: EngineCommand, value: Word) -> None:
    if re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", value.text.strip()):
        command.partition = tuple(int(layers) for layers in value.text.strip().split(","))
    else:
        hint = "write the layers of every stage: 40,40"
        command.faults.append(Diagnostic("FLAG_VALUE", f"`{value.text[:40]}` is no list of layers", hint, place=value.place))


def _launcher_hosts(words: Sequence[Word]) -> tuple[Host, ...]:
    """Hosts that srun (`-w`, `--nodelist`), mpirun (`-H`, `--host`) or ssh name before the engine.

    Raises
    ------
    PlannerError
        HOST_LIST_INVALID, HOST_LIST_TOO_LARGE.
    """
    for index, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        launcher = name in {"-w", "--nodelist", "-H", "--host", "--hosts"}
        if not launcher and word.text != "ssh":
            continue
        given = Word(value, word.place) if equals else words[index + 1] if index + 1 < len(words) else None
        if given is None or given.text.startswith("-"):
            continue
        text = re.sub(r":[0-9]+(?=,|$)", "", given.text.rsplit("@", 1)[-1])
        return tuple(Host(host, given.place) for host in host_names(text, given.place))
    return ()
