"""The scaled products beyond the suite's cases: a result that they allocate themselves, and refusals."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernels_smoke.matmul import reference
from kernels_smoke.matmul.scaled_mm import scaled_mm
from kernels_smoke.matmul.scaled_mm_blockwise import scaled_mm_blockwise
from tests.kernels.support import DEVICE, zeros

BLOCKWISE = importlib.import_module("kernels_smoke.matmul.scaled_mm_blockwise")
M, N, K = 20, 36, 144
FP16, FP32 = torch.float16, torch.float32
TOLERANCES = {torch.bfloat16: 1e-2, FP16: 5e-4, FP32: 1e-5}  # the interpreter may cut bfloat16 off


def drawn(*, by_blocks: bool) -> dict[str, torch.Tensor]:
    """Operands and scales of a product M x N over K."""
    generator = torch.Generator().manual_seed(20261123)
    a, rows = (torch.randn(count, K, generator=generator).to(DEVICE, FP16) for count in (M, N))
    of_a, of_b = ((M, 2), (2, 1)) if by_blocks else ((M, 1), (1, N))
    scale_a, scale_b = (torch.rand(shape, generator=generator).to(DEVICE) for shape in (of_a, of_b))
    return {"a": a, "b": rows.t(), "scale_a": scale_a, "scale_b": scale_b}


@pytest.mark.parametrize("out_dtype", [None, *TOLERANCES], ids=str)
@pytest.mark.parametrize("by_blocks", [False, True])
def test_a_result_that_is_not_given_is_allocated(by_blocks: bool, out_dtype: Any) -> None:
    arguments = drawn(by_blocks=by_blocks)
    if by_blocks:
        out, wanted = scaled_mm_blockwise(**arguments, out_dtype=out_dtype), reference.scaled_mm_blockwise(**arguments)
    else:
        out, wanted = scaled_mm(**arguments, out_dtype=out_dtype), reference.scaled_mm(**arguments)
    assert out.shape == (M, N)
    assert out.dtype == (out_dtype or torch.bfloat16)
    assert out.device == arguments["a"].device
    assert out.is_contiguous()
    assert float((out.double() - wanted).norm() / wanted.norm()) < TOLERANCES[out.dtype]


@pytest.mark.parametrize("by_blocks", [False, True])
@pytest.mark.parametrize("out_dtype", [None, FP32], ids=str)
def test_a_result_that_is_given_is_what_is_returned(by_blocks: bool, out_dtype: Any) -> None:
    out = zeros(M, N, dtype=FP32)
    function: Callable[..., torch.Tensor] = scaled_mm_blockwise if by_blocks else scaled_mm
    assert function(**drawn(by_blocks=by_blocks), out_dtype=out_dtype, out=out) is out
    assert out.any()


@pytest.mark.parametrize("by_blocks", [False, True])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": zeros(K)}, "a and b must be matrices, not 1- and 2-dimensional"),
        ({"b": zeros(1, K, N)}, "a and b must be matrices, not 2- and 3-dimensional"),
        ({"a": zeros(M, 0), "b": zeros(N, 0).t()}, "K is 0"),
        ({"a": zeros(M, K, dtype=FP32)}, "a must be .* not torch.float32"),
        ({"a": zeros(K, M).t()}, "rows of a must be contiguous"),
        ({"b": zeros(N, K + 1).t()}, "b transposed must have the shape"),
        ({"b": zeros(N, K, dtype=torch.bfloat16).t()}, "b transposed must be torch.float16, not torch.bfloat16"),
        ({"b": zeros(K, N)}, "rows of b transposed must be contiguous"),
        ({"b": zeros(N, K, device="meta").t()}, "b transposed is on meta"),
        ({"out_dtype": torch.float64}, "out_dtype must be .* not torch.float64"),
        ({"out_dtype": torch.float8_e4m3fn}, "out_dtype must be .* not torch.float8_e4m3fn"),
        ({"out": zeros(M, N + 1)}, "out must have the shape"),
        ({"out": zeros(M + 1, N)}, "out must have the shape"),
        ({"out": zeros(M, N, dtype=torch.float64)}, "out must be .* not torch.float64"),
        ({"out": zeros(M, N), "out_dtype": FP32}, "out must be torch.float32, not torch.float16"),
        ({"out": zeros(N, M).t()}, "rows of out must be contiguous"),
        ({"out": zeros(M, N, device="meta")}, "out is on meta"),
        ({"scale_a": zeros(M, 3, dtype=FP32)}, "scale_a must have the shape"),
        ({"scale_a": zeros(M, dtype=FP32)}, "scale_a must have the shape"),
        ({"scale_b": zeros(3, N, dtype=FP32)}, "scale_b must have the shape"),
    ],
)
def test_operands_that_do_not_fit_are_refused(by_blocks: bool, changes: dict[str, Any], message: str) -> None:
    function: Callable[..., torch.Tensor] = scaled_mm_blockwise if by_blocks else scaled_mm
    with pytest.raises(ValueError, match=message):
        function(**{**drawn(by_blocks=by_blocks), **changes})


@pytest.mark.parametrize("by_blocks", [False, True])
@pytest.mark.parametrize("name", ["scale_a", "scale_b"])
def test_scales_of_another_dtype_or_device_are_refused(by_blocks: bool, name: str) -> None:
    function: Callable[..., torch.Tensor] = scaled_mm_blockwise if by_blocks else scaled_mm
    arguments = drawn(by_blocks=by_blocks)
    with pytest.raises(ValueError, match=f"{name} must be .*float32, not torch.float16"):
        function(**{**arguments, name: arguments[name].half()})
    with pytest.raises(ValueError, match=f"{name} is on meta"):
        function(**{**arguments, name: arguments[name].to("meta")})


def test_one_element_scales_everything_only_where_there_are_no_blocks() -> None:
    one = torch.full((1,), 0.5, device=DEVICE)
    arguments = {**drawn(by_blocks=False), "scale_a": one, "scale_b": one}
    wanted = reference.scaled_mm(**arguments)
    got = scaled_mm(**arguments, out_dtype=FP32)
    assert float((got.double() - wanted).norm() / wanted.norm()) < TOLERANCES[FP32]
    with pytest.raises(ValueError, match="scale_a must have the shape"):
        scaled_mm_blockwise(**arguments)


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        (zeros(N + 1), "bias must have the shape"),
        (zeros(1, N), "bias must have the shape"),
        (zeros(N, dtype=torch.float64), "bias must be .* not torch.float64"),
        (zeros(2 * N)[::2], "bias must be contiguous"),
        (zeros(N, device="meta"), "bias is on meta"),
    ],
)
def test_a_bias_that_does_not_fit_is_refused(bias: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scaled_mm(**drawn(by_blocks=False), bias=bias)


@pytest.mark.parametrize(("m", "n", "block"), [(256, 6144, 64), (512, 4096, 128), (1024, 2048, 128), (512, 7168, 128)])
def test_small_tiles_are_for_results_that_they_cover_at_once(
    m: int, n: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BLOCKWISE, "interpreted", lambda: False)
    assert BLOCKWISE.configure(m, n, 1, described=True).block_m == block
