"""Mixers with a constant state per sequence: Mamba-1 and -2, gated delta nets, Kimi delta attention."""

from __future__ import annotations

from planner.catalog.architecture import RecurrentState
from planner.catalog.hf_config.fields import Fields


def mamba2(fields: Fields, hidden: int) -> RecurrentState:
    """Read a Mamba-2 mixer (arXiv 2405.21060).

    in_proj makes z and x (heads x head_dim each), B and C (groups x state each) and dt (heads); the short convolution runs over x, B and C.
    """
    head_dim = fields.get("mamba_head_dim", "mamba_d_head", "head_dim", default=64)
    expand = fields.check("mamba_expand", "expand")
    heads = fields.check("mamba_num_heads", "mamba_n_heads", "num_heads")
    if heads is None:
        if expand is None:
            fields.lack("mamba_num_heads")
            fields.stand_ins.add("mamba_num_heads")
        heads = max(1, (expand or 1) * hidden // head_dim)
    state = fields.need("ssm_state_size", "mamba_d_state", "state_size")
    groups = fields.get("n_groups", "mamba_n_groups", default=8 if fields.has("mamba_num_heads") else 1)
    kernel = fields.get("conv_kernel", "mamba_d_conv", default=4)
    if heads % groups:
        fields.clash("n_groups", f"({groups}) does not divide the {heads} Mamba heads", "mamba_num_heads", "ssm_state_size")
    inner = heads * head_dim
    convolved = inner + 2 * groups * state
    parameters = hidden * (2 * inner + 2 * groups * state + heads) + inner * hidden + convolved * (kernel + 1) + 3 * heads + inner
    return RecurrentState(
        kind="mamba2",
        heads=heads,
        head_dim=head_dim,
        state_size=state,
        groups=groups,
        conv_kernel=kernel,
        state_elements=inner * state,
        conv_elements=convolved * (kernel - 1),
        parameters=parameters,
    )


def mamba1(fields: Fields, hidden: int) -> RecurrentState:
    """Read a Mamba-1 mixer as Jamba uses it (arXiv 2403.19887): every inner channel is a head of its own."""
    inner = fields.get("mamba_expand", default=2) * hidden
    state = fields.get("mamba_d_state", default=16)
    kernel = fields.get("mamba_d_conv", default=4)
    rank = fields.check("mamba_dt_rank") if fields.config.get("mamba_dt_rank") != "auto" else None
    rank = rank or -(-hidden // 16)
    projections = hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden
    return RecurrentState(
        kind="mamba1",
        heads=inner,
        head_dim=1,
        state_size=state,
        groups=1,
        conv_kernel=kernel,
        state_elements=inner * state,
        conv_elements=inner * (kernel - 1),
        parameters=projections + inner * (kernel + 1) + inner * state + 2 * inner + rank + 2 * state,
    )


def gated_delta(fields: Fields, hidden: int) -> RecurrentState:
    """Read the gated delta net of Qwen3-Next and Qwen3.5 (arXiv 2412.06464): value heads hold key size x value size each, keys come in groups."""
    key_heads = fields.need("linear_num_key_heads")
    heads = fields.need("linear_num_value_heads")
    key_dim = fields.need("linear_key_head_dim")
    value_dim = fields.need("linear_value_head_dim")
    kernel = fields.get("linear_conv_kernel_dim", default=4)
    if heads % key_heads:
        fields.clash("linear_num_key_heads", f"({key_heads}) does not divide the {heads} value heads", "linear_num_value_heads")
    keys, values = key_heads * key_dim, heads * value_dim
    convolved = 2 * keys + values
    return RecurrentState(
        kind="gated_delta",
        heads=heads,
        head_dim=value_dim,
        state_size=key_dim,
        groups=key_heads,
        conv_kernel=kernel,
        state_elements=heads * key_dim * value_dim,
        conv_elements=convolved * (kernel - 1),
        parameters=hidden * (2 * keys + 2 * values + 2 * heads) + values * hidden + convolved * kernel + 2 * heads + value_dim,
    )


def kimi_delta(fields: Fields, hidden: int) -> RecurrentState:
    """Read Kimi delta attention (arXiv 2510.26692): q, k, v of equal heads, each with a short convolution, a low-rank decay and an output gate."""
    heads = fields.need("num_heads")
    head_dim = fields.need("head_dim")
    kernel = fields.get("short_conv_kernel_size", default=4)
    inner = heads * head_dim
    gate = hidden * inner if fields.flag("use_full_rank_gate", default=False) else head_dim * (hidden + inner)
    decay = head_dim * (hidden + inner) + hidden * heads
    return RecurrentState(
        kind="kimi_delta",
        heads=heads,
        head_dim=head_dim,
        state_size=head_dim,
        groups=heads,
        conv_kernel=kernel,
        state_elements=heads * head_dim * head_dim,
        conv_elements=3 * inner * (kernel - 1),
        parameters=3 * hidden * inner + inner * hidden + gate + decay + 3 * inner * kernel + heads + inner + head_dim,
    )
