"""What a command starts beside its model, speculative decoding and adapters, and where that is not what the problem asks for.

Sources: vLLM engine arguments and config/speculative.py; SGLang server_args.py of 0.5.5; TensorRT-LLM docs/source/features/speculative-decoding.md and lora.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from planner.catalog.architecture import ModelArchitecture
from planner.catalog.models import model
from planner.diagnostics import Diagnostic, PlannerError
from planner.placement.flags import Options
from planner.placement.proposal import DRAFT, NGRAM, OWN_LAYERS, EngineSettings, PlacedAdapters, PlacedSpeculation, warning
from planner.problem.companions import served
from planner.problem.documents import Deployment, Lora, Speculation

MOST_PROPOSED: Final = 64
# Slots and rank of adapters where a command does not say them; None = those of the adapters it loads.
_ADAPTERS: Final[Mapping[str, tuple[int, int | None]]] = {"vllm": (1, 16), "sglang": (8, None), "tensorrt-llm": (4, 64)}
_DECODING: Final = {"mtp": OWN_LAYERS, "ngram": NGRAM, "drafttarget": DRAFT, "eagle": DRAFT, "eagle3": DRAFT}


def placed_speculation(engine: str, options: Options, served_model: str | None) -> PlacedSpeculation | None:
    """Read speculative decoding of a command, None where it has none or one that is not known here."""
    if engine == "sglang":
        return _of_sglang(options, served_model)
    data = _document(options)
    if engine == "tensorrt-llm":
        method = _DECODING.get(str(data.get("decoding_type", "")).lower())
        named = data.get("speculative_model_dir") or data.get("speculative_model")
        tokens = data.get("max_draft_len") or data.get("num_nextn_predict_layers")
        return None if method is None else PlacedSpeculation(method, _text(named), _count(tokens), None)
    if not data:
        named, tokens, method, ranks = options.text("draft"), options.given("draft_tokens"), "", None
    else:
        named, tokens, method, ranks = _text(data.get("model")), data.get("num_speculative_tokens"), str(data.get("method") or ""), None
        ranks = data.get("draft_tensor_parallel_size")
    alone = ranks == 1 if isinstance(ranks, int) and options.whole("tp") > 1 else None
    if "ngram" in {method, named} or "[ngram]" in {method, named}:
        return PlacedSpeculation(NGRAM, None, _count(tokens), None)
    if method.endswith("mtp"):
        return PlacedSpeculation(OWN_LAYERS, None, _count(tokens), None)
    return None if named is None else PlacedSpeculation(DRAFT, named, _count(tokens), alone)


def _of_sglang(options: Options, served_model: str | None) -> PlacedSpeculation | None:
    algorithm, named = (options.text("algorithm") or "").upper(), options.text("draft")
    if algorithm == "NGRAM":
        verified = options.given("verified_tokens")
        return PlacedSpeculation(NGRAM, None, None if verified is None else max(verified - 1, 1), None)
    if algorithm in {"EAGLE", "NEXTN"} and named in {None, served_model}:
        return PlacedSpeculation(OWN_LAYERS, None, options.given("draft_tokens"), None)
    return None if named is None else PlacedSpeculation(DRAFT, named, options.given("draft_tokens"), None)


def placed_adapters(engine: str, options: Options) -> PlacedAdapters | None:
    """Read the room for adapters of a command, None where it makes none."""
    if not options.on("lora"):
        return None
    slots, rank = _ADAPTERS[engine]
    return PlacedAdapters(options.whole("lora_slots", slots), options.given("lora_rank") or rank)


def unreadable(options: Options) -> list[Diagnostic]:
    """A description of speculation that is no JSON mapping."""
    text = options.text("speculative_config")
    if text is None or _document(options):
        return []
    message = f"`{text[:60]}` is no JSON mapping, so speculation is not read"
    hint = """write for example '{"method": "ngram", "num_speculative_tokens": 4}'"""
    return [Diagnostic("FLAG_VALUE", message, hint, place=options.places["speculative_config"])]


def _document(options: Options) -> dict[str, Any]:
    try:
        data = json.loads(options.text("speculative_config") or "{}")
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def with_placed(
    own: ModelArchitecture, architecture: ModelArchitecture, asked: Deployment, settings: EngineSettings
) -> tuple[ModelArchitecture, dict[str, Any], list[Diagnostic]]:
    """Give a model what is started beside it, the changed parts of its deployment, and where that differs from what is asked.

    Ranks without a command are served as the problem asks. A draft that only a command names stays out of the model: its weights are judged by themselves.

    Parameters
    ----------
    own
        Model of the problem with what is asked beside it.
    architecture
        Model as placed.
    asked
        Deployment of the problem.
    settings
        What the placement says.
    """
    draft = None if own.draft is None or own.draft.shares_ends else own.draft.architecture
    speculative, lora, faults = asked.speculative, asked.lora, list[Diagnostic]()
    if settings.from_command:
        if asked.speculative is not None:
            speculative, draft = _speculative(asked.speculative, draft, settings, faults)
        lora = _lora(asked.lora, settings, faults)
    changes = {"speculative": speculative, "lora": lora}
    plain = replace(architecture, draft=None, adapters=None, speculation=None)
    return served(plain, asked.model_copy(update=changes), draft), changes, faults


def _speculative(
    asked: Speculation, draft: ModelArchitecture | None, settings: EngineSettings, faults: list[Diagnostic]
) -> tuple[Speculation | None, ModelArchitecture | None]:
    placed, place = settings.speculation, settings.places.get("speculative_config") or settings.places.get("draft")
    wanted = f"{_named(asked.method, asked.model)}, {asked.tokens} tokens at once"
    if placed is None:
        message = f"the problem asks for speculative decoding ({wanted}), the command starts none: its times are those without"
        faults.append(warning("SETTING_DIFFERS", message, "start it with speculation, or leave `speculative` out of the problem", place))
        return None, None
    method = NGRAM if asked.method is not None else OWN_LAYERS if asked.model is None else DRAFT
    other = _other_draft(placed.model, draft) if placed.method == DRAFT else None
    tokens = placed.tokens or asked.tokens
    alone = asked.tp == 1 if placed.alone is None else placed.alone
    same = placed.method == method and other is None
    if not same or tokens != asked.tokens or (method == DRAFT and alone != (asked.tp == 1)):
        runs = f"{_named('ngram' if placed.method == NGRAM else None, placed.model)}, {tokens} tokens at once"
        cut = "" if placed.method != DRAFT or alone == (asked.tp == 1) else ", whole on every rank" if alone else ", cut like the model"
        message = f"the problem asks for speculative decoding with {wanted}; the command runs {runs}{cut}"
        message += "" if same else ", whose acceptance is not known: its times are those without"
        faults.append(warning("SETTING_DIFFERS", message, "start it as the problem asks, or change the problem", place))
    if placed.method == DRAFT and other is None and draft is None:
        return None, None
    found = Speculation(
        method="ngram" if placed.method == NGRAM else None,
        model=(asked.model if other is None else placed.model) if placed.method == DRAFT else None,
        tokens=min(tokens, MOST_PROPOSED),
        tp=1 if placed.method == DRAFT and alone else None,
        acceptance=asked.acceptance if same else None,
    )
    return found, (other or draft) if placed.method == DRAFT else None


def _other_draft(named: str | None, draft: ModelArchitecture | None) -> ModelArchitecture | None:
    """Draft of the catalog that a command names in place of the problem's; one that is not known is taken to be that."""
    if named is None:
        return None
    try:
        found = model(named)
    except PlannerError:
        return None
    return None if draft is not None and found.name == draft.name else found


def _named(method: str | None, draft: str | None) -> str:
    return "n-grams" if method is not None else "the checkpoint's own layers" if draft is None else f"the draft {draft[:60]}"


def _lora(asked: Lora | None, settings: EngineSettings, faults: list[Diagnostic]) -> Lora | None:
    placed, place = settings.adapters, settings.places.get("lora")
    found = None
    if placed is not None:
        found = Lora(slots=placed.slots, rank=placed.rank or (16 if asked is None else asked.rank))
    if (None if found is None else (found.slots, found.rank)) != (None if asked is None else (asked.slots, asked.rank)):
        wanted, runs = ("no adapters" if one is None else f"{one.slots} adapters of rank {one.rank}" for one in (asked, found))
        message = f"the problem asks for {wanted}, the command makes room for {runs}"
        faults.append(warning("SETTING_DIFFERS", message, "start it as the problem asks, or change `lora` in the problem", place))
    return found
