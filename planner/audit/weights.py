"""Weights of one rank, stage by stage, in closed form per layer kind and in exact fractions.

The auditor's own count. A layer's matrices are summed on paper for each kind of mixer and feed-forward part, split into what tensor
parallelism divides, what every rank repeats, and what the expert group shares out:

    attention (H heads, K kv heads, h wide)   d h (H (1 + gate) + 2 max(K, t)) / t + H h d / t
    MLA (ranks r_q, r_kv)                     d (r_q + r_kv + rope) + H/t (r_q h + r_kv (nope + v) + v d)
    dense MLP of width f                      3 d f / t  (2 when not gated)
    experts                                   3 d f_e E / (t x dp): over e groups, each split over (t x dp) / e ranks
    embedding, head                           V d / t on the first and on the last stage, one table when tied on one stage
    over compressed tokens                    `audit.compressed`; n mixed residual streams add (n^2 + 2 n) n d a part and n^2 d at the head

Engines add to that, as the catalog's facts say: 16-bit copies of MLA's up projection, H/t r_kv (nope + v), or its products with the query's and the output's,
H/t r_kv (r_q + d); kernels that pad the width and the inputs of every expert's shard to multiples; tables of rotary positions; and an allocator that rounds large
matrices up to its segments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise

from planner.audit.allocations import layer_rounding
from planner.audit.compressed import compressed_elements
from planner.catalog.architecture import Attention, AttentionKind, FeedForward, LayerKind, ModelArchitecture, Quantization, RecurrentState
from planner.catalog.dtypes import bytes_per_element
from planner.catalog.engines import Engine, KernelPadding
from planner.cost.setting import Precision
from planner.plan.shape import Degrees

FIXED = {"single": Fraction(4), "index": Fraction(8)}  # bytes of an element kept in 32 bits, and of an index
VOCABULARY_PADDING = 64  # rows an engine pads the vocabulary to before it is cut over ranks
Elements = dict[str, Fraction]


@dataclass(frozen=True)
class Storage:
    """Bytes an element takes in the checkpoint, by tensor family: quantized with its scales, or kept in the model's own dtype.

    `quantized` and `kept` are bytes per element [B]; `kept_high` names the families that stay in the model's own dtype, `apart` gives those of a scheme of their own.
    """

    quantized: Fraction
    kept: Fraction
    kept_high: frozenset[str]
    apart: Mapping[str, Fraction] = field(default_factory=dict)

    def per_element(self, family: str) -> Fraction:
        """Bytes one element of `family` takes, its share of the scales included [B]; families in 32 and 64 bits are so in every precision."""
        if family in FIXED:
            return FIXED[family]
        return self.kept if family in self.kept_high else self.apart.get(family, self.quantized)

    def also_keeping(self, families: tuple[str, ...]) -> Storage:
        """The same storage in layers that keep further families in the model's own dtype."""
        return replace(self, kept_high=self.kept_high | set(families)) if families else self


def storage(architecture: ModelArchitecture, precision: Precision) -> Storage:
    """How the weights of `architecture` are stored under `precision`; a block of r x c elements shares one scale."""
    scheme = precision.quantization
    if scheme is None:
        size = Fraction(bytes_per_element(precision.weights))
        return Storage(size, size, frozenset())
    own = Fraction(bytes_per_element(architecture.dtype))
    apart = {family: _scaled(other) for family, other in scheme.apart}
    return Storage(_scaled(scheme), own, frozenset(scheme.kept_high) | {"norm", "bias", "high"}, apart)


def _scaled(scheme: Quantization) -> Fraction:
    """Bytes of an element and its share of the scales [B]."""
    size, scale = Fraction(bytes_per_element(scheme.weights)), Fraction(scheme.scale_bytes)
    if scheme.block is not None:
        return size + scale / (scheme.block[0] * scheme.block[1])
    return size if scheme.group is None else size + scale / scheme.group


def indexer_elements(attention: Attention, hidden: int) -> int:
    """Elements of a sparse-attention indexer, which every rank holds whole; 0 without one."""
    if not attention.index_heads or not attention.index_head_dim:
        return 0
    query = (attention.q_lora_rank or hidden) * attention.index_heads * attention.index_head_dim
    return query + hidden * (attention.index_head_dim + attention.index_heads)


def recurrent_elements(state: RecurrentState, hidden: int, tensor_parallel: int) -> Fraction:
    """Elements of a recurrent mixer on one rank: divided by t, but groups fewer than t are repeated."""
    grouped = 2 * state.groups * state.state_size * hidden
    repeated = Fraction(-(-state.groups // tensor_parallel), state.groups) if state.groups else Fraction(0)
    return Fraction(state.parameters - grouped, tensor_parallel) + grouped * repeated


def attention_elements(attention: Attention, hidden: int, degrees: Degrees) -> Elements:
    """Elements of one attention mixer on one rank; kv heads fewer than the tensor-parallel degree are repeated."""
    tensor_parallel = degrees.tensor_parallel
    heads = Fraction(attention.heads, tensor_parallel)
    if attention.kind is AttentionKind.COMPRESSED:
        return compressed_elements(attention, hidden, tensor_parallel)
    if attention.kind is AttentionKind.MLA:
        latent = attention.kv_lora_rank or 0
        rope = attention.rope_head_dim or 0
        nope = attention.head_dim - rope if attention.nope_head_dim is None else attention.nope_head_dim
        query_rank = attention.q_lora_rank or 0
        query_input = query_rank or hidden
        repeated = Fraction(hidden * (query_rank + latent + rope))
        outwards = attention.value_head_dim * hidden * (2 if attention.output_gate else 1)  # the output projection, and a gate as large
        divided = heads * (query_input * (nope + rope) + latent * (nope + attention.value_head_dim) + outwards)
        return {"attention": repeated + divided + indexer_elements(attention, hidden)}
    kv_heads = Fraction(max(attention.kv_heads, tensor_parallel), tensor_parallel)
    query_width = heads * attention.head_dim * (2 if attention.output_gate else 1)
    kv_width = kv_heads * (attention.head_dim + attention.value_head_dim)
    matrices = hidden * (query_width + kv_width + heads * attention.value_head_dim)
    matrices += indexer_elements(attention, hidden)
    return {"attention": matrices, "bias": query_width + kv_width if attention.bias else Fraction(0)}


def padded(size: Fraction, multiple: int) -> Fraction:
    """Size rounded up to a multiple; multiples of 1 leave it as it is."""
    return size if multiple <= 1 else Fraction(-(-size // multiple) * multiple)


def feed_forward_elements(part: FeedForward, hidden: int, degrees: Degrees, padding: KernelPadding) -> Elements:
    """Elements of one feed-forward part on one rank: dense, routed experts, shared experts, router."""
    matrices = 3 if part.gated else 2
    inner = part.latent_size or hidden
    held = -(-part.experts // degrees.expert_parallel)  # experts on one of the e expert ranks
    cut = Fraction(degrees.stage_gpus, degrees.expert_parallel)  # ranks that split one expert
    latent = 2 * hidden * part.latent_size if part.latent_size and part.experts else 0  # into and out of the experts' space, on every rank
    narrow, wide = padded(part.expert_width / cut, padding.expert_width), padded(Fraction(inner), padding.expert_inputs)
    into, out_of = narrow * padded(wide, padding.contracted), padded(narrow, padding.contracted) * wide
    return {
        "mlp": Fraction(matrices * hidden * part.width, degrees.tensor_parallel) + latent,
        "expert": held * ((matrices - 1) * into + out_of),
        "shared_expert": Fraction(matrices * hidden * part.shared_width, degrees.tensor_parallel),
        "router": Fraction(hidden * part.experts),
        "index": Fraction(part.routing_table * part.experts_per_token),
    }


def absorbed_elements(attention: Attention | None, degrees: Degrees) -> Fraction:
    """16-bit elements of the up projections that latent attention decodes with, kept beside the checkpoint's own."""
    if attention is None or attention.kind is not AttentionKind.MLA:
        return Fraction(0)
    nope = attention.head_dim - (attention.rope_head_dim or 0) if attention.nope_head_dim is None else attention.nope_head_dim
    return Fraction(attention.heads * (nope + attention.value_head_dim) * (attention.kv_lora_rank or 0), degrees.tensor_parallel)


def product_bytes(attention: Attention | None, hidden: int, degrees: Degrees) -> Fraction:
    """Bytes of latent attention's up projections multiplied into the query's and the output's in 8 bits, with the query's rotary part in 16 bits [B]."""
    if attention is None or attention.kind is not AttentionKind.MLA:
        return Fraction(0)
    query = attention.q_lora_rank or hidden
    per_head = (attention.kv_lora_rank or 0) * (query + hidden) + 2 * query * (attention.rope_head_dim or 0)
    return Fraction(attention.heads * per_head, degrees.tensor_parallel)


def position_bytes(architecture: ModelArchitecture, engine: Engine) -> Fraction:
    """Bytes of the tables of rotary positions, one for each size of head, on every rank [B]."""
    sizes = set()
    for kind in architecture.layer_kinds:
        if kind.attention is not None:
            latent = kind.attention.kind in {AttentionKind.MLA, AttentionKind.COMPRESSED}
            size = (kind.attention.rope_head_dim if latent else None) or kind.attention.head_dim
            sizes.add((size, bool(kind.attention.compress_ratio)))  # compressed tokens are turned by a base of their own
    return architecture.max_position * sum(size for size, _ in sizes) * Fraction(engine.position_table_bytes)


def layer_elements(kind: LayerKind, hidden: int, degrees: Degrees, padding: KernelPadding) -> Elements:
    """Elements of one layer of `kind` on one rank, by tensor family."""
    elements: Elements = {"norm": Fraction(2 * hidden)}
    streams = kind.mixed_streams
    connections = (2 * streams + streams**2) * streams * hidden if streams > 1 else 0
    if kind.attention is not None:
        elements |= attention_elements(kind.attention, hidden, degrees)
    if kind.recurrent is not None:
        elements["recurrent"] = recurrent_elements(kind.recurrent, hidden, degrees.tensor_parallel)
    if kind.feed_forward is not None:
        elements |= feed_forward_elements(kind.feed_forward, hidden, degrees, padding)
    parts = sum(part is not None for part in (kind.attention, kind.recurrent, kind.feed_forward))
    elements["single"] = elements.get("single", Fraction(0)) + parts * connections
    return elements


def stage_kinds(architecture: ModelArchitecture, partition: tuple[int, ...]) -> list[Counter[int]]:
    """How many layers of each kind every pipeline stage holds."""
    return [Counter(architecture.layer_sequence[first:end]) for first, end in pairwise(accumulate(partition, initial=0))]


def vision_bytes(architecture: ModelArchitecture, engine: Engine, tensor_parallel: int) -> Fraction:
    """Bytes of the vision tower on one rank [B]: whole, or divided where the engine divides it and its heads allow; 0 when unknown."""
    tower = architecture.vision
    if tower is None or tower.parameters is None:
        return Fraction(0)
    divides = engine.vision.startswith("sharded") and tower.heads is not None and tower.heads % tensor_parallel == 0
    return tower.parameters * Fraction(bytes_per_element(architecture.dtype)) / (tensor_parallel if divides else 1)


def weights_by_stage(
    architecture: ModelArchitecture, precision: Precision, engine: Engine, degrees: Degrees, partition: tuple[int, ...]
) -> list[Fraction]:
    """Weights one rank of every stage holds [B], first stage first; a vision tower stands on every rank."""
    store, hidden = storage(architecture, precision), architecture.hidden_size
    padding = engine.kernel_padding(precision.of("expert"), None if precision.quantization is None else precision.quantization.of("expert"))

    def stored(elements: Elements, families: tuple[str, ...] = ()) -> Fraction:
        kept = store.also_keeping(families)
        return sum((count * kept.per_element(family) for family, count in elements.items()), Fraction(0))

    per_kind = []
    for kind in architecture.layer_kinds:
        elements = layer_elements(kind, hidden, degrees, padding)
        held = stored(elements, kind.kept_high)
        if engine.latent_products and precision.weights == "fp8":
            held += product_bytes(kind.attention, hidden, degrees)
        elif engine.absorbs_latent_up_projection:
            held += 2 * absorbed_elements(kind.attention, degrees)
        if engine.rounds_allocations:
            held += layer_rounding(kind, hidden, degrees, elements, store.also_keeping(kind.kept_high))
        per_kind.append(held)
    rows = -(-architecture.vocab_size // VOCABULARY_PADDING) * VOCABULARY_PADDING
    table = Fraction(rows * architecture.hidden_size, degrees.tensor_parallel)
    tower = vision_bytes(architecture, engine, degrees.tensor_parallel) + position_bytes(architecture, engine)
    totals = [sum((layers * per_kind[kind] for kind, layers in kinds.items()), tower) for kinds in stage_kinds(architecture, partition)]
    totals[0] += stored({"embedding": table})
    if len(totals) > 1 or not architecture.tied_embeddings:
        totals[-1] += stored({"head": table})
    if architecture.mixed_streams > 1:
        totals[-1] += stored({"single": Fraction(architecture.mixed_streams**2 * hidden)})
    return totals
