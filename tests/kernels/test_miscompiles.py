"""The probes of known miscompiles beyond the suite's cases: their own results, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.suite.miscompiles import reference
from kernels_smoke.suite.miscompiles.chained_dots import chained_dots
from kernels_smoke.suite.miscompiles.decayed_accumulator import decayed_accumulator
from tests.kernels.support import DEVICE, error, zeros

M, N, K = 20, 24, 33
HEADS, TOKENS, DEPTH, WIDTH = 2, 70, 16, 20
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def normal(*shape: int, scale: float = 1.0, seed: int) -> torch.Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).to(DEVICE, FP16)


def apart(*shape: int, dtype: Any = FP16) -> torch.Tensor:
    """Rows that are further apart than they are wide."""
    return zeros(*shape[:-1], shape[-1] + 8, dtype=dtype)[..., : shape[-1]]


def matrices() -> dict[str, torch.Tensor]:
    shapes = {"a": (M, K), "b": (K, N), "c": (M, K), "d": (K, N)}
    return {name: normal(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}


def recurrence(*, delta: bool = True) -> dict[str, torch.Tensor]:
    made = {
        "q": normal(HEADS, TOKENS, DEPTH, seed=1),
        "k": normal(HEADS, TOKENS, DEPTH, scale=0.05, seed=2),
        "v": normal(HEADS, TOKENS, WIDTH, seed=3),
        "decay": torch.tensor([[0.5, 0.9], [0.8, 0.6]], device=DEVICE),
    }
    return {**made, "w": normal(HEADS, TOKENS, DEPTH, scale=0.05, seed=4)} if delta else made


def test_a_sum_of_products_that_is_not_given_is_allocated() -> None:
    out = chained_dots(**matrices())
    assert out.shape == (M, N)
    assert out.dtype == FP32
    assert error(out, reference.chained_dots(**matrices())) < 1e-5
    given = torch.empty_like(out)
    assert chained_dots(**matrices(), out=given) is given
    assert torch.equal(given, out)


@pytest.mark.parametrize("delta", [False, True])
def test_readings_and_a_state_that_are_not_given_are_allocated(delta: bool) -> None:
    out = decayed_accumulator(**recurrence(delta=delta))
    shapes = ((HEADS, TOKENS, WIDTH), (HEADS, DEPTH, WIDTH))
    for got, wanted, shape in zip(out, reference.decayed_accumulator(**recurrence(delta=delta)), shapes, strict=True):
        assert got.shape == shape
        assert got.dtype == FP32
        assert error(got, wanted) < 1e-3
    given = tuple(torch.empty_like(tensor) for tensor in out)
    returned = decayed_accumulator(**recurrence(delta=delta), out=given)
    for own, one, other in zip(returned, given, out, strict=True):
        assert own is one
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": zeros(K)}, "a and b must be matrices, not 1- and 2-dimensional"),
        ({"b": zeros(1, K, N)}, "a and b must be matrices, not 2- and 3-dimensional"),
        ({"a": zeros(M, K, dtype=FP32)}, "a must be .* not torch.float32"),
        ({"b": zeros(K + 1, N)}, "b must have the shape"),
        ({"c": zeros(M + 1, K)}, "c must have the shape"),
        ({"d": zeros(K, N + 1)}, "d must have the shape"),
        *(
            case
            for name, shape in (("b", (K, N)), ("c", (M, K)), ("d", (K, N)))
            for case in (
                ({name: zeros(*shape, dtype=BF16)}, f"{name} must be torch.float16, not torch.bfloat16"),
                ({name: zeros(*shape, device="meta")}, f"{name} is on meta"),
            )
        ),
        *(
            ({name: apart(*shape)}, f"{name} must be contiguous")
            for name, shape in (("a", (M, K)), ("b", (K, N)), ("c", (M, K)), ("d", (K, N)))
        ),
        ({"d": zeros(N, K).t()}, "d must be contiguous"),
        ({"out": zeros(M, N + 1, dtype=FP32)}, "out must have the shape"),
        ({"out": zeros(M, N)}, "out must be torch.float32, not torch.float16"),
        ({"out": zeros(M, N, dtype=FP32, device="meta")}, "out is on meta"),
        ({"out": apart(M, N, dtype=FP32)}, "out must be contiguous"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chained_dots(**{**matrices(), **changes})


READINGS, STATE = (HEADS, TOKENS, WIDTH), (HEADS, DEPTH, WIDTH)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": zeros(TOKENS, DEPTH)}, "q and v must be 3-dimensional, not 2- and 3-dimensional"),
        ({"v": zeros(1, *READINGS)}, "q and v must be 3-dimensional, not 3- and 4-dimensional"),
        *(({"q": zeros(HEADS, TOKENS, depth)}, f"q has the depth {depth}") for depth in (0, 8, 24, 256)),
        ({"q": zeros(HEADS, TOKENS, DEPTH, dtype=FP32)}, "q must be .* not torch.float32"),
        ({"k": zeros(HEADS, TOKENS, 32)}, "k must have the shape"),
        ({"w": zeros(HEADS, TOKENS + 1, DEPTH)}, "w must have the shape"),
        ({"v": zeros(HEADS + 1, TOKENS, WIDTH)}, "v must have the shape"),
        ({"decay": zeros(HEADS, 1, dtype=FP32)}, "decay must have the shape"),
        ({"decay": zeros(HEADS, 2)}, "decay must be torch.float32, not torch.float16"),
        ({"decay": zeros(HEADS, 2, dtype=FP32, device="meta")}, "decay is on meta"),
        ({"decay": apart(HEADS, 2, dtype=FP32)}, "decay must be contiguous"),
        *(
            case
            for name, last in (("k", DEPTH), ("v", WIDTH), ("w", DEPTH))
            for case in (
                ({name: zeros(HEADS, TOKENS, last, dtype=BF16)}, f"{name} must be torch.float16, not torch.bfloat16"),
                ({name: zeros(HEADS, TOKENS, last, device="meta")}, f"{name} is on meta"),
            )
        ),
        *(
            ({name: apart(HEADS, TOKENS, last)}, f"{name} must be contiguous")
            for name, last in (("q", DEPTH), ("k", DEPTH), ("v", WIDTH), ("w", DEPTH))
        ),
        *(
            ({"out": out}, message)
            for out, message in (
                ((zeros(*STATE, dtype=FP32), zeros(*STATE, dtype=FP32)), r"out\[0\] must have the shape"),
                ((zeros(*READINGS, dtype=FP32), zeros(*READINGS, dtype=FP32)), r"out\[1\] must have the shape"),
                ((zeros(*READINGS), zeros(*STATE, dtype=FP32)), r"out\[0\] must be torch.float32"),
                ((zeros(*READINGS, dtype=FP32), zeros(*STATE)), r"out\[1\] must be torch.float32"),
                ((apart(*READINGS, dtype=FP32), zeros(*STATE, dtype=FP32)), "out.* must be contiguous"),
                ((zeros(*READINGS, dtype=FP32), apart(*STATE, dtype=FP32)), "out.* must be contiguous"),
            )
        ),
    ],
)
def test_what_does_not_fit_the_recurrence_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decayed_accumulator(**{**recurrence(), **changes})
