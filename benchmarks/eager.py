"""Every kernel as a plain torch function in the dtype of its inputs: as in a model's code, and for torch.compile.

Not the references: those compute in float64. Each function takes the result of ``Kernel.inputs`` and returns new
tensors by the names of ``Kernel.outputs`` and ``Kernel.modifies``. A tuple has the first columns of a result, side by
side, if the others are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.eager_block_attention import block_diagonal_attention, block_diagonal_attention_backward
from benchmarks.eager_decoding import mla_decode, paged_attention_decode
from benchmarks.eager_delta_net import (
    causal_conv1d,
    causal_conv1d_update,
    delta_rule_gates,
    gated_delta_rule_chunk,
    gated_delta_rule_decode,
)
from benchmarks.eager_dualip import simplex_projection, sparse_product
from benchmarks.eager_muon import gram_newton_schulz, newton_schulz, qk_clip
from benchmarks.eager_products import block_scaled_mm, grouped_mm, grouped_mm_blockwise
from benchmarks.eager_routing import cross_entropy, top_k_sample, topk_softmax
from kernels_smoke.suite.model import Inputs

FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0
EPSILON = 1e-5  # as in the suite's cases
LEAST_SCALE = 1.0 / (FP8_MAX * 512.0)
LEAST_GROUP = 1e-10

Results = dict[str, Any]


def rms_norm(x: torch.Tensor, weight: torch.Tensor, *, zero_centred: bool = False) -> torch.Tensor:
    """The norm in float32, rounded to the dtype of ``x``."""
    values = x.float()
    scale = weight.float() + 1.0 if zero_centred else weight.float()
    return (values * torch.rsqrt(values.square().mean(dim=-1, keepdim=True) + EPSILON) * scale).to(x.dtype)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up`` of the halves of each row."""
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def quantise(values: torch.Tensor, least: float, *, ue8m0: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and one scale for the whole last dimension."""
    values = values.float()
    scale = (values.abs().amax(dim=-1, keepdim=True) / FP8_MAX).clamp(min=least)
    if ue8m0:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    return (values * (1.0 / scale)).clamp(-FP8_MAX, FP8_MAX).to(FP8), scale


def by_row(values: torch.Tensor) -> Results:
    """Codes [rows, width] and scales [rows, 1]."""
    codes, scales = quantise(values, LEAST_SCALE)
    return {"codes": codes, "scales": scales}


def by_group(values: torch.Tensor, inputs: Inputs, *, least: float, ue8m0: bool = False) -> Results:
    """Codes [rows, width] and scales [rows, width / group]."""
    rows, width = values.shape
    group = inputs["group"]
    codes, scales = quantise(values.reshape(rows, width // group, group), least, ue8m0=ue8m0)
    return {"codes": codes.reshape(rows, width), "scales": scales.squeeze(-1)}


def fused_add_rms_norm(inputs: Inputs) -> Results:
    """The sum, and its norm."""
    total = inputs["x"] + inputs["residual"]
    return {"normed": rms_norm(total, inputs["weight"], zero_centred=inputs["zero_centred"]), "sum": total}


def all_reduce_add_rms_norm(inputs: Inputs) -> Results:
    """The sum over the ranks, which are on one GPU here, then the same."""
    total = inputs["x"].sum(dim=0) + inputs["residual"]
    return {"normed": rms_norm(total, inputs["weight"], zero_centred=inputs["zero_centred"]), "sum": total}


def dynamic_per_token_scaled_fp8_quant(inputs: Inputs) -> Results:
    """One scale for each row."""
    return by_row(inputs["x"])


def per_token_group_fp8_quant(inputs: Inputs) -> Results:
    """One scale for each group."""
    return by_group(inputs["x"], inputs, least=LEAST_GROUP, ue8m0=inputs["ue8m0"])


def rms_norm_dynamic_per_token_quant(inputs: Inputs) -> Results:
    """The sum, and its norm quantised."""
    total = inputs["x"] + inputs["residual"] if inputs["add"] else inputs["x"]
    summed = {"residual": total} if inputs["add"] else {}
    return by_row(rms_norm(total, inputs["weight"])) | summed


def rms_norm_per_block_quant(inputs: Inputs) -> Results:
    """The sum, and its norm quantised by groups."""
    total = inputs["x"] + inputs["residual"] if inputs["add"] else inputs["x"]
    summed = {"residual": total} if inputs["add"] else {}
    return by_group(rms_norm(total, inputs["weight"]), inputs, least=LEAST_SCALE) | summed


def silu_and_mul_dynamic_per_token_quant(inputs: Inputs) -> Results:
    """SwiGLU, quantised."""
    return by_row(silu_and_mul(inputs["x"]))


def silu_and_mul_per_block_quant(inputs: Inputs) -> Results:
    """SwiGLU, quantised by groups."""
    return by_group(silu_and_mul(inputs["x"]), inputs, least=LEAST_GROUP)


def rotate(heads: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Rotary embedding of the first columns of heads [tokens, heads, head_dim]."""
    cosine, sine = inputs["cos_sin"][inputs["positions"]].unsqueeze(1).chunk(2, dim=-1)
    turned, rest = heads.split((2 * cosine.shape[-1], heads.shape[-1] - 2 * cosine.shape[-1]), dim=-1)
    if inputs.get("interleaved"):
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, dim=-1)
    rotated = (first * cosine - second * sine, second * cosine + first * sine)
    joined = torch.stack(rotated, dim=-1).flatten(-2) if inputs.get("interleaved") else torch.cat(rotated, dim=-1)
    return torch.cat((joined.to(heads.dtype), rest), dim=-1)


def norm_and_rotate(heads: torch.Tensor, weight: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Heads normed and rotated, as rows."""
    return rotate(rms_norm(heads, weight, zero_centred=inputs["zero_centred"]), inputs).flatten(1)


def fused_qk_norm_rope(inputs: Inputs) -> Results:
    """Queries and keys of a packed projection."""
    head_dim = len(inputs["q_weight"])
    heads = inputs["qkv"].unflatten(1, (-1, head_dim))
    query, key, _ = heads.split((inputs["query_heads"], inputs["key_heads"], inputs["key_heads"]), dim=1)
    return {
        "qkv": (norm_and_rotate(query, inputs["q_weight"], inputs), norm_and_rotate(key, inputs["k_weight"], inputs))
    }


def fused_qk_rmsnorm_rope_gate(inputs: Inputs) -> Results:
    """Queries and keys, and a copy of the gates."""
    head_dim = len(inputs["q_weight"])
    query, gate = inputs["query_gate"].unflatten(1, (inputs["query_heads"], 2 * head_dim)).chunk(2, dim=-1)
    key = inputs["key"].unflatten(1, (inputs["key_heads"], head_dim))
    return {
        "query": norm_and_rotate(query, inputs["q_weight"], inputs),
        "key_out": norm_and_rotate(key, inputs["k_weight"], inputs),
        "gate": gate.flatten(1).contiguous(),
    }


def fused_gate_sigmoid_mul_add(inputs: Inputs) -> Results:
    """``final`` with the gated addition."""
    gate = torch.sigmoid(torch.mv(inputs["x"], inputs["weight"])).unsqueeze(-1)
    return {"final": inputs["final"] + gate * inputs["shared"]}


def fused_linear(inputs: Inputs) -> Results:
    """The norm in float32, rounded; torch's product with the bias; the activation."""
    x, bias = inputs["x"], inputs["bias"]
    if inputs["norm_weight"] is not None:
        gamma = inputs["norm_weight"].float() + float(inputs["zero_centred"])
        variance = x.float().square().mean(dim=-1, keepdim=True)
        x = (x.float() * torch.rsqrt(variance + inputs["epsilon"]) * gamma).to(x.dtype)
    made = torch.nn.functional.linear(x, inputs["weight"], None if bias is None else bias.to(x.dtype))
    if inputs["activation"] == "gelu":
        return {"out": torch.nn.functional.gelu(made, approximate="tanh")}
    activations = {"relu": torch.relu, "silu": torch.nn.functional.silu, "none": torch.nn.Identity()}
    return {"out": activations[inputs["activation"]](made)}


def mul_add_sigmoid(inputs: Inputs) -> Results:
    """Three pointwise steps."""
    return {"activated": torch.sigmoid(inputs["x"] * inputs["w"] + inputs["b"])}


def mul_sum_add(inputs: Inputs) -> Results:
    """A pointwise step, a sum, and another."""
    return {"total": (inputs["x"] * 2).sum(dim=-1) + 1}


def sin_and_cos(inputs: Inputs) -> Results:
    """Two functions of one input."""
    return {"sine": torch.sin(inputs["x"]), "cosine": torch.cos(inputs["x"])}


def scaled_mm(inputs: Inputs) -> Results:
    """The product of the operands in bfloat16 (or their dtype), then the scales."""
    dtype = _wide(inputs["a"])
    product = inputs["a"].to(dtype) @ inputs["b"].to(dtype).t()
    result = product * inputs["scale_a"] * inputs["scale_b"]
    if inputs["bias"] is not None:
        result = result + inputs["bias"]
    return {"out": result.to(inputs["out_dtype"])}


def scaled_mm_blockwise(inputs: Inputs) -> Results:
    """The operands scaled in float32 and rounded to bfloat16 (or their dtype), then their product."""
    dtype = _wide(inputs["a"])
    scale_a, scale_b = inputs["scale_a"], inputs["scale_b"]
    if not inputs["row_major"]:
        scale_a, scale_b = scale_a.t(), scale_b.t()
    width, columns = inputs["a"].shape[1], inputs["b"].shape[0]
    rows = scale_a.repeat_interleave(128, dim=1)[:, :width]
    blocks = scale_b.t().repeat_interleave(128, dim=0)[:columns].repeat_interleave(128, dim=1)[:, :width]
    a, b = (inputs["a"].float() * rows).to(dtype), (inputs["b"].float() * blocks).to(dtype)
    return {"out": (a @ b.t()).to(inputs["out_dtype"])}


def paged_attention(inputs: Inputs) -> Results:
    """All pages gathered and all query tokens padded, then torch's attention with a mask, in which L is the longest."""
    query, table = inputs["query"], inputs["page_table"].long()
    starts, lengths = inputs["cumulative_query_lengths"].long(), inputs["sequence_lengths"].long()
    longest = inputs["longest_query"] or query.shape[0]
    tokens = torch.arange(query.shape[0], device=query.device)
    sequence = torch.searchsorted(starts, tokens, right=True) - 1
    position = torch.arange(table.shape[1] * inputs["key_cache"].shape[1], device=query.device)  # [L]
    row = torch.arange(longest, device=query.device)
    padded = query[(starts[:-1, None] + row).clamp(max=query.shape[0] - 1)]  # [sequences, longest, heads, head_dim]
    inside = (position < lengths[:, None])[:, :, None, None]
    keys, values = (
        inputs[name][table].flatten(1, 2).where(inside, 0.0).transpose(1, 2) for name in ("key_cache", "value_cache")
    )
    context = lengths - starts.diff()
    sees = position <= (context[:, None] + row)[:, :, None]  # [sequences, longest, L]
    made = torch.nn.functional.scaled_dot_product_attention(
        padded.transpose(1, 2), keys, values, attn_mask=sees[:, None], scale=inputs["scale"], enable_gqa=True
    )
    return {"out": made.transpose(1, 2)[sequence, tokens - starts[sequence]]}


def _wide(operand: torch.Tensor) -> torch.dtype:
    return torch.bfloat16 if operand.dtype == FP8 else operand.dtype


EAGER: dict[str, Callable[[Inputs], Results]] = {
    function.__name__: function
    for function in (
        fused_add_rms_norm,
        all_reduce_add_rms_norm,
        dynamic_per_token_scaled_fp8_quant,
        per_token_group_fp8_quant,
        rms_norm_dynamic_per_token_quant,
        rms_norm_per_block_quant,
        silu_and_mul_dynamic_per_token_quant,
        silu_and_mul_per_block_quant,
        fused_qk_norm_rope,
        fused_qk_rmsnorm_rope_gate,
        fused_gate_sigmoid_mul_add,
        fused_linear,
        mul_add_sigmoid,
        mul_sum_add,
        sin_and_cos,
        scaled_mm,
        scaled_mm_blockwise,
        grouped_mm,
        grouped_mm_blockwise,
        block_scaled_mm,
        paged_attention,
        paged_attention_decode,
        mla_decode,
        block_diagonal_attention,
        block_diagonal_attention_backward,
        gated_delta_rule_chunk,
        gated_delta_rule_decode,
        delta_rule_gates,
        causal_conv1d,
        causal_conv1d_update,
        topk_softmax,
        top_k_sample,
        cross_entropy,
        newton_schulz,
        gram_newton_schulz,
        qk_clip,
        simplex_projection,
        sparse_product,
    )
}
