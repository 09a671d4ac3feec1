"""The fused operations beyond the suite's cases: their own results, tensors of any shape, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from kernels_smoke.fusion import reference
from kernels_smoke.fusion.fused_gate_sigmoid_mul_add import WIDEST, fused_gate_sigmoid_mul_add
from kernels_smoke.fusion.fused_linear import fused_linear
from kernels_smoke.fusion.mul_add_sigmoid import mul_add_sigmoid
from kernels_smoke.fusion.mul_sum_add import mul_sum_add
from kernels_smoke.fusion.sin_and_cos import sin_and_cos
from tests.kernels import support
from tests.kernels.support import DEVICE

ROWS, WIDTH = 3, 40
BF16, FP16, FP32, FP64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
TOLERANCES = {FP16: 5e-4, FP32: 2e-6}
zeros = partial(support.zeros, dtype=FP32)


def normal(*shape: int, dtype: Any = FP32, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def check(got: torch.Tensor, wanted: torch.Tensor, like: torch.Tensor) -> None:
    assert got.shape == wanted.shape
    assert got.dtype == like.dtype
    assert got.device == like.device
    assert float((got.double() - wanted).norm() / wanted.norm()) < TOLERANCES[got.dtype]


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("shape", [(), (7,), (ROWS, WIDTH), (2, 3, 5)], ids=str)
def test_pointwise_results_that_are_not_given_are_allocated(shape: tuple[int, ...], dtype: Any) -> None:
    x, w, b = (normal(*shape, dtype=dtype, seed=seed) for seed in (1, 2, 3))
    check(mul_add_sigmoid(x, w, b), reference.mul_add_sigmoid(x, w, b), x)
    for got, wanted in zip(sin_and_cos(x), reference.sin_and_cos(x), strict=True):
        check(got, wanted, x)


def test_pointwise_results_of_strided_rows_are_allocated() -> None:
    x, w, b = (normal(ROWS, WIDTH + seed, seed=seed)[:, :WIDTH] for seed in (1, 2, 3))
    check(mul_add_sigmoid(x, w, b), reference.mul_add_sigmoid(x, w, b), x)
    for got, wanted in zip(sin_and_cos(x), reference.sin_and_cos(x), strict=True):
        check(got, wanted, x)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_sums_that_are_not_given_are_allocated(dtype: Any) -> None:
    x = normal(ROWS, WIDTH, dtype=dtype)
    check(mul_sum_add(x), reference.mul_sum_add(x), x)


def test_results_that_are_given_are_what_is_returned() -> None:
    x = normal(ROWS, WIDTH)
    one, other, total = torch.empty_like(x), torch.empty_like(x), zeros(ROWS)
    assert mul_add_sigmoid(x, x, x, out=one) is one
    sine, cosine = sin_and_cos(x, out=(one, other))
    assert sine is one
    assert cosine is other
    assert mul_sum_add(x, out=total) is total
    check(one, x.double().sin(), x)
    check(other, x.double().cos(), x)
    check(total, reference.mul_sum_add(x), x)


def test_what_is_added_to_is_what_is_returned() -> None:
    final, x, shared = (normal(ROWS, WIDTH, seed=seed) for seed in (1, 2, 3))
    weight = normal(WIDTH, seed=4)
    wanted = reference.gate_sigmoid_mul_add(final, x, weight, shared)
    assert fused_gate_sigmoid_mul_add(final, x, weight, shared) is final
    check(final, wanted, x)


@pytest.mark.parametrize("rows", [ROWS, 20])  # normed within the product, and before it
def test_a_plan_of_a_linear_layer_takes_other_rows(rows: int) -> None:
    x, other, weight, norm_weight = (
        normal(*shape, dtype=FP16, seed=seed)
        for seed, shape in enumerate(((rows, WIDTH), (rows, WIDTH), (24, WIDTH), (WIDTH,)))
    )
    plan = fused_linear.plan(x, weight, norm_weight=norm_weight)
    assert torch.equal(plan(x=other), fused_linear(other, weight, norm_weight=norm_weight))


FITTING: dict[Callable[..., Any], Callable[[], dict[str, torch.Tensor]]] = {
    fused_gate_sigmoid_mul_add: lambda: {
        **{name: zeros(ROWS, WIDTH) for name in ("final", "x", "shared")},
        "weight": zeros(WIDTH),
    },
    mul_add_sigmoid: lambda: {name: zeros(ROWS, WIDTH) for name in ("x", "w", "b")},
    mul_sum_add: lambda: {"x": zeros(ROWS, WIDTH)},
    sin_and_cos: lambda: {"x": zeros(ROWS, WIDTH)},
}


def refused(function: Callable[..., Any], *changes: tuple[dict[str, Any], str]) -> list[Any]:
    return [pytest.param(function, change, message, id=f"{function.__name__}-{message}") for change, message in changes]


def every_fault(name: str, *shape: int) -> list[tuple[dict[str, Any], str]]:
    """Every fault of the tensor ``name``, which should be ``shape`` in float32."""
    return [
        ({name: zeros(*shape[:-1], shape[-1] + 1)}, f"^{name} must have the shape"),
        ({name: zeros(1, *shape)}, f"^{name} must have the shape"),
        ({name: zeros(*shape, dtype=FP16)}, f"^{name} must be .*torch.float32, not torch.float16"),
        ({name: zeros(*shape, device="meta")}, f"^{name} is on meta"),
        ({name: zeros(*shape[:-1], 2 * shape[-1])[..., ::2]}, f"^the rows of {name} must be contiguous"),
    ]


def results(*tensors: torch.Tensor) -> dict[str, Any]:
    return {"out": tensors}


GOOD, WIDER, HALF, AWAY, SPREAD = (
    zeros(ROWS, WIDTH),
    zeros(ROWS, WIDTH + 1),
    zeros(ROWS, WIDTH, dtype=FP16),
    zeros(ROWS, WIDTH, device="meta"),
    zeros(ROWS, 2 * WIDTH)[:, ::2],
)


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        *refused(
            fused_gate_sigmoid_mul_add,
            ({"final": zeros(WIDTH)}, r"final must be \[rows, width\], not 1-dimensional"),
            (dict.fromkeys(("final", "x", "shared"), zeros(ROWS, 0)), "rows are 0 elements wide"),
            (dict.fromkeys(("final", "x", "shared"), zeros(1, WIDEST + 1)), f"rows are {WIDEST + 1} elements wide"),
            ({"final": zeros(ROWS, WIDTH, dtype=FP64)}, "final must be .* not torch.float64"),
            ({"final": SPREAD}, "rows of final must be contiguous"),
            *every_fault("x", ROWS, WIDTH),
            *every_fault("shared", ROWS, WIDTH),
            *every_fault("weight", WIDTH),
            (
                {**dict.fromkeys(("final", "x", "shared"), HALF), "weight": zeros(WIDTH, dtype=BF16)},
                "weight must be .* not torch.bfloat16",
            ),
        ),
        *refused(
            mul_add_sigmoid,
            (dict.fromkeys("xwb", zeros(ROWS, WIDTH, dtype=FP64)), "tensors must be .* not torch.float64"),
            ({"x": SPREAD}, "rows of x must be contiguous"),
            *every_fault("w", ROWS, WIDTH),
            *every_fault("b", ROWS, WIDTH),
            *every_fault("out", ROWS, WIDTH),
            (dict.fromkeys("xwb", zeros(2, 3, 8)[:, :2]), r"not contiguous must be \[rows, width\]"),
        ),
        *refused(
            sin_and_cos,
            ({"x": zeros(ROWS, WIDTH, dtype=FP64)}, "tensors must be .* not torch.float64"),
            ({"x": zeros(ROWS, WIDTH, dtype=torch.int32)}, "tensors must be .* not torch.int32"),
            ({"x": SPREAD}, "rows of x must be contiguous"),
            ({"x": zeros(2, 3, 8)[:, :2]}, r"not contiguous must be \[rows, width\]"),
            (results(WIDER, GOOD), r"out\[0\] must have the shape"),
            (results(GOOD, WIDER), r"out\[1\] must have the shape"),
            (results(HALF, GOOD), r"out\[0\] must be torch.float32"),
            (results(GOOD, HALF), r"out\[1\] must be torch.float32"),
            (results(AWAY, GOOD), r"out\[0\] is on meta"),
            (results(GOOD, AWAY), r"out\[1\] is on meta"),
            (results(SPREAD, GOOD), r"rows of out\[0\] must be contiguous"),
            (results(GOOD, SPREAD), r"rows of out\[1\] must be contiguous"),
        ),
        *refused(
            mul_sum_add,
            ({"x": zeros(WIDTH)}, r"x must be \[rows, width\], not 1-dimensional"),
            ({"x": zeros(1, ROWS, WIDTH)}, r"x must be \[rows, width\], not 3-dimensional"),
            ({"x": zeros(ROWS, 0)}, "rows are 0 elements wide"),
            ({"x": zeros(1, 2**30 + 1, device="meta")}, f"rows are {2**30 + 1} elements wide"),
            ({"x": zeros(ROWS, WIDTH, dtype=FP64)}, "x must be .* not torch.float64"),
            ({"x": SPREAD}, "rows of x must be contiguous"),
            ({"out": zeros(ROWS + 1)}, "out must have the shape"),
            ({"out": zeros(ROWS, 1)}, "out must have the shape"),
            ({"out": zeros(ROWS, dtype=FP16)}, "out must be torch.float32, not torch.float16"),
            ({"out": zeros(ROWS, device="meta")}, "out is on meta"),
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    function: Callable[..., Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        function(**{**FITTING[function](), **changes})
