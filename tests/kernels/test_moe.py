"""The grouped products beyond the suite's cases: a result that they allocate themselves, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernels_smoke.moe import reference
from kernels_smoke.moe.grouped_mm import grouped_mm
from kernels_smoke.moe.grouped_mm_blockwise import grouped_mm_blockwise
from tests.kernels.support import DEVICE, error, zeros

TOKENS, GROUPS, N, K = 6, 3, 24, 144
FP16, FP32, INT32 = torch.float16, torch.float32, torch.int32


def drawn(*, by_blocks: bool) -> dict[str, torch.Tensor]:
    """Operands of three groups with 1, 0 and 5 rows."""
    generator = torch.Generator().manual_seed(20261127)
    a = torch.randn(TOKENS, K, generator=generator).to(DEVICE, FP16)
    b = torch.randn(GROUPS, N, K, generator=generator).to(DEVICE, FP16)
    offsets = torch.tensor([0, 1, 1, 6], dtype=INT32, device=DEVICE)
    made = {"a": a, "b": b, "offsets": offsets}
    if by_blocks:
        scale_a, scale_b = (
            torch.rand(shape, generator=generator).to(DEVICE) for shape in ((TOKENS, 2), (GROUPS, 1, 2))
        )
        made |= {"scale_a": scale_a, "scale_b": scale_b}
    return made


def function(*, by_blocks: bool) -> Callable[..., torch.Tensor]:
    return grouped_mm_blockwise if by_blocks else grouped_mm


@pytest.mark.parametrize("by_blocks", [False, True])
@pytest.mark.parametrize("out_dtype", [None, FP16, FP32], ids=str)
def test_a_result_that_is_not_given_is_allocated(by_blocks: bool, out_dtype: Any) -> None:
    arguments = drawn(by_blocks=by_blocks)
    out = function(by_blocks=by_blocks)(**arguments, out_dtype=out_dtype)
    assert (out.shape, out.dtype, out.device) == ((TOKENS, N), out_dtype or torch.bfloat16, arguments["a"].device)
    assert error(out, reference.grouped_mm(**arguments)) < 1e-2


@pytest.mark.parametrize("by_blocks", [False, True])
def test_a_routed_result_has_a_row_for_each_index(by_blocks: bool) -> None:
    arguments = drawn(by_blocks=by_blocks)
    rows = torch.tensor([5, 0, 0, 3, 2, 1], dtype=torch.int64, device=DEVICE)
    out = torch.empty(6, N, dtype=FP32, device=DEVICE)
    assert function(by_blocks=by_blocks)(**arguments, rows=rows, out=out) is out
    assert error(out, reference.grouped_mm(**arguments, rows=rows)) < 1e-5


@pytest.mark.parametrize("by_blocks", [False, True])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": zeros(K)}, r"a must be \[tokens, K\], not 1-dimensional"),
        ({"b": zeros(N, K)}, r"b must be \[groups, N, K\], not 2-dimensional"),
        ({"a": zeros(TOKENS, 0), "b": zeros(GROUPS, N, 0)}, "K is 0"),
        ({"b": zeros(0, N, K)}, "b has 0 groups; 1 to 4096 are possible"),
        ({"a": zeros(TOKENS, K, dtype=FP32)}, "a must be .* not torch.float32"),
        ({"a": zeros(K, TOKENS).t()}, "rows of a must be contiguous"),
        ({"b": zeros(GROUPS, N, K + 1)}, "b must have the shape"),
        ({"b": zeros(GROUPS, N, K, dtype=torch.bfloat16)}, "b must be torch.float16, not torch.bfloat16"),
        ({"b": zeros(GROUPS, K, N).transpose(1, 2)}, "rows of b must be contiguous"),
        ({"b": zeros(GROUPS, N, K, device="meta")}, "b is on meta"),
        ({"offsets": zeros(GROUPS, dtype=INT32)}, r"offsets must have the shape \(4,\)"),
        ({"offsets": zeros(GROUPS + 1, dtype=FP32)}, "offsets must be torch.int32 or torch.int64"),
        ({"offsets": zeros(GROUPS + 1, dtype=INT32, device="meta")}, "offsets is on meta"),
        ({"rows": zeros(2, 3, dtype=INT32)}, r"rows must be \[M\], not 2-dimensional"),
        ({"rows": zeros(6, dtype=torch.int16)}, "rows must be torch.int32 or torch.int64"),
        ({"out_dtype": torch.float64}, "out_dtype must be .* not torch.float64"),
        ({"out": zeros(TOKENS, N + 1)}, "out must have the shape"),
        ({"rows": zeros(7, dtype=INT32), "out": zeros(TOKENS, N)}, r"out must have the shape \(7, 24\)"),
        ({"out": zeros(TOKENS, N), "out_dtype": FP32}, "out must be torch.float32, not torch.float16"),
        ({"out": zeros(N, TOKENS).t()}, "rows of out must be contiguous"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(by_blocks: bool, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(by_blocks=by_blocks)(**{**drawn(by_blocks=by_blocks), **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale_a": zeros(TOKENS, 1, dtype=FP32)}, r"scale_a must have the shape \(6, 2\)"),
        ({"scale_b": zeros(GROUPS, 2, 2, dtype=FP32)}, r"scale_b must have the shape \(3, 1, 2\)"),
        ({"scale_a": zeros(TOKENS, 2)}, "scale_a must be float32, not torch.float16"),
        ({"scale_b": zeros(GROUPS, 1, 2, dtype=FP32, device="meta")}, "scale_b is on meta"),
    ],
)
def test_scales_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grouped_mm_blockwise(**{**drawn(by_blocks=True), **changes})
