"""What a plan says so that it can be started is so: the engine's limits, the checkpoint and what is served beside it, the longest request, and the nodes.

A key that is left out claims nothing: `planner launch` refuses a plan without it. Speculation and adapters that are left out are not started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from planner.audit.case import UNKNOWN, Case
from planner.audit.findings import deployment_place, differs, finding
from planner.audit.question import engine_of
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.gpus import Gpu
from planner.catalog.models import model
from planner.diagnostics import Diagnostic, PlannerError
from planner.plan.document import DeploymentDocument
from planner.plan.serving import AdaptersDocument, CheckpointDocument, LimitsDocument, NodeDocument, SpeculationDocument
from planner.problem.documents import Deployment

SHARE_TOLERANCE = 1e-9


def check(case: Case) -> Iterator[Diagnostic]:
    """Yield one diagnostic for every limit, property of a checkpoint, length and node that is told otherwise than it is."""
    for answer in case.plan.deployments:
        index = case.asked.get(answer.name)
        if index is not None:
            yield from _deployment(case.problem.deployments[index], case.architectures[index], answer)
    yield from _limits(case)
    yield from _nodes(case)


def longest_request(question: Deployment) -> int:
    """Tokens of the longest request, prompt and output, over all buckets where there are any [tokens]."""
    load = question.workload
    if load.buckets:
        return max(bucket.prompt_tokens + bucket.output_tokens for bucket in load.buckets)
    return load.prompt_tokens + load.output_tokens


def _deployment(asked: Deployment, architecture: ModelArchitecture, answer: DeploymentDocument) -> Iterator[Diagnostic]:
    place, longest = deployment_place(answer.name), longest_request(asked)
    if answer.request_tokens is not None and answer.request_tokens != longest:
        message = f"a request is said to need {answer.request_tokens} tokens, the longest of the workload needs {longest}"
        yield finding("REQUEST_TOKENS_MISMATCH", place, message, f"write {longest}")
    yield from _companions(asked, architecture, answer)
    if answer.checkpoint is None:
        return
    for name, value in _checkpoint(asked.model, architecture):
        said = getattr(answer.checkpoint, name)
        if said != value:
            message = f"{name} of the checkpoint is said to be {said!r}, that of {architecture.name} is {value!r}"
            yield finding("CHECKPOINT_MISMATCH", place, message, f"write {value!r}")


def _companions(asked: Deployment, architecture: ModelArchitecture, answer: DeploymentDocument) -> Iterator[Diagnostic]:
    """Speculation and adapters of the plan are those of the question."""
    wanted: dict[str, SpeculationDocument | AdaptersDocument | None] = {"speculation": _speculation(asked, architecture), "adapters": None}
    if asked.lora is not None:
        wanted["adapters"] = AdaptersDocument(slots=asked.lora.slots, rank=asked.lora.rank)
    for name, right in wanted.items():
        said = getattr(answer, name)
        if said != right:
            message = f"{name} of the plan: {_told(said)}; the problem asks for {_told(right)}"
            yield finding(
                "COMPANION_MISMATCH", deployment_place(answer.name), message, "solve again: what is started is what the plan says"
            )


def _told(part: SpeculationDocument | AdaptersDocument | None) -> str:
    return "none" if part is None else ", ".join(f"{name} {value}" for name, value in part if value is not None)


def _speculation(asked: Deployment, architecture: ModelArchitecture) -> SpeculationDocument | None:
    question, draft = asked.speculative, architecture.draft
    if question is None:
        return None
    if question.method == "ngram":
        return SpeculationDocument(method="ngram", model=None, hugging_face=None, tokens=question.tokens, alone=False)
    if draft is None:
        return None
    if question.model is None:
        return SpeculationDocument(method="own-layers", model=None, hugging_face=None, tokens=question.tokens, alone=False)
    published = _published(question.model, draft.architecture.source)
    return SpeculationDocument(
        method="draft", model=question.model, hugging_face=published, tokens=question.tokens, alone=question.tp is not None
    )


def _checkpoint(asked: str, architecture: ModelArchitecture) -> CheckpointDocument:
    """Checkpoint of a model by its own config, published where that config is the catalog's."""
    scheme = architecture.quantization
    experts = [kind.feed_forward.experts for kind, _ in architecture.kind_counts() if kind.feed_forward is not None]
    return CheckpointDocument(
        hugging_face=_published(asked, architecture.source),
        weights=scheme.weights if scheme is not None else architecture.dtype,
        method=scheme.method if scheme is not None else "",
        dtype=architecture.dtype,
        kv_cache=scheme.kv_cache if scheme is not None else None,
        context=max(0, architecture.max_position),
        experts=max(experts, default=0),
    )


def _published(asked: str, source: str) -> str | None:
    try:
        known = model(asked)
    except PlannerError:
        return None
    # A folder may have the name of a model of the catalog; what was read says which of them it is.
    if known.source != source:
        return None
    return asked if asked.count("/") == 1 else source.split(maxsplit=1)[0]


def _limits(case: Case) -> Iterator[Diagnostic]:
    wanted: dict[tuple[int, int], LimitsDocument] = {}
    # Replicas of one shape mostly share the object, which is compared once; the plan keeps it, so no other takes its identity.
    compared: set[tuple[int, int, int]] = set()
    for row, (asked, pool) in enumerate(zip(case.row_asked.tolist(), case.row_pool.tolist(), strict=True)):
        said = case.rows.documents[row].limits
        if said is None or UNKNOWN in {asked, pool} or (id(said), asked, pool) in compared:
            continue
        if (asked, pool) not in wanted:
            wanted[asked, pool] = _started_with(case.problem.deployments[asked], case.fabric.pools[pool].gpu)
        right = wanted[asked, pool]
        if said == right:
            compared.add((id(said), asked, pool))
            continue
        for name, value in right:
            claimed = getattr(said, name)
            if differs(claimed, value, SHARE_TOLERANCE) if isinstance(value, float) else claimed != value:
                message = f"{name} {claimed} is not what memory and times are counted with, but {value}"
                yield finding("LIMITS_MISMATCH", case.row_place(row), message, f"write {value}")


def _started_with(question: Deployment, gpu: Gpu) -> LimitsDocument:
    """Limits that the engine is to be started with on a GPU: as asked, else its published defaults there."""
    rules, asked = engine_of(question), question.memory
    length = longest_request(question) if asked is None or asked.max_model_len is None else asked.max_model_len
    chunk = None if asked is None else asked.max_batched_tokens
    sequences = None if asked is None else asked.max_num_seqs
    share = None if asked is None else asked.gpu_memory_utilization
    return LimitsDocument(
        max_model_len=length,
        max_batched_tokens=rules.batched_tokens(gpu, length) if chunk is None else chunk,
        max_num_seqs=rules.sequences(gpu) if sequences is None else sequences,
        gpu_memory_utilization=rules.gpu_memory_utilization if share is None else share,
    )


def _nodes(case: Case) -> Iterator[Diagnostic]:
    shown = case.plan.nodes
    if not shown:
        return
    rows = case.fabric.inventory.index
    used = {int(row) for row in np.unique(case.ranks.node) if row >= 0}
    in_scope = np.bincount(case.fabric.inventory.scope)
    times = Counter(entry.name for entry in shown)
    for index, entry in enumerate(shown):
        row = rows.get(entry.name)
        if row is None:
            faults = ["the topology has no such node"]
        elif row not in used:
            faults = ["no replica is on it"]
        elif times[entry.name] > 1:
            faults = [f"it is listed {times[entry.name]} times"]
        else:
            right = _node(case, row, int(in_scope[case.fabric.inventory.scope[row]]))
            said = [(name, getattr(entry, name), value) for name, value in right]
            faults = [f"{name} is said to be {claimed!r}, the topology has {value!r}" for name, claimed, value in said if claimed != value]
        for fault in faults:
            yield finding(
                "NODE_MISMATCH", f"nodes.{index}", f"{entry.name}: {fault}", "list the nodes of the plan as the topology has them"
            )
    missing = sorted(used - {rows[name] for name in times if name in rows})
    if missing:
        message = f"{case.fabric.inventory.names[missing[0]]} and {len(missing) - 1} more nodes of replicas are not listed"
        yield finding("NODE_MISMATCH", "nodes", message, "list every node that a replica is on")


def _node(case: Case, row: int, domain_nodes: int) -> NodeDocument:
    """One node as the columns of all GPUs have it."""
    sites, inventory = case.sites, case.fabric.inventory
    first, end = int(sites.first[row]), int(sites.first[row + 1])
    leaves = inventory.leaf_names[int(inventory.leaf[row])]
    return NodeDocument(
        name=inventory.names[row],
        gpu=case.fabric.pools[int(sites.pool[first])].gpu.name,
        gpus=end - first,
        taken=tuple(np.flatnonzero(sites.state[first:end]).tolist()),
        domain=sites.scope_names[int(sites.scope[first])],
        domain_nodes=domain_nodes,
        leaf=leaves[0] if len(leaves) == 1 else "",
    )
