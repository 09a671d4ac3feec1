"""The block-scaled product beyond the suite's cases: dtypes of each format, its emulation, and its refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.block_scaled import reference
from kernels_smoke.block_scaled.block_scaled_mm import block_scaled_mm
from kernels_smoke.block_scaled.formats import E2M1, format_of
from tests.kernels.support import DEVICE, error, zeros

M, N, K = 20, 24, 64
FP8, E8M0, FP32, UINT8 = torch.float8_e4m3fn, torch.float8_e8m0fnu, torch.float32, torch.uint8


def drawn(**changes: Any) -> dict[str, Any]:
    """Operands in mxfp4, as bytes."""
    generator = torch.Generator().manual_seed(20261127)
    a, b = (torch.randint(0, 256, (rows, K // 2), generator=generator, dtype=UINT8) for rows in (M, N))
    scale_a, scale_b = (torch.randint(125, 130, (rows, 2), generator=generator, dtype=UINT8) for rows in (M, N))
    made = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b}
    return {**{name: tensor.to(DEVICE) for name, tensor in made.items()}, **changes}


def test_every_code_of_e2m1_is_what_the_specification_says() -> None:
    codes = torch.arange(16, dtype=UINT8)
    magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    values = reference.elements_of((codes | codes << 4)[None, :])[0]
    assert values.tolist() == [value for sign in (1, -1) for size in magnitudes for value in (sign * size,) * 2]


def test_the_scales_of_e8m0_are_powers_of_two() -> None:
    assert reference.scales_of(torch.tensor([0, 126, 127, 254], dtype=UINT8)).tolist() == [2.0**-127, 0.5, 1, 2.0**127]


@pytest.mark.parametrize(
    ("elements", "scales", "name"),
    [
        (FP8, E8M0, "mxfp8"),
        (FP8, UINT8, "mxfp8"),
        (UINT8, E8M0, "mxfp4"),
        (UINT8, UINT8, "mxfp4"),
        (E2M1, E8M0, "mxfp4"),
        (UINT8, FP8, "nvfp4"),
        (E2M1, FP8, "nvfp4"),
        (FP8, FP8, ""),
        (torch.bfloat16, E8M0, ""),
    ],
    ids=str,
)
def test_the_dtypes_say_which_format_it_is(elements: torch.dtype, scales: torch.dtype, name: str) -> None:
    found = format_of(elements, scales)
    assert (found.name if found else "") == name


@pytest.mark.parametrize("out_dtype", [None, FP32], ids=str)
def test_a_result_that_is_not_given_is_allocated(out_dtype: Any) -> None:
    out = block_scaled_mm(**drawn(), out_dtype=out_dtype)
    assert (out.shape, out.dtype) == ((M, N), out_dtype or torch.bfloat16)
    assert error(out, reference.block_scaled_mm(**drawn())) < 1e-2


def test_bytes_and_their_own_dtypes_give_the_same() -> None:
    given = drawn()
    named = {name: tensor.view(E8M0 if "scale" in name else E2M1) for name, tensor in given.items()}
    assert torch.equal(block_scaled_mm(**given, out_dtype=FP32), block_scaled_mm(**named, out_dtype=FP32))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": zeros(K, dtype=UINT8)}, "a and b must be matrices, not 1- and 2-dimensional"),
        ({"a": zeros(M, K)}, "elements of torch.float16 with scales of torch.uint8 are no format"),
        ({"a": zeros(M, 24, dtype=UINT8)}, "K must be a multiple of 32 in mxfp4, not 48"),
        ({"a": zeros(M, 0, dtype=UINT8)}, "K must be a multiple of 32 in mxfp4, not 0"),
        ({"b": zeros(N, 48, dtype=UINT8)}, "b must have the shape"),
        ({"b": zeros(N, 32, dtype=FP8)}, "b must be torch.uint8, not torch.float8_e4m3fn"),
        ({"b": zeros(32, N, dtype=UINT8).t()}, "rows of b must be contiguous"),
        ({"scale_a": zeros(M, 4, dtype=UINT8)}, r"scale_a must have the shape \(20, 2\)"),
        ({"scale_b": zeros(N, 2, dtype=FP8)}, "scale_b must be torch.uint8"),
        ({"scale_b": zeros(2, N, dtype=UINT8).t()}, "rows of scale_b must be contiguous"),
        ({"scale": zeros(2, dtype=FP32)}, "scale must have one element, not 2"),
        ({"scale": zeros(1)}, "scale must be torch.float32"),
        ({"out_dtype": torch.float64}, "out_dtype must be"),
        ({"out": zeros(M, N + 1)}, "out must have the shape"),
        ({"out": zeros(N, M).t()}, "rows of out must be contiguous"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block_scaled_mm(**drawn(**changes))


@pytest.mark.parametrize("rows", [3, M])
def test_a_plan_takes_other_weights(rows: int) -> None:
    given = drawn()
    given = {**given, "a": given["a"][:rows], "scale_a": given["scale_a"][:rows]}
    plan = block_scaled_mm.plan(**given, out_dtype=FP32)
    other = {**given, "b": given["b"].flip(0), "scale_b": given["scale_b"].flip(0)}
    wanted = block_scaled_mm(**other, out_dtype=FP32)
    assert torch.equal(plan(b=other["b"], scale_b=other["scale_b"]), wanted)
