"""The fused norm beyond the suite's cases: its results, and invalid arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.norm.fused_add_rms_norm import fused_add_rms_norm
from tests.kernels.support import zeros

ROWS, WIDTH = 3, 40
DTYPE = torch.float16


def arguments(**changes: Any) -> dict[str, Any]:
    matrices = {name: zeros(ROWS, WIDTH) for name in ("x", "residual")}
    return {**matrices, "weight": zeros(WIDTH), **changes}


def test_results_are_returned_in_the_tensors_that_were_given() -> None:
    out = zeros(ROWS, WIDTH), zeros(ROWS, WIDTH)
    made = fused_add_rms_norm(**arguments(), out=out)
    assert all(one is other for one, other in zip(made, out, strict=True))


def test_results_of_its_own_are_two_tensors_like_x() -> None:
    x = zeros(ROWS, 2 * WIDTH)[:, :WIDTH]
    normed, total = fused_add_rms_norm(**arguments(x=x))
    assert normed.data_ptr() != total.data_ptr()
    for tensor in (normed, total):
        assert (tensor.shape, tensor.dtype, tensor.device) == (x.shape, x.dtype, x.device)


def of_width(width: int) -> dict[str, Any]:
    return arguments(x=zeros(1, width), residual=zeros(1, width), weight=zeros(width))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (arguments(x=zeros(WIDTH)), r"x must be \[rows, width\], not 1-dimensional"),
        (arguments(x=zeros(1, ROWS, WIDTH)), r"x must be \[rows, width\], not 3-dimensional"),
        (of_width(0), "rows are 0 elements wide"),
        (of_width(16385), "rows are 16385 elements wide; 1 to 16384 are possible"),
        (arguments(x=zeros(ROWS, WIDTH, dtype=torch.float64)), "x must be .*, not torch.float64"),
        (arguments(x=zeros(WIDTH, ROWS).T), "the rows of x must be contiguous"),
        (arguments(residual=zeros(ROWS + 1, WIDTH)), r"residual must have the shape \(3, 40\), not \(4, 40\)"),
        (arguments(residual=zeros(ROWS, WIDTH, dtype=torch.float32)), "residual must be torch.float16"),
        (arguments(residual=zeros(WIDTH, ROWS).T), "the rows of residual must be contiguous"),
        (arguments(residual=torch.zeros(ROWS, WIDTH, dtype=DTYPE, device="meta")), "residual is on meta"),
        (arguments(weight=zeros(WIDTH - 1)), r"weight must have the shape \(40,\)"),
        (arguments(weight=zeros(1, WIDTH)), r"weight must have the shape \(40,\)"),
        (arguments(weight=zeros(WIDTH, dtype=torch.bfloat16)), "weight must be torch.float16 or torch.float32"),
        (arguments(weight=zeros(2 * WIDTH)[::2]), "the rows of weight must be contiguous"),
        (arguments(out=(zeros(ROWS, 1), zeros(ROWS, WIDTH))), r"out\[0\] must have the shape"),
        (arguments(out=(zeros(ROWS, WIDTH), zeros(1, WIDTH))), r"out\[1\] must have the shape"),
        (arguments(out=(zeros(ROWS, WIDTH, dtype=torch.float32), zeros(ROWS, WIDTH))), r"out\[0\] must be torch.float"),
        (arguments(out=(zeros(ROWS, WIDTH), zeros(ROWS, WIDTH, dtype=torch.float32))), r"out\[1\] must be torch.float"),
        (arguments(out=(zeros(WIDTH, ROWS).T, zeros(ROWS, WIDTH))), r"rows of out\[0\] must be contiguous"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fused_add_rms_norm(**wrong)
