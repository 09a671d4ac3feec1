"""Quantisation beyond the suite's cases: results, and invalid arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernels_smoke.quantization.dynamic_per_token_scaled_fp8_quant import dynamic_per_token_scaled_fp8_quant
from kernels_smoke.quantization.layout import code_dtype
from kernels_smoke.quantization.per_token_group_fp8_quant import per_token_group_fp8_quant
from kernels_smoke.quantization.rms_norm_dynamic_per_token_quant import rms_norm_dynamic_per_token_quant
from kernels_smoke.quantization.rms_norm_per_block_quant import rms_norm_per_block_quant
from kernels_smoke.quantization.silu_and_mul_dynamic_per_token_quant import silu_and_mul_dynamic_per_token_quant
from kernels_smoke.quantization.silu_and_mul_per_block_quant import silu_and_mul_per_block_quant
from tests.kernels.support import zeros

Function = Callable[..., tuple[torch.Tensor, torch.Tensor]]
ROWS, WIDTH, GROUP = 3, 64, 16
DTYPE = torch.float16
BY_ROW: list[Function] = [
    dynamic_per_token_scaled_fp8_quant,
    rms_norm_dynamic_per_token_quant,
    silu_and_mul_dynamic_per_token_quant,
]
BY_GROUP: list[Function] = [per_token_group_fp8_quant, rms_norm_per_block_quant, silu_and_mul_per_block_quant]
NORMS: list[Function] = [rms_norm_dynamic_per_token_quant, rms_norm_per_block_quant]
GATED: list[Function] = [silu_and_mul_dynamic_per_token_quant, silu_and_mul_per_block_quant]
each = pytest.mark.parametrize("function", [*BY_ROW, *BY_GROUP], ids=lambda function: function.__name__)


def arguments(function: Function, width: int = WIDTH, **changes: Any) -> dict[str, Any]:
    """Arguments that fit ``function``, of which the codes are ``width`` wide, but for ``changes``."""
    made: dict[str, Any] = {"x": zeros(ROWS, width * (2 if function in GATED else 1))}
    if function in NORMS:
        made["weight"] = zeros(width)
    if function in BY_GROUP:
        made["group"] = GROUP
    return {**made, **changes}


def results(function: Function) -> tuple[torch.Tensor, torch.Tensor]:
    groups = WIDTH // GROUP if function in BY_GROUP else 1
    return zeros(ROWS, WIDTH, dtype=code_dtype()), zeros(ROWS, groups, dtype=torch.float32)


def refuses(function: Function, message: str, **wrong: Any) -> None:
    with pytest.raises(ValueError, match=message):
        function(**{**arguments(function), **wrong})


@each
def test_results_are_returned_in_the_tensors_that_were_given(function: Function) -> None:
    out = results(function)
    made = function(**arguments(function), out=out)
    assert all(one is other for one, other in zip(made, out, strict=True))


@each
def test_results_of_its_own_are_dense_codes_and_float32_scales(function: Function) -> None:
    for made, wanted in zip(function(**arguments(function)), results(function), strict=True):
        assert (made.shape, made.stride(), made.dtype) == (wanted.shape, wanted.stride(), wanted.dtype)


@pytest.mark.parametrize("function", BY_GROUP)
@pytest.mark.parametrize(("rows", "aligned"), [(0, 0), (1, 4), (4, 4), (5, 8)])
def test_columns_of_scales_lie_at_multiples_of_16_bytes(function: Function, rows: int, aligned: int) -> None:
    x = zeros(rows, arguments(function)["x"].shape[1])
    _, scales = function(**arguments(function, x=x), column_major_scales=True)
    assert scales.shape == (rows, WIDTH // GROUP)
    assert scales.stride() == (1, aligned)


@each
def test_an_x_that_does_not_fit_is_refused(function: Function) -> None:
    width = arguments(function)["x"].shape[1]
    refuses(function, r"x must be \[rows, width\], not 1-dimensional", x=zeros(width))
    refuses(function, r"x must be \[rows, width\], not 3-dimensional", x=zeros(1, ROWS, width))
    refuses(function, "rows of x must not be empty", x=zeros(ROWS, 0))
    refuses(function, "x must be .*, not torch.float64", x=zeros(ROWS, width, dtype=torch.float64))
    refuses(function, "x must be .*, not torch.int32", x=zeros(ROWS, width, dtype=torch.int32))
    refuses(function, "the rows of x must be contiguous", x=zeros(width, ROWS).T)


@each
def test_results_that_do_not_fit_are_refused(function: Function) -> None:
    codes, scales = results(function)
    wrong = zeros(ROWS, WIDTH, dtype=torch.float16)
    refuses(function, r"out\[0\] must have the shape \(3, 64\)", out=(codes[:, 1:], scales))
    refuses(function, r"out\[0\] must have the shape \(3, 64\)", out=(codes[1:], scales))
    refuses(function, r"out\[0\] must be .*, not torch.float16", out=(wrong, scales))
    refuses(function, r"rows of out\[0\] must be contiguous", out=(codes.reshape(WIDTH, ROWS).T, scales))
    refuses(function, r"out\[1\] must have the shape \(3, ", out=(codes, scales[1:]))
    refuses(function, r"out\[1\] must have the shape \(3, ", out=(codes, scales[:, 0]))
    refuses(function, r"out\[1\] must be torch.float32, not torch.float64", out=(codes, scales.double()))
    refuses(function, r"out\[1\] is on meta", out=(codes, scales.to("meta")))


@pytest.mark.parametrize(
    ("function", "widest"),
    [
        (dynamic_per_token_scaled_fp8_quant, 32768),
        (silu_and_mul_dynamic_per_token_quant, 32768),
        (rms_norm_dynamic_per_token_quant, 16384),
        (rms_norm_per_block_quant, 16384),
    ],
)
def test_rows_that_one_program_cannot_hold_are_refused(function: Function, widest: int) -> None:
    with pytest.raises(ValueError, match=f"rows are {widest + GROUP} elements wide; {widest} are possible"):
        function(**arguments(function, widest + GROUP))


@pytest.mark.parametrize("function", BY_GROUP)
def test_groups_that_do_not_fit_are_refused(function: Function) -> None:
    for group in (0, -16, 24, 2048):
        refuses(function, f"a group must be a power of two up to 1024, not {group}", group=group)
    refuses(function, "rows of 64 elements cannot be divided into groups of 128", group=128)
    with pytest.raises(ValueError, match="rows of 72 elements cannot be divided into groups of 16"):
        function(**arguments(function, 72))


@pytest.mark.parametrize("function", BY_ROW)
def test_bounds_that_do_not_fit_are_refused(function: Function) -> None:
    refuses(function, "must be one number, not 2", scale_upper_bound=zeros(2, dtype=torch.float32))
    refuses(function, "must be one number, not 0", scale_upper_bound=zeros(0, dtype=torch.float32))
    refuses(function, "scale_upper_bound must be torch.float32", scale_upper_bound=zeros(1, dtype=torch.float64))
    refuses(function, "scale_upper_bound is on meta", scale_upper_bound=torch.zeros(1, device="meta"))


@pytest.mark.parametrize("function", BY_ROW)
def test_a_bound_may_have_any_shape_of_one_element(function: Function) -> None:
    for shape in ((), (1,), (1, 1)):
        bound = zeros(*shape, dtype=torch.float32) + 1.0
        codes, _ = function(**arguments(function, scale_upper_bound=bound))
        assert not bool(codes.float().any())


@pytest.mark.parametrize("function", NORMS)
def test_weights_and_residuals_that_do_not_fit_are_refused(function: Function) -> None:
    refuses(function, r"weight must have the shape \(64,\)", weight=zeros(WIDTH + 1))
    refuses(function, r"weight must have the shape \(64,\)", weight=zeros(1, WIDTH))
    refuses(function, "weight must be torch.float16 or torch.float32", weight=zeros(WIDTH, dtype=torch.bfloat16))
    refuses(function, "rows of weight must be contiguous", weight=zeros(2 * WIDTH)[::2])
    refuses(function, r"residual must have the shape \(3, 64\)", residual=zeros(ROWS - 1, WIDTH))
    refuses(function, "residual must be torch.float16", residual=zeros(ROWS, WIDTH, dtype=torch.float32))
    refuses(function, "rows of residual must be contiguous", residual=zeros(WIDTH, ROWS).T)


@pytest.mark.parametrize("function", GATED)
def test_rows_that_are_not_two_halves_are_refused(function: Function) -> None:
    refuses(function, "a row of x is two halves, and 129 is odd", x=zeros(ROWS, 2 * WIDTH + 1))
