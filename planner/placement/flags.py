"""Options of serving engines that decide a layout: which name means what, and which say nothing about it.

Sources: vLLM engine arguments documentation; SGLang server arguments documentation; TensorRT-LLM trtllm-serve command reference.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from planner.diagnostics import Diagnostic, Place
from planner.placement.proposal import LARGEST_DEGREE, MOST_SEQUENCES, MOST_TOKENS, warning
from planner.placement.shell_text import Word

WHOLE, SHARE, TEXT, SWITCH = "whole", "share", "text", "switch"
WORD = "word"  # a text that may be a variable: only whether two are the same matters


@dataclass(frozen=True, slots=True)
class Option:
    """One option that is read: the setting it gives, the form of its value, and the largest whole number it may be."""

    setting: str
    form: str
    most: int = LARGEST_DEGREE


@dataclass
class Options:
    """Options of one command by setting, with the place of each."""

    values: dict[str, str | int | float | bool] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    faults: list[Diagnostic] = field(default_factory=list)
    rest: list[Word] = field(default_factory=list)

    def whole(self, setting: str, default: int = 1) -> int:
        """A whole number, `default` where it is not given."""
        value = self.values.get(setting)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def given(self, setting: str) -> int | None:
        """A whole number, None where it is not given."""
        value = self.values.get(setting)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, setting: str) -> str | None:
        """A text, None where it is not given."""
        value = self.values.get(setting)
        return value if isinstance(value, str) else None

    def share(self, setting: str) -> float | None:
        """A share of 1, None where it is not given."""
        value = self.values.get(setting)
        return value if isinstance(value, float) else None

    def on(self, setting: str) -> bool:
        """Whether a switch is on."""
        return self.values.get(setting) is True


def _table(*rows: tuple[str, Option]) -> dict[str, Option]:
    return {name: option for names, option in rows for name in names.split()}


def _tokens(setting: str) -> Option:
    return Option(setting, WHOLE, MOST_TOKENS)


def _sequences(setting: str) -> Option:
    return Option(setting, WHOLE, MOST_SEQUENCES)


_NAMES: Final = (
    ("--model --model-path", Option("model", TEXT)),
    ("--served-model-name", Option("served_name", TEXT)),
    ("--dtype", Option("dtype", TEXT)),
    ("--quantization -q", Option("quantization", TEXT)),
    ("--kv-cache-dtype", Option("kv_cache", TEXT)),
    ("--nnodes", Option("nnodes", WHOLE)),
    ("--node-rank", Option("node_rank", TEXT)),
    ("--master-addr --dist-init-addr --nccl-init-addr", Option("meeting", WORD)),
    ("--master-port", Option("meeting_port", WORD)),
    ("--data-parallel-rpc-port", Option("meeting_port", WORD)),
)
READ: Final[Mapping[str, Mapping[str, Option]]] = {
    "vllm": _table(
        *_NAMES,
        ("--tensor-parallel-size -tp", Option("tp", WHOLE)),
        ("--pipeline-parallel-size -pp", Option("pp", WHOLE)),
        ("--data-parallel-size -dp", Option("dp", WHOLE)),
        ("--data-parallel-size-local -dpl", Option("dp_local", WHOLE)),
        ("--data-parallel-start-rank -dpr", Option("start_rank", TEXT)),
        ("--headless", Option("headless", SWITCH)),
        ("--enable-expert-parallel", Option("expert_parallel", SWITCH)),
        ("--max-model-len", _tokens("max_model_len")),
        ("--max-num-seqs", _sequences("max_num_seqs")),
        ("--max-num-batched-tokens", _tokens("max_batched_tokens")),
        ("--gpu-memory-utilization", Option("gpu_memory_utilization", SHARE)),
        ("--enforce-eager", Option("eager", SWITCH)),
        ("--speculative-model", Option("draft", TEXT)),
        ("--num-speculative-tokens", Option("draft_tokens", WHOLE)),
        ("--speculative-config", Option("speculative_config", TEXT)),
        ("--enable-lora", Option("lora", SWITCH)),
        ("--max-loras", Option("lora_slots", WHOLE)),
        ("--max-lora-rank", Option("lora_rank", WHOLE)),
    ),
    "sglang": _table(
        *_NAMES,
        ("--tensor-parallel-size --tp-size --tp", Option("tp", WHOLE)),
        ("--pipeline-parallel-size --pp-size --pp", Option("pp", WHOLE)),
        ("--data-parallel-size --dp-size --dp", Option("dp", WHOLE)),
        ("--expert-parallel-size --ep-size --ep", Option("ep", WHOLE)),
        ("--enable-ep-moe", Option("expert_parallel", SWITCH)),
        ("--enable-dp-attention", Option("dp_attention", SWITCH)),
        ("--context-length", _tokens("max_model_len")),
        ("--max-running-requests", _sequences("max_num_seqs")),
        ("--chunked-prefill-size", _tokens("max_batched_tokens")),
        ("--mem-fraction-static", Option("gpu_memory_utilization", SHARE)),
        ("--disable-cuda-graph", Option("eager", SWITCH)),
        ("--speculative-draft-model-path --speculative-draft-model", Option("draft", TEXT)),
        ("--speculative-algorithm --speculative-algo", Option("algorithm", TEXT)),
        ("--speculative-num-steps", Option("draft_tokens", WHOLE)),
        ("--speculative-num-draft-tokens", Option("verified_tokens", WHOLE)),
        ("--enable-lora", Option("lora", SWITCH)),
        ("--max-loras-per-batch", Option("lora_slots", WHOLE)),
        ("--max-lora-rank", Option("lora_rank", WHOLE)),
    ),
    "tensorrt-llm": _table(
        *_NAMES,
        ("--tp-size --tensor-parallel-size", Option("tp", WHOLE)),
        ("--pp-size --pipeline-parallel-size", Option("pp", WHOLE)),
        ("--ep-size --moe-expert-parallel-size --expert-parallel-size", Option("ep", WHOLE)),
        ("--enable-attention-dp", Option("attention_dp", SWITCH)),
        ("--max-seq-len", _tokens("max_model_len")),
        ("--max-batch-size", _sequences("max_num_seqs")),
        ("--max-num-tokens", _tokens("max_batched_tokens")),
        ("--kv-cache-free-gpu-memory-fraction --free-gpu-memory-fraction", Option("kv_fraction", SHARE)),
        ("--gpus-per-node", Option("gpus_per_node", WHOLE)),
        ("--config --extra-llm-api-options --extra-engine-args", Option("config_file", TEXT)),
        ("--override-engine-args", Option("overrides", TEXT)),
    ),
}
"""Options read, by engine; underscores and dashes in names are the same."""

# Options that many commands carry and that change neither layout nor memory nor speed as they are predicted here. True = followed by a value.
QUIET: Final[Mapping[str, bool]] = {
    **dict.fromkeys(
        [
            "--host",
            "--port",
            "--api-key",
            "--revision",
            "--tokenizer",
            "--tokenizer-mode",
            "--tokenizer-path",
            "--chat-template",
            "--tool-call-parser",
            "--reasoning-parser",
            "--download-dir",
            "--load-format",
            "--seed",
            "--uvicorn-log-level",
            "--log-level",
            "--generation-config",
            "--data-parallel-address",
            "--data-parallel-backend",
            "--distributed-executor-backend",
            "--response-role",
            "--ssl-keyfile",
            "--ssl-certfile",
            "--random-seed",
            "--schedule-policy",
            "--backend",
            "--dist-timeout",
            "--config",
            "--lora-modules",
            "--lora-paths",
            "--lora-target-modules",
            "--max-cpu-loras",
            "--max-loaded-loras",
            "--speculative-eagle-topk",
            "--speculative-ngram-max-bfs-breadth",
            "--speculative-ngram-branch-length",
        ],
        True,
    ),
    **dict.fromkeys(
        [
            "--trust-remote-code",
            "--enable-auto-tool-choice",
            "--disable-log-requests",
            "--disable-log-stats",
            "--enable-metrics",
            "--skip-tokenizer-init",
            "--enable-log-requests",
            "--no-enable-log-requests",
            "--enable-chunked-prefill",
            "--enable-prefix-caching",
            "--no-enable-prefix-caching",
            "--disable-radix-cache",
            "--enable-server-load-tracking",
            "--api-server",
        ],
        False,
    ),
}


def read_options(engine: str, words: Sequence[Word]) -> Options:
    """Options of one engine command; what is not known is told, with its value, and judged no further."""
    table, found = READ[engine], Options()
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not _is_option(word.text):
            found.rest.append(word)
            continue
        name, equals, inline = word.text.partition("=")
        name = _plain(name, table)
        option = table.get(name)
        takes_value = option.form != SWITCH if option is not None else QUIET.get(name, True)
        value: Word | None = Word(inline, word.place) if equals else None
        follows = position < len(words) and not _is_option(words[position].text)
        if value is None and takes_value and follows:
            value = words[position]
            position += 1
        if option is not None:
            _take(found, name, option, value, word.place)
        elif name not in QUIET:
            found.faults.append(_unknown(engine, name, value, word.place, table))
    return found


def _is_option(text: str) -> bool:
    return re.match(r"--?[A-Za-z]", text) is not None


def _plain(name: str, table: Mapping[str, Option]) -> str:
    plain = name.replace("_", "-") if name.startswith("--") else name
    return name if name in table else plain


def _take(found: Options, name: str, option: Option, value: Word | None, place: Place) -> None:
    found.places[option.setting] = place
    if option.form == SWITCH:
        found.values[option.setting] = value is None or value.text.lower() not in {"false", "0", "no"}
        return
    text = "" if value is None else value.text.strip()
    if option.form == WORD:
        found.values[option.setting] = text
        return
    where = place if value is None else value.place
    if text.startswith("$"):
        message = f"{name} is the shell variable {text[:40]}, whose value is not known here"
        found.faults.append(Diagnostic("FLAG_VALUE", message, f"write the number itself: {name} 8", place=where))
    elif option.form == TEXT and text:
        found.values[option.setting] = text
    elif option.form == WHOLE and re.fullmatch(r"[0-9]{1,9}", text) and 1 <= int(text) <= option.most:
        found.values[option.setting] = int(text)
    elif option.form == WHOLE and (size := _thousands(text)) is not None and 1 <= size <= option.most:
        found.values[option.setting] = size
    elif option.form == SHARE and re.fullmatch(r"[0-9]{0,3}\.?[0-9]{1,9}", text) and 0.0 < float(text) <= 1.0:
        found.values[option.setting] = float(text)
    else:
        wanted = (
            f"a whole number from 1 to {option.most:,}"
            if option.form == WHOLE
            else "a share between 0 and 1"
            if option.form == SHARE
            else "a value"
        )
        message = f"{name} needs {wanted}, not `{text[:40]}`" if text else f"{name} needs {wanted}"
        found.faults.append(Diagnostic("FLAG_VALUE", message, f"write {name} and {wanted}", place=where))


def _thousands(text: str) -> int | None:
    """Read `32k` and `1M` as vLLM does: k = 1000, K = 1024."""
    match = re.fullmatch(r"([0-9]{1,6})([kKmM])", text)
    return None if match is None else int(match[1]) * {"k": 1000, "K": 1024, "m": 10**6, "M": 2**20}[match[2]]


def _unknown(engine: str, name: str, value: Word | None, place: Place, table: Mapping[str, Option]) -> Diagnostic:
    close = difflib.get_close_matches(name, [*table, *QUIET], n=1, cutoff=0.75)
    shown = name if value is None else f"{name} {value.text[:40]}"
    hint = f"did you mean {close[0]}?" if close else "what it changes is not in the figures; check it by hand"
    return warning("FLAG_UNKNOWN", f"the {engine} option `{shown[:80]}` is not read here", hint, place)
