"""What a model is made of, as far as memory, legality and time depend on it.

A `ModelArchitecture` is read from a Hugging Face `config.json` (`catalog.hf_config`) or from a catalog entry.
Layers may differ from each other (dense before MoE, sliding beside full attention, Mamba beside attention), so
the distinct kinds are listed once in `layer_kinds` and `layer_sequence` says which kind each layer is, in order.
All sizes are counts of elements, never bytes: bytes depend on the precision.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class AttentionKind(StrEnum):
    """How a layer's attention holds its context."""

    FULL = "full"  # every earlier token: MHA, GQA, MQA by the number of kv heads
    SLIDING = "sliding"  # the last `window` tokens
    CHUNKED = "chunked"  # the tokens of the current chunk of `window` tokens
    CROSS = "cross"  # the tokens of the request's images, computed once, and none of the text's
    MLA = "mla"  # one latent of kv_lora_rank + rope_head_dim a token, shared by all heads
    COMPRESSED = "compressed"  # the last `window` tokens, and one entry for every `compress_ratio` tokens before


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax attention of one layer.

    For MLA `head_dim` is nope_head_dim + rope_head_dim, `kv_heads` equals 1 latent for capacity purposes
    and the ranks are set. `index_*` describe a sparse-attention indexer (DeepSeek V3.2, GLM-5), whose key cache is
    `index_head_dim` elements a token, not divided by tensor parallelism. Cross-attention holds `image_tokens` tokens of each of the `images` that a request brings.

    COMPRESSED (DeepSeek-V4) keeps one vector of `head_dim` as key and value at once, shared by all heads, of each of the last `window` tokens and of every
    `compress_ratio` tokens (0 = the window alone). Where there is an indexer it keeps a key of `index_head_dim` for every such entry and picks `index_topk` of
    them. Its output goes through `output_groups` matrices of rank `output_lora_rank` before the last one.
    """

    kind: AttentionKind
    heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int
    window: int | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    nope_head_dim: int | None = None
    rope_head_dim: int | None = None
    index_heads: int | None = None
    index_head_dim: int | None = None
    index_topk: int | None = None
    bias: bool = False
    output_gate: bool = False  # the q projection is twice as wide (Qwen3.5); MLA has a projection of heads x value_head_dim more (Kimi-K3)
    image_tokens: int = 0
    images: int = 1
    compress_ratio: int = 0
    output_groups: int | None = None
    output_lora_rank: int | None = None

    @property
    def cross_tokens(self) -> int:
        """Image tokens of one request that cross-attention holds [tokens]."""
        return self.image_tokens * self.images

    @property
    def overlaps(self) -> bool:
        """Whether an entry is made of the tokens of two groups, the one it stands for and the one before: those that an indexer picks from."""
        return self.compress_ratio > 0 and self.index_heads is not None


@dataclass(frozen=True, slots=True)
class RecurrentState:
    """A mixer with a constant state per sequence: Mamba-2 / SSM or gated linear attention.

    `state_elements` is heads x head_dim x state size of one layer; `conv_elements` the short convolution's cache.
    Both are divided by tensor parallelism along `heads`; `groups` (B and C groups, or key heads) must divide or be replicated.
    """

    kind: str  # "mamba2" | "gated_delta" | "lightning" | ...
    heads: int
    head_dim: int
    state_size: int
    groups: int
    conv_kernel: int
    state_elements: int
    conv_elements: int
    parameters: int  # weights of the mixer (projections, convolution, norms) in this layer


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Dense MLP or mixture of experts of one layer.

    Dense: `width` > 0 and experts = 0. MoE: `experts` routed experts of `expert_width`, `experts_per_token` active,
    plus shared experts of total width `shared_width` (0 = none). `gated` = three matrices (gate, up, down), else two.
    `latent_size`: experts work in a down-projected space of that size (Nemotron-3), else None.
    A layer may have both (Gemma-4 runs a dense MLP beside the experts): then width and experts are both > 0.
    `routing_table`: tokens of the vocabulary whose experts are looked up in a table instead of being chosen by a score (0 = none).
    """

    width: int = 0
    gated: bool = True
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    shared_width: int = 0
    latent_size: int | None = None
    bias: bool = False
    routing_table: int = 0


@dataclass(frozen=True, slots=True)
class LayerKind:
    """One kind of layer: a token mixer (attention or recurrent, or none) and a feed-forward part (or none).

    `kept_high` names tensor families that these layers, unlike others of a quantized checkpoint, keep in the model's own dtype.
    `mixed_streams` hidden states of a token run beside each other and are mixed by matrices of the layer's own (hyper-connections), else 1.
    """

    attention: Attention | None = None
    recurrent: RecurrentState | None = None
    feed_forward: FeedForward | None = None
    kept_high: tuple[str, ...] = ()
    mixed_streams: int = 1


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the checkpoint's linear weights are stored.

    `weights` is a dtype name of `catalog.dtypes`. `block` is the scale block (rows, columns) of block-FP8, `group` the group
    size along the input dimension of AWQ / GPTQ / MXFP4 / NVFP4; None = per tensor or per channel. `scale_bytes` is the size of
    one scale. `kept_high` names tensor families kept in the model's own dtype (`embedding`, `head`, `router`, `attention`, ...).
    `apart` gives families that are stored in a scheme of their own (the routed experts of DeepSeek-V4 in MXFP4 beside FP8).
    """

    method: str  # "fp8", "awq", "gptq", "compressed-tensors", "modelopt", "mxfp4", "nvfp4", ...
    weights: str
    block: tuple[int, int] | None = None
    group: int | None = None
    scale_bytes: float = 0.0
    kept_high: tuple[str, ...] = ("embedding", "head", "router", "norm")
    kv_cache: str | None = None
    apart: tuple[tuple[str, Quantization], ...] = ()

    def of(self, family: str) -> Quantization:
        """Scheme of one tensor family: its own where it has one, else this."""
        return next((scheme for name, scheme in self.apart if name == family), self)

    @property
    def formats(self) -> tuple[str, ...]:
        """Number formats of all quantized weights, the main one first."""
        return tuple(dict.fromkeys((self.weights, *(scheme.weights for _, scheme in self.apart))))


@dataclass(frozen=True, slots=True)
class VisionTower:
    """An image encoder beside the language model; replicated on every rank unless the engine shards it."""

    heads: int | None
    parameters: int | None  # None = the config does not say: told as a warning, never guessed silently


@dataclass(frozen=True, slots=True)
class Adapters:
    """Low-rank adapters that an engine keeps room for beside the weights: `slots` of at most `rank`, in 16 bits, on every dense matrix of the layers."""

    slots: int
    rank: int


@dataclass(frozen=True)
class Draft:
    """What proposes tokens in speculative decoding: a model of its own, or the prediction layers of the checkpoint (`shares_ends`: embedding and head are the model's).

    `tokens` are proposed at once. A draft that stands `alone` is whole on every rank, otherwise it is cut like the model it serves.
    """

    architecture: ModelArchitecture
    tokens: int
    alone: bool = False
    shares_ends: bool = False


@dataclass(frozen=True, slots=True)
class Speculation:
    """What steps of speculative decoding yield: of `tokens` proposed at once, each is accepted with probability `acceptance` when those before it were."""

    tokens: int
    acceptance: float

    @property
    def queries(self) -> float:
        """Tokens of a sequence that one step verifies: those proposed, and the one it would have taken anyway."""
        return self.tokens + 1.0

    @property
    def yielded(self) -> float:
        """Tokens that a sequence gains in a step on average, 1 + a + ... + a^k = (1 - a^(k + 1)) / (1 - a)."""
        return sum(self.acceptance**position for position in range(self.tokens + 1))


@dataclass(frozen=True)
class ModelArchitecture:
    """A language model as the planner sees it.

    `dtype` is the checkpoint's own (un-quantized) dtype. `max_position` bounds the context. `source` says where the facts come from. `draft` and `adapters` are what a
    deployment serves beside the model, `speculation` what it expects of proposed tokens (None: times are those without).
    """

    name: str
    family: str  # the Hugging Face model_type
    hidden_size: int
    vocab_size: int
    layer_kinds: tuple[LayerKind, ...]
    layer_sequence: tuple[int, ...]
    tied_embeddings: bool
    max_position: int
    dtype: str
    source: str
    quantization: Quantization | None = None
    vision: VisionTower | None = None
    residual_streams: int = 1  # hidden states a token carries from layer to layer: more with residuals over blocks of layers (Kimi-K3) and with hyper-connections
    nextn_layers: int = 0  # multi-token-prediction layers shipped with the checkpoint, loaded only with speculative decoding
    notes: tuple[str, ...] = field(default=())
    draft: Draft | None = None
    adapters: Adapters | None = None
    speculation: Speculation | None = None
    prediction_layer: LayerKind | None = None  # None = prediction layers are like the last layer

    @property
    def looks_at_images(self) -> bool:
        """Whether layers attend to images beside the text (cross-attention)."""
        return any(kind.attention is not None and kind.attention.kind is AttentionKind.CROSS for kind in self.layer_kinds)

    @property
    def layers(self) -> int:
        """Number of transformer layers L."""
        return len(self.layer_sequence)

    @property
    def mixed_streams(self) -> int:
        """Hidden states of a token that layers mix by matrices of their own."""
        return max((kind.mixed_streams for kind in self.layer_kinds), default=1)

    @property
    def compressed(self) -> bool:
        """Whether some layer attends to compressed tokens."""
        return any(kind.attention is not None and kind.attention.kind is AttentionKind.COMPRESSED for kind in self.layer_kinds)

    def layer(self, index: int) -> LayerKind:
        """Kind of the layer at `index`, counted from 0."""
        return self.layer_kinds[self.layer_sequence[index]]

    def kind_counts(self) -> tuple[tuple[LayerKind, int], ...]:
        """Distinct layer kinds with how many layers are of each, in order of first appearance in `layer_kinds`."""
        counts = Counter(self.layer_sequence)
        return tuple((kind, counts[index]) for index, kind in enumerate(self.layer_kinds) if counts[index])
