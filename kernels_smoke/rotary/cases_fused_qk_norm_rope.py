"""What the suite runs for ``fused_qk_norm_rope``, and what it expects."""

from types import ModuleType
from typing import Any

import torch

from kernels_smoke.rotary.cases_shared import (
    COMMON_CASES,
    EPSILON,
    FAR,
    QWEN,
    SHARED_MUTANTS,
    TIMED,
    WIDE,
    draw_rotary,
    sizes,
)
from kernels_smoke.rotary.reference import norm_and_rotate
from kernels_smoke.suite.correctness.compare import Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, Work, case, far, here


def draw_inputs(
    draw: Draw,
    *,
    tokens: int,
    heads: tuple[int, int],
    head_dim: int,
    rotary_dim: int,
    dtype: torch.dtype = BF16,
    interleaved: bool = False,
    zero_centred: bool = False,
    row_stride: int = 0,
    scale: float = 1.0,
    largest: float = 0.0,
    **rotary: Any,
) -> Inputs:
    """Draw the packed projection of ``heads`` = (query heads, key heads), and the rest.

    ``value`` is the part that no one may write: an input like any other, though it is in ``qkv``. It is small, so
    that it adds nothing to the norms with which ``qkv`` is judged.
    """
    query_heads, key_heads = heads
    width = (query_heads + 2 * key_heads) * head_dim
    qkv = draw.rows(tokens, width, dtype=dtype, scale=scale, largest=largest, row_stride=row_stride, name="qkv")
    value = qkv[:, (query_heads + key_heads) * head_dim :]
    value.copy_(draw.normal(tokens, key_heads * head_dim, dtype=dtype, scale=1e-3))
    return {
        "qkv": qkv,
        "value": value,
        **draw_rotary(draw, tokens=tokens, head_dim=head_dim, rotary_dim=rotary_dim, dtype=dtype, **rotary),
        "query_heads": query_heads,
        "key_heads": key_heads,
        "interleaved": interleaved,
        "zero_centred": zero_centred,
    }


def launch(module: ModuleType, inputs: Inputs, _outputs: Tensors) -> object:
    """One call of the public function."""
    arguments = {name: value for name, value in inputs.items() if name != "value"}
    return module.fused_qk_norm_rope(**arguments, epsilon=EPSILON)


def reference(inputs: Inputs) -> Tensors:
    """``qkv`` as it should be afterwards."""
    qkv, query_heads, key_heads = inputs["qkv"], inputs["query_heads"], inputs["key_heads"]
    heads = qkv.reshape(len(qkv), query_heads + 2 * key_heads, len(inputs["q_weight"]))
    query, key, value = heads.split((query_heads, key_heads, key_heads), dim=1)
    shared = {name: inputs[name] for name in ("cos_sin", "positions", "interleaved", "zero_centred")}
    query = norm_and_rotate(query, inputs["q_weight"], epsilon=EPSILON, **shared)
    key = norm_and_rotate(key, inputs["k_weight"], epsilon=EPSILON, **shared)
    return {"qkv": torch.cat((query, key, value.double()), dim=1).reshape(qkv.shape)}


def work(inputs: Inputs, _outputs: Tensors) -> Work:
    """Queries and keys in and out; positions and their angles in."""
    qkv, cos_sin = inputs["qkv"], inputs["cos_sin"]
    written = qkv[:, : -inputs["value"].shape[1]]
    used = min(len(cos_sin), len(qkv)) * cos_sin.shape[1] * cos_sin.itemsize
    return Work(bytes=2 * written.numel() * qkv.itemsize + inputs["positions"].nbytes + used)


CASES = (
    case("a quarter rotated", "quick", tokens=65, **QWEN),
    here("fp16, 96 wide, 32 rotated", "quick", tokens=13, **sizes(3, 2, 96, 32), dtype=FP16),
    *COMMON_CASES,
    case("interleaved", tokens=33, **sizes(8, 2, 128, 64), interleaved=True),
    case("zero-centred", tokens=33, **QWEN, zero_centred=True),
    case("40 and 20 heads of 64", tokens=33, **WIDE),
    case("head of 64, all rotated", tokens=33, **sizes(5, 1, 64, 64)),
    case("head of 96, all rotated", tokens=33, **sizes(3, 3, 96, 96)),
    case("head of 80, 20 rotated, interleaved", tokens=33, **sizes(3, 3, 80, 20), interleaved=True),
    case("strided rows", tokens=7, **QWEN, row_stride=24 * 256 + 8, cache_stride=72),
    here("fp32, 64 wide, all rotated", tokens=13, **sizes(2, 1, 64, 64), dtype=FP32, zero_centred=True),
    here("fp32, odd widths", tokens=13, **sizes(3, 1, 33, 6), dtype=FP32, row_stride=170, cache_stride=7),
    here("fp16, interleaved", tokens=13, **sizes(3, 1, 96, 40), dtype=FP16, interleaved=True),
    here("fp16, interleaved, all rotated", tokens=3, **sizes(1, 1, 64, 64), dtype=FP16, interleaved=True),
    far("offsets above 2^31", tokens=3, **QWEN, row_stride=FAR),
    *(
        case(
            f"sweep: {head_dim} wide, {rotary_dim} rotated, {str(dtype)[6:]}",
            "deep",
            tokens=517,
            **sizes(7, 3, head_dim, rotary_dim),
            dtype=dtype,
            interleaved=interleaved,
        )
        for dtype in (BF16, FP16, FP32)
        for head_dim, rotary_dim, interleaved in ((64, 64, False), (96, 48, True), (128, 64, False), (256, 256, True))
    ),
)

MUTANTS = (
    *SHARED_MUTANTS,
    Mutant(
        "keys normed with the queries' weight",
        "weight = tl.where(is_key, k_weight_pointer,",
        "weight = tl.where(is_key, q_weight_pointer,",
    ),
    Mutant(
        "values taken for keys",
        "tl.where(is_key, QUERY_HEADS + index % KEY_HEADS",
        "tl.where(is_key, QUERY_HEADS + KEY_HEADS + index % KEY_HEADS",
    ),
    Mutant("neighbours not paired", "INTERLEAVED=interleaved", "INTERLEAVED=False"),
    Mutant("rows taken for dense", "token * qkv_stride", "token * ((QUERY_HEADS + 2 * KEY_HEADS) * HEAD_DIM)"),
)

KERNEL = Kernel(
    name="fused_qk_norm_rope",
    module="kernels_smoke.rotary.fused_qk_norm_rope",
    inputs=draw_inputs,
    outputs=lambda _inputs: {},
    launch=launch,
    reference=reference,
    checks={"qkv": Rounded()},
    cases=CASES,
    mutants=MUTANTS,
    speeds=(Speed("8192 tokens, 16/4 heads of 256, 64 rotated", TIMED, bar=1.30, work=work),),
    modifies=("qkv",),
)
