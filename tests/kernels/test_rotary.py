"""The rotary embeddings beyond the suite's cases: results, and invalid arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernels_smoke.rotary.fused_qk_norm_rope import fused_qk_norm_rope
from kernels_smoke.rotary.fused_qk_rmsnorm_rope_gate import fused_qk_rmsnorm_rope_gate
from tests.kernels.support import DEVICE, zeros

TOKENS, QUERY_HEADS, KEY_HEADS, HEAD_DIM, ROTARY_DIM, POSITIONS = 3, 2, 1, 32, 16, 5
DTYPE = torch.float16
both = pytest.mark.parametrize("function", [fused_qk_norm_rope, fused_qk_rmsnorm_rope_gate])


def arguments(function: Callable[..., Any], tokens: int = TOKENS, device: str = DEVICE) -> dict[str, Any]:
    """Arguments that fit ``function``."""
    widths = {"qkv": (QUERY_HEADS + 2 * KEY_HEADS) * HEAD_DIM}
    if function is fused_qk_rmsnorm_rope_gate:
        widths = {"query_gate": QUERY_HEADS * 2 * HEAD_DIM, "key": KEY_HEADS * HEAD_DIM}
    return {
        **{name: zeros(tokens, width, device=device) for name, width in widths.items()},
        "q_weight": zeros(HEAD_DIM, device=device),
        "k_weight": zeros(HEAD_DIM, device=device),
        "cos_sin": zeros(POSITIONS, ROTARY_DIM, device=device),
        "positions": zeros(tokens, dtype=torch.int64, device=device),
        "query_heads": QUERY_HEADS,
        "key_heads": KEY_HEADS,
    }


def refuses(function: Callable[..., Any], message: str, **wrong: Any) -> None:
    with pytest.raises(ValueError, match=message):
        function(**{**arguments(function), **wrong})


def test_the_packed_projection_is_returned() -> None:
    fitting = arguments(fused_qk_norm_rope)
    assert fused_qk_norm_rope(**fitting) is fitting["qkv"]


def test_results_are_returned_in_the_tensors_that_were_given() -> None:
    out = tuple(zeros(TOKENS, heads * HEAD_DIM) for heads in (QUERY_HEADS, KEY_HEADS, QUERY_HEADS))
    made = fused_qk_rmsnorm_rope_gate(**arguments(fused_qk_rmsnorm_rope_gate), out=out)
    assert all(one is other for one, other in zip(made, out, strict=True))


def test_results_of_its_own_are_three_tensors() -> None:
    made = fused_qk_rmsnorm_rope_gate(**arguments(fused_qk_rmsnorm_rope_gate))
    assert [tuple(tensor.shape) for tensor in made] == [(TOKENS, 64), (TOKENS, 32), (TOKENS, 64)]
    assert {tensor.dtype for tensor in made} == {DTYPE}
    assert len({tensor.data_ptr() for tensor in made}) == 3


@both
def test_heads_that_do_not_fit_are_refused(function: Callable[..., Any]) -> None:
    refuses(function, "heads have 0 elements; 1 to 1024 are possible", q_weight=zeros(0))
    refuses(function, "heads have 1025 elements; 1 to 1024 are possible", q_weight=zeros(1025))
    refuses(function, "0 query and 1 key heads", query_heads=0)
    refuses(function, "2 query and 0 key heads", key_heads=0)
    refuses(function, "-1 query and 1 key heads", query_heads=-1)


@both
def test_more_heads_than_a_32_bit_number_counts_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="heads of queries and keys; the limit is 2\\^31 - 1"):
        function(**arguments(function, tokens=2**31 // 3 + 1, device="meta"))


@both
@pytest.mark.parametrize("rotary_dim", [0, 1, 15, HEAD_DIM + 2])
def test_widths_that_cannot_be_rotated_are_refused(function: Callable[..., Any], rotary_dim: int) -> None:
    message = f"{rotary_dim} elements of a head cannot be rotated: it must be an even number from 2 to 32"
    refuses(function, message, cos_sin=zeros(POSITIONS, rotary_dim))


@both
def test_angles_that_do_not_fit_are_refused(function: Callable[..., Any]) -> None:
    refuses(function, r"cos_sin must be \[positions, rotary_dim\], not 1-dimensional", cos_sin=zeros(ROTARY_DIM))
    refuses(function, r"cos_sin must be \[positions, rotary_dim\], not 3-dim", cos_sin=zeros(1, POSITIONS, ROTARY_DIM))
    refuses(function, "cos_sin must be .*, not torch.float64", cos_sin=zeros(POSITIONS, 16, dtype=torch.float64))
    refuses(function, "rows of cos_sin must be contiguous", cos_sin=zeros(ROTARY_DIM, POSITIONS).T)
    refuses(function, "cos_sin is on meta", cos_sin=zeros(POSITIONS, ROTARY_DIM, device="meta"))


@both
def test_positions_that_do_not_fit_are_refused(function: Callable[..., Any]) -> None:
    refuses(function, r"positions must have the shape \(3,\)", positions=zeros(TOKENS + 1, dtype=torch.int64))
    refuses(function, r"positions must have the shape \(3,\)", positions=zeros(TOKENS, 1, dtype=torch.int64))
    refuses(function, "positions must be torch.int64", positions=zeros(TOKENS, dtype=torch.int32))
    refuses(function, "rows of positions must be contiguous", positions=zeros(2 * TOKENS, dtype=torch.int64)[::2])


@both
def test_weights_that_do_not_fit_are_refused(function: Callable[..., Any]) -> None:
    refuses(function, r"q_weight must have the shape \(32,\)", q_weight=zeros(1, HEAD_DIM))
    refuses(function, "q_weight must be torch.float16 or torch.float32", q_weight=zeros(HEAD_DIM, dtype=torch.float64))
    refuses(function, "rows of q_weight must be contiguous", q_weight=zeros(2 * HEAD_DIM)[::2])
    refuses(function, r"k_weight must have the shape \(32,\)", k_weight=zeros(HEAD_DIM - 1))
    refuses(function, "k_weight must be torch.float16", k_weight=zeros(HEAD_DIM, dtype=torch.float32))
    refuses(function, "rows of k_weight must be contiguous", k_weight=zeros(2 * HEAD_DIM)[::2])


@pytest.mark.parametrize(
    ("function", "name", "width"),
    [
        (fused_qk_norm_rope, "qkv", 128),
        (fused_qk_rmsnorm_rope_gate, "query_gate", 128),
        (fused_qk_rmsnorm_rope_gate, "key", 32),
    ],
)
def test_projections_that_do_not_fit_are_refused(function: Callable[..., Any], name: str, width: int) -> None:
    refuses(function, rf"{name} must have the shape \(3, {width}\)", **{name: zeros(TOKENS, width + 1)})
    refuses(function, f"rows of {name} must be contiguous", **{name: zeros(width, TOKENS).T})
    if name == "key":
        refuses(function, r"key must have the shape", key=zeros(TOKENS + 1, width))
        refuses(function, "key must be torch.float16, not torch.float32", key=zeros(TOKENS, width, dtype=torch.float32))
    else:
        refuses(function, rf"{name} must be \[tokens, .*, not 1-dimensional", **{name: zeros(width)})
        refuses(function, rf"{name} must be \[tokens, .*, not 3-dimensional", **{name: zeros(1, TOKENS, width)})
        wrong = arguments(function) | {
            each: zeros(*tensor.shape, dtype=torch.float64)
            for each, tensor in arguments(function).items()
            if isinstance(tensor, torch.Tensor) and tensor.dtype == DTYPE
        }
        with pytest.raises(ValueError, match=f"{name} must be .*, not torch.float64"):
            function(**wrong)


@pytest.mark.parametrize(("number", "heads"), [(0, QUERY_HEADS), (1, KEY_HEADS), (2, QUERY_HEADS)])
def test_results_that_do_not_fit_are_refused(number: int, heads: int) -> None:
    fitting = [zeros(TOKENS, count * HEAD_DIM) for count in (QUERY_HEADS, KEY_HEADS, QUERY_HEADS)]
    width = heads * HEAD_DIM
    for wrong, message in (
        (zeros(TOKENS, width - 1), rf"out\[{number}\] must have the shape \(3, {width}\)"),
        (zeros(TOKENS - 1, width), rf"out\[{number}\] must have the shape \(3, {width}\)"),
        (zeros(TOKENS, width, dtype=torch.float32), rf"out\[{number}\] must be torch.float16, not torch.float32"),
        (zeros(width, TOKENS).T, rf"rows of out\[{number}\] must be contiguous"),
    ):
        out = [wrong if place == number else tensor for place, tensor in enumerate(fitting)]
        refuses(fused_qk_rmsnorm_rope_gate, message, out=tuple(out))
