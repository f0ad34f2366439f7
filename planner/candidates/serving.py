"""What a plan says so that it can be started: the engine's limits it was counted with, the checkpoint it serves, the nodes it uses."""

from __future__ import annotations

from collections.abc import Iterable

from planner.candidates.settings import PoolSetting
from planner.catalog.architecture import ModelArchitecture
from planner.catalog.models import model, published_checkpoint
from planner.diagnostics import PlannerError
from planner.plan.serving import AdaptersDocument, CheckpointDocument, LimitsDocument, NodeDocument, SpeculationDocument
from planner.problem.load import LoadedProblem
from planner.topology.fabric import Fabric
from planner.topology.inventory import FREE


def limits_document(setting: PoolSetting) -> LimitsDocument:
    """Limits that memory and times of a replica were counted with; `max_num_seqs` is the engine's own limit of one data-parallel rank."""
    inner = setting.setting
    return LimitsDocument(
        max_model_len=inner.max_model_len,
        max_batched_tokens=inner.max_batched_tokens,
        max_num_seqs=inner.max_num_seqs or setting.sequences_per_rank,
        gpu_memory_utilization=inner.gpu_memory_utilization,
    )


def checkpoint_document(loaded: LoadedProblem, index: int) -> CheckpointDocument:
    """Checkpoint of deployment `index`: a model of the catalog by its Hugging Face id, a config file of one's own by its formats only."""
    architecture = loaded.architectures[index]
    scheme = architecture.quantization
    return CheckpointDocument(
        hugging_face=_published(loaded.problem.deployments[index].model, architecture),
        weights=architecture.dtype if scheme is None else scheme.weights,
        method="" if scheme is None else scheme.method,
        dtype=architecture.dtype,
        kv_cache=None if scheme is None else scheme.kv_cache,
        context=max(architecture.max_position, 0),
        experts=max((kind.feed_forward.experts for kind in architecture.layer_kinds if kind.feed_forward is not None), default=0),
    )


def _published(asked: str, architecture: ModelArchitecture) -> str | None:
    """Hugging Face id of the weights, None where what was read is no model of the catalog (a folder may have the name of one)."""
    try:
        return published_checkpoint(asked) if model(asked).source == architecture.source else None
    except PlannerError:
        return None


def speculation_document(loaded: LoadedProblem, index: int) -> SpeculationDocument | None:
    """What proposes tokens in deployment `index`, None where nothing does."""
    asked, draft = loaded.problem.deployments[index].speculative, loaded.architectures[index].draft
    if asked is None or (draft is None and asked.method is None):
        return None
    named = None if draft is None or draft.shares_ends else asked.model
    return SpeculationDocument(
        method="ngram" if draft is None else "own-layers" if draft.shares_ends else "draft",
        model=named,
        hugging_face=None if named is None or draft is None else _published(named, draft.architecture),
        tokens=asked.tokens,
        alone=named is not None and asked.tp == 1,
    )


def adapters_document(loaded: LoadedProblem, index: int) -> AdaptersDocument | None:
    """Adapters that deployment `index` keeps room for, None where it keeps none."""
    asked = loaded.problem.deployments[index].lora
    return None if asked is None else AdaptersDocument(slots=asked.slots, rank=asked.rank)


def request_tokens(loaded: LoadedProblem, index: int) -> int:
    """Tokens of the longest request of the workload, prompt and output."""
    return loaded.problem.deployments[index].workload.longest


def node_documents(fabric: Fabric, names: Iterable[str]) -> tuple[NodeDocument, ...]:
    """Nodes of these names, each once, in the order of the topology; names of none are left out."""
    inventory = fabric.inventory
    rows = sorted({inventory.index[name] for name in names if name in inventory.index})
    found = []
    for row in rows:
        scope = int(inventory.scope[row])
        leaves = inventory.leaf_names[int(inventory.leaf[row])]
        state = inventory.state[int(inventory.first_gpu[row]) : int(inventory.first_gpu[row + 1])].tolist()
        found.append(
            NodeDocument(
                name=inventory.names[row],
                gpu=fabric.pool(inventory.names[row]).gpu.name,
                gpus=len(state),
                taken=tuple(index for index, one in enumerate(state) if one != FREE),
                domain=fabric.scopes.name(scope),
                domain_nodes=len(fabric.scopes.rows(scope)),
                leaf=leaves[0] if len(leaves) == 1 else "",
            )
        )
    return tuple(found)
