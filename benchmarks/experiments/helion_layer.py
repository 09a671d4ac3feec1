"""The ten steps of a layer in fp8, as vLLM runs it with Helion's kernels, next to torch.compile.

"Portable vLLM Model Inference Kernels in Helion" (PyTorch's blog, 10 June 2026). Products and attention are operators
that a compiler does not look into, in vLLM as here; so the compiled layer has the eleven steps of the document between
them: norm and quantisation, the split with the norms of the heads, rotation, SwiGLU and quantisation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.experiments.model import Experiment, Run

HIDDEN, INTERMEDIATE, HEADS, HEAD = 4096, 12288, (32, 8), 128  # Qwen3-8B
TOKENS = (16, 256, 2048)
EPSILON = 1e-6
SEED = 20261127

Product = Callable[[Any, Any, Any, Any], Any]


def experiments() -> list[Experiment]:
    """A layer over a few tokens, and over prompts."""
    return [
        Experiment(
            name=f"A layer of Qwen3-8B in fp8, {tokens} tokens",
            reported="kernels against torch.compile on an H100: 1.18 to 1.73 times as fast, scaled_mm 1.08 times "
            "CUTLASS (table 2); no figure for a layer alone",
            baseline="torch.compile, products by cuBLAS",
            variants={
                "torch.compile, products by cuBLAS": functools.partial(_compiled, tokens),
                "eager torch, products by cuBLAS": functools.partial(_eager, tokens),
                "six fused kernels, products by cuBLAS": functools.partial(_fused, tokens, own=False),
                "ten kernels, all ours but attention": functools.partial(_fused, tokens, own=True),
            },
            work=f"{tokens} tokens of one sequence, scales by token and by channel; attention is torch's",
        )
        for tokens in TOKENS
    ]


@dataclass
class _Layer:
    """Weights [N, K] in fp8 with a scale for each row, norm weights, and the input of a layer."""

    products: dict[str, tuple[Any, Any]]
    norms: dict[str, Any]
    x: Any
    residual: Any
    cos_sin: Any
    positions: Any


def _layer(tokens: int) -> _Layer:
    import torch  # experiments() must not need it

    generator = torch.Generator("cuda").manual_seed(SEED)

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator, device="cuda")

    query, key = HEADS
    sizes = {
        "qkv": ((query + 2 * key) * HEAD, HIDDEN),
        "out": (HIDDEN, query * HEAD),
        "gate_up": (2 * INTERMEDIATE, HIDDEN),
        "down": (HIDDEN, INTERMEDIATE),
    }
    products = {}
    for name, (rows, columns) in sizes.items():
        weight = normal(rows, columns) / columns**0.5
        scale = weight.abs().amax(dim=1, keepdim=True) / 448.0
        products[name] = ((weight / scale).to(torch.float8_e4m3fn), scale.t().contiguous())
    widths = {"input": HIDDEN, "post": HIDDEN, "q": HEAD, "k": HEAD}
    angles = torch.arange(tokens, device="cuda")[:, None] / 1e6 ** (
        torch.arange(HEAD // 2, device="cuda") / (HEAD // 2)
    )
    return _Layer(
        products=products,
        norms={name: (1.0 + 0.1 * normal(width)).bfloat16() for name, width in widths.items()},
        x=normal(tokens, HIDDEN).bfloat16(),
        residual=normal(tokens, HIDDEN).bfloat16(),
        cos_sin=torch.cat((angles.cos(), angles.sin()), dim=1),
        positions=torch.arange(tokens, device="cuda"),
    )


def _cublas(codes: Any, weight: Any, scales: Any, of_weight: Any) -> Any:
    import torch  # as above

    return torch._scaled_mm(  # noqa: SLF001  # the only fp8 product that torch 2.6 to 2.13 have in common
        codes, weight.t(), scale_a=scales, scale_b=of_weight, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def _ours(codes: Any, weight: Any, scales: Any, of_weight: Any) -> Any:
    from kernels_smoke.matmul.scaled_mm import scaled_mm  # imports torch and triton

    return scaled_mm(codes, weight.t(), scales, of_weight)


def _attention(qkv: Any) -> Any:
    """Causal attention of one sequence, [tokens, heads * head_dim]."""
    import torch  # as above

    query, key = HEADS
    heads = qkv.unflatten(1, (-1, HEAD)).transpose(0, 1)[None]
    q, k, v = heads.split((query, key, key), dim=1)
    made = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return made[0].transpose(0, 1).flatten(1)


def _fused(tokens: int, *, own: bool) -> Run:
    from kernels_smoke.quantization.dynamic_per_token_scaled_fp8_quant import (  # as above
        dynamic_per_token_scaled_fp8_quant,
    )
    from kernels_smoke.quantization.rms_norm_dynamic_per_token_quant import (  # as above
        rms_norm_dynamic_per_token_quant,
    )
    from kernels_smoke.quantization.silu_and_mul_dynamic_per_token_quant import (  # as above
        silu_and_mul_dynamic_per_token_quant,
    )
    from kernels_smoke.rotary.fused_qk_norm_rope import fused_qk_norm_rope  # as above

    layer = _layer(tokens)
    multiply: Product = _ours if own else _cublas

    def product(name: str, codes: Any, scales: Any) -> Any:
        weight, of_weight = layer.products[name]
        return multiply(codes, weight, scales, of_weight)

    def run() -> object:
        residual = layer.residual.clone()  # each call begins with the same one, as the compiled layer does
        norm = functools.partial(rms_norm_dynamic_per_token_quant, epsilon=EPSILON, residual=residual)
        qkv = product("qkv", *norm(layer.x, layer.norms["input"]))
        fused_qk_norm_rope(
            qkv,
            layer.norms["q"],
            layer.norms["k"],
            layer.cos_sin,
            layer.positions,
            query_heads=HEADS[0],
            key_heads=HEADS[1],
            epsilon=EPSILON,
        )
        mixed = product("out", *dynamic_per_token_scaled_fp8_quant(_attention(qkv)))
        gate_up = product("gate_up", *norm(mixed, layer.norms["post"]))
        return product("down", *silu_and_mul_dynamic_per_token_quant(gate_up)), residual

    return run


def _native(layer: _Layer) -> Callable[[], Any]:
    """The layer in torch's operators."""
    import torch  # as above

    from benchmarks.eager import LEAST_SCALE, quantise, rms_norm, rotate, silu_and_mul  # imports torch

    def product(name: str, values: Any) -> Any:
        codes, scales = quantise(values, LEAST_SCALE)
        weight, of_weight = layer.products[name]
        return _cublas(codes, weight, scales, of_weight)

    angles: dict[str, Any] = {"cos_sin": layer.cos_sin, "positions": layer.positions}

    def run() -> Any:
        total = layer.x + layer.residual
        qkv = product("qkv", rms_norm(total, layer.norms["input"]))
        query, key, value = qkv.unflatten(1, (-1, HEAD)).split((HEADS[0], HEADS[1], HEADS[1]), dim=1)
        query = rotate(rms_norm(query, layer.norms["q"]), angles)
        key = rotate(rms_norm(key, layer.norms["k"]), angles)
        mixed = product("out", _attention(torch.cat((query, key, value), dim=1).flatten(1)))
        total = mixed + total
        gate_up = product("gate_up", rms_norm(total, layer.norms["post"]))
        return product("down", silu_and_mul(gate_up)), total

    return run


def _eager(tokens: int) -> Run:
    return _native(_layer(tokens))


def _compiled(tokens: int) -> Run:
    import torch  # as above

    from benchmarks.comparison import INDUCTOR_OPTIONS  # as above

    function: Run = torch.compile(_native(_layer(tokens)), dynamic=False, options=INDUCTOR_OPTIONS)
    return function
