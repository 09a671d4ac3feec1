"""Other people's implementations of our kernels, if they are installed: liger-kernel, fla-core, fa3-fwd, helion.

Each entry makes, from what ``Kernel.inputs`` drew, a call that returns its results by name, as ``eager.py`` does. Work
that is not part of every call (an import, a weight plus 1) is done when the call is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.eager import EPSILON, Results
from kernels_smoke.delta_net.cases_chunk import state_of
from kernels_smoke.suite.model import Inputs

Prepared = Callable[[], Results]


def liger_fused_add_rms_norm(inputs: Inputs) -> Prepared:
    """Liger's forward pass, which also keeps the inverse norms for a backward pass."""
    from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_forward  # type: ignore[import-not-found]  # optional

    offset = 1.0 if inputs["zero_centred"] else 0.0

    def call() -> Results:
        normed, total, *_ = fused_add_rms_norm_forward(
            inputs["x"], inputs["residual"], inputs["weight"], EPSILON, offset, "gemma"
        )
        return {"normed": normed, "sum": total}

    return call


def fla_fused_add_rms_norm(inputs: Inputs) -> Prepared:
    """FLA's norm with a residual; it knows no zero-centred weights, so it gets the weights plus 1."""
    from fla.modules.norm.layernorm import rms_norm  # type: ignore[import-not-found]  # optional

    weight = inputs["weight"] + 1.0 if inputs["zero_centred"] else inputs["weight"]

    def call() -> Results:
        normed, total = rms_norm(inputs["x"], weight, None, residual=inputs["residual"], eps=EPSILON, prenorm=True)
        return {"normed": normed, "sum": total}

    return call


def fla_gated_delta_rule_chunk(inputs: Inputs) -> Prepared:
    """FLA's prefill, which tunes itself for half a minute at its first call. It gets contiguous tensors."""
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule  # type: ignore[import-not-found]  # optional

    arguments = [inputs[name].unsqueeze(0).contiguous() for name in ("q", "k", "v", "log_decay", "beta")]
    bounds = inputs["cu_seqlens"]
    bounds = None if bounds is None else bounds.long()  # once: FLA caches by this very tensor

    def call() -> Results:
        out, states = chunk_gated_delta_rule(
            *arguments,
            initial_state=inputs["initial_state"],
            output_final_state=True,
            use_qk_l2norm_in_kernel=inputs["normalize"],
            cu_seqlens=bounds,
        )
        return {"out": out[0], state_of(inputs): states}

    return call


def fla_gated_delta_rule_decode(inputs: Inputs) -> Prepared:
    """FLA's recurrence for one token, which knows no row numbers: it gets contiguous tensors, states by request.

    It reads a state and writes another, which are as many bytes as in place; the new states are not compared.
    """
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule  # as above

    arguments = [inputs[name].unsqueeze(1).contiguous() for name in ("q", "k", "v", "log_decay", "beta")]
    before = inputs["states"][inputs["state_indices_in"].long()].unflatten(1, inputs["row"])

    def call() -> Results:
        out, _states = fused_recurrent_gated_delta_rule(
            *arguments[:3],
            g=arguments[3],
            beta=arguments[4],
            initial_state=before,
            output_final_state=True,
            use_qk_l2norm_in_kernel=inputs["normalize"],
        )
        return {"out": out[:, 0]}

    return call


def flash_attention_3(inputs: Inputs) -> Prepared:
    """FlashAttention 3 of fa3-fwd, without pages. Raises LookupError if keys and values are in pages alone."""
    from fa3_fwd_interface import flash_attn_func  # type: ignore[import-not-found]  # optional

    if "dense_keys" not in inputs:
        raise LookupError("fa3-fwd reads no pages, and these keys and values are in pages alone")
    ((count, _),) = set(inputs["batch"])
    query, keys, values = inputs["query"].unflatten(0, (-1, count)), inputs["dense_keys"], inputs["dense_values"]
    return lambda: {"out": flash_attn_func(query, keys, values, causal=True).flatten(0, 1)}


def helion(name: str) -> Callable[[Inputs], Prepared]:
    """The Helion kernel ``name`` of ``helion_kernels.py``."""

    def prepare(inputs: Inputs) -> Prepared:
        from benchmarks import helion_kernels  # imports helion, which is optional

        function: Any = getattr(helion_kernels, name)
        return lambda: function(inputs)

    return prepare


PEERS: dict[str, dict[str, Callable[[Inputs], Prepared]]] = {
    "gated_delta_rule_chunk": {"FLA": fla_gated_delta_rule_chunk},
    "gated_delta_rule_decode": {"FLA": fla_gated_delta_rule_decode},
    "paged_attention": {"FlashAttention 3": flash_attention_3},
    "fused_add_rms_norm": {"Liger": liger_fused_add_rms_norm, "FLA": fla_fused_add_rms_norm},
    "dynamic_per_token_scaled_fp8_quant": {"Helion": helion("dynamic_per_token_scaled_fp8_quant")},
    "rms_norm_dynamic_per_token_quant": {"Helion": helion("rms_norm_dynamic_per_token_quant")},
    "silu_and_mul_dynamic_per_token_quant": {"Helion": helion("silu_and_mul_dynamic_per_token_quant")},
}
