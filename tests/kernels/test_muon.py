"""Muon as a network meets it: a short training, and what its functions refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernels_smoke.muon import newton_schulz as module
from kernels_smoke.muon import reference
from kernels_smoke.muon.muon_step import muon_step
from kernels_smoke.muon.newton_schulz import newton_schulz
from tests.kernels.support import DEVICE

ITERATE = torch.bfloat16 if DEVICE == "cuda" else torch.float16  # the interpreter is wrong in bfloat16
RATE = 0.08

Step = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None]


def train(step: Step, dtype: torch.dtype, steps: int = 8) -> list[float]:
    """The losses of a network with one hidden layer, whose matrix ``step`` updates and whose rest AdamW does."""
    generator = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(DEVICE, dtype)

    x, teacher = normal(128, 20), normal(20, 4) / 20**0.5
    wanted = torch.tanh(x @ teacher)
    hidden, bias = (normal(30, 20) / 20**0.5).requires_grad_(), torch.zeros(30, device=DEVICE, dtype=dtype)
    output = (normal(4, 30) / 30**0.5).requires_grad_()
    others = [bias.requires_grad_(), output]
    adamw = torch.optim.AdamW(others, lr=0.01)
    momentum = torch.zeros_like(hidden)
    losses = []
    for _ in range(steps):
        loss = (torch.tanh(x @ hidden.T + bias) @ output.T - wanted).square().mean()
        losses.append(loss.item())
        hidden_gradient, *gradients = torch.autograd.grad(loss, [hidden, *others])
        with torch.no_grad():
            step(hidden, hidden_gradient, momentum)
        for parameter, gradient in zip(others, gradients, strict=True):
            parameter.grad = gradient
        adamw.step()
    return losses


def ours(weight: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor) -> None:
    muon_step(weight, gradient, momentum, learning_rate=RATE, dtype=ITERATE)


def references(weight: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor) -> None:
    stepped, moved = reference.muon_step(weight, gradient, momentum, learning_rate=RATE)
    weight.copy_(stepped)
    momentum.copy_(moved)


def not_at_all(weight: torch.Tensor, gradient: torch.Tensor, momentum: torch.Tensor) -> None:
    """Leave the hidden layer as it is."""


def test_a_network_learns_as_it_does_with_the_reference() -> None:
    losses, expected = train(ours, torch.float32), train(references, torch.float64)
    without = train(not_at_all, torch.float64)
    assert losses == pytest.approx(expected, rel=0.02)
    assert losses[-1] < 0.5 * losses[0]
    assert losses[-1] < 0.8 * without[-1]


def test_the_reference_is_what_torch_has() -> None:
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("torch 2.9 and newer have Muon")
    weight = torch.randn(40, 24, generator=torch.Generator().manual_seed(2)).requires_grad_()
    weight.grad = torch.randn(40, 24, generator=torch.Generator().manual_seed(3))
    expected, _ = reference.muon_step(
        weight.detach(), weight.grad, torch.zeros(40, 24), learning_rate=0.5, weight_decay=0.1
    )
    torch.optim.Muon([weight], lr=0.5, weight_decay=0.1, momentum=0.95, adjust_lr_fn="original").step()
    difference = (weight.detach().double() - expected).norm() / expected.norm()
    assert difference < 0.04  # torch iterates in bfloat16


def test_without_descriptors_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 40, 24, generator=torch.Generator().manual_seed(4)).to(DEVICE, ITERATE)
    described = newton_schulz(x, steps=2)
    monkeypatch.setattr(module, "described", lambda _matrix: False)
    through_pointers = newton_schulz(x, steps=2)
    difference = (through_pointers.double() - described.double()).norm() / described.double().norm()
    assert difference < 5e-3  # tiles may differ, and with them the order of the sums


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": torch.zeros(4)}, "x must be a matrix or a batch of matrices, not 1-dimensional"),
        ({"x": torch.zeros(4, 4, dtype=torch.float64)}, "x must be torch.bfloat16 or torch.float16 or torch.float32"),
        ({"x": torch.zeros(4, 4), "steps": 0}, "steps must be 1 or more, not 0"),
        ({"x": torch.zeros(4, 4), "coefficients": (1.0, 2.0)}, "coefficients must be three numbers, not 2"),
        ({"x": torch.zeros(4, 4), "out": torch.zeros(4, 5)}, r"out must have the shape \(4, 4\), not \(4, 5\)"),
        ({"x": torch.zeros(4, 4), "out": torch.zeros(4, 4)}, "out must be torch.bfloat16 or torch.float16, not"),
        ({"x": torch.zeros(4, 8, device=DEVICE)[:, ::2]}, "the rows of x must be contiguous"),
        ({"x": torch.zeros(2, 3, 4, 4, device=DEVICE)[:, :2]}, "the matrices of x must be at one distance"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        newton_schulz(**arguments)


def test_a_step_is_for_matrices_of_one_kind() -> None:
    weight = torch.zeros(4, 4)
    with pytest.raises(ValueError, match=r"gradient must have the shape \(4, 4\) of weight"):
        muon_step(weight, torch.zeros(4, 3), torch.zeros(4, 4), learning_rate=0.1)
    with pytest.raises(ValueError, match=r"momentum must be torch\.float32 as weight is, not torch\.bfloat16"):
        muon_step(weight, weight, weight.bfloat16(), learning_rate=0.1)
    with pytest.raises(ValueError, match="Muon is for matrices; weight is 1-dimensional"):
        muon_step(weight[0], weight[0], weight[0], learning_rate=0.1)
    with pytest.raises(ValueError, match=r"decay must be at least 0 and less than 1, not 1\.0"):
        muon_step(weight, weight, weight.clone(), learning_rate=0.1, decay=1.0)
    with pytest.raises(ValueError, match="weight and momentum must not share memory"):
        muon_step(weight, weight.clone(), weight, learning_rate=0.1)
    with pytest.raises(ValueError, match="elements of weight are at the same place"):
        muon_step(weight[:1].expand(4, 4), weight, weight, learning_rate=0.1)


@pytest.mark.parametrize(
    ("weights", "iterate", "message"),
    [
        (torch.float64, torch.float16, "weight must be torch.bfloat16 or torch.float16 or torch.float32, not"),
        (torch.float32, torch.float32, "the iteration runs in torch.bfloat16 or torch.float16, not in torch.float32"),
    ],
)
def test_a_step_that_is_refused_changes_nothing(weights: Any, iterate: Any, message: str) -> None:
    weight, momentum = torch.zeros(4, 4, dtype=weights), torch.zeros(4, 4, dtype=weights)
    with pytest.raises(ValueError, match=message):
        muon_step(weight, torch.ones_like(weight), momentum, learning_rate=0.1, dtype=iterate)
    assert not momentum.any()


def test_a_step_takes_parameters_and_matrices_without_elements() -> None:
    weight = torch.nn.Parameter(torch.ones(4, 6, device=DEVICE))
    muon_step(weight, torch.ones_like(weight), torch.zeros_like(weight), learning_rate=0.1, dtype=ITERATE)
    assert not torch.equal(weight, torch.ones_like(weight))
    assert weight.is_leaf
    nothing = torch.zeros(4, 0, device=DEVICE)
    muon_step(nothing, nothing, nothing, learning_rate=0.1, dtype=ITERATE)
