"""Muon as a network meets it: a short training, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernels_smoke.launching.gluon import GLUON
from kernels_smoke.muon import newton_schulz as module
from kernels_smoke.muon import reference
from kernels_smoke.muon.gram_newton_schulz import gram_newton_schulz
from kernels_smoke.muon.muon_step import muon_step
from kernels_smoke.muon.newton_schulz import newton_schulz
from kernels_smoke.muon.qk_clip import qk_clip
from tests.kernels.support import DEVICE, error

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


# The Gram form, MuonClip, and the memory of the optimizer


def spread(rows: int, columns: int, orders: float) -> torch.Tensor:
    """A matrix whose singular values span so many orders of magnitude."""
    generator = torch.Generator().manual_seed(4)
    left = torch.randn(rows, rows, generator=generator) * torch.logspace(0, -orders, rows)[None, :]
    return (left @ torch.randn(rows, columns, generator=generator)).to(DEVICE)


def test_the_gram_form_is_as_exact_as_the_other_where_singular_values_differ_much() -> None:
    x = spread(64, 192, orders=4.0).half()
    wanted = reference.newton_schulz(x)
    by_gram, by_x = (error(function(x), wanted) for function in (gram_newton_schulz, newton_schulz))
    assert by_gram < max(2 * by_x, 2e-2)


def test_without_a_restart_small_singular_values_are_lost() -> None:
    x = spread(64, 192, orders=4.0).half()
    wanted = reference.newton_schulz(x)
    restarted, straight = (error(gram_newton_schulz(x, restart=steps), wanted) for steps in (2, 5))
    assert restarted < straight


@pytest.mark.skipif(not GLUON, reason="our Gluon kernels compile with Triton 3.6 and 3.7 only")
def test_products_are_chained_where_they_have_tiles_enough() -> None:
    from kernels_smoke.muon.specialized_chain import chainable

    assert all(chainable(*shape) for shape in ((1, 4096), (8, 1024), (4, 1024), (9, 640)))
    assert not any(chainable(*shape) for shape in ((1, 2048), (3, 1024), (100, 384), (8, 1088)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": torch.zeros(5)}, "x must be a matrix or a batch of matrices, not 1-dimensional"),
        ({"restart": 0}, "steps and restart must be 1 or more, not 5 and 0"),
        ({"coefficients": (5.0, 1.0, 1.0)}, "the first coefficient must be from 1 to 4, not 5.0"),
        ({"out": torch.zeros(4, 8, device=DEVICE)}, "out must be torch.bfloat16 or torch.float16, not torch.float32"),
    ],
)
def test_what_the_gram_form_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gram_newton_schulz(**{"x": torch.zeros(4, 8, dtype=torch.float16, device=DEVICE)} | change)


def test_clipped_weights_bring_the_greatest_logit_to_the_threshold() -> None:
    generator = torch.Generator().manual_seed(6)
    heads, key_heads, size, width = 4, 2, 8, 32
    query, key = (torch.randn(count * size, width, generator=generator).to(DEVICE) for count in (heads, key_heads))
    x = torch.randn(20, width, generator=generator).to(DEVICE)

    def greatest() -> torch.Tensor:
        queries, keys = ((x @ each.t()).unflatten(1, (-1, size)) for each in (query, key))
        return torch.einsum("ihd,jhd->hij", queries, keys.repeat_interleave(heads // key_heads, dim=1)).amax(dim=(1, 2))

    before = greatest()
    threshold = float(before.median())
    qk_clip(query, key, before, threshold=threshold)
    assert torch.allclose(greatest(), before.clamp(max=threshold), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_logits": torch.ones(3)}, "16 rows of query_weight are no multiple of 3 heads"),
        ({"key_weight": torch.ones(6, 8)}, "6 rows of key_weight are not key heads of 4 that 4 heads share"),
        ({"threshold": 0.0}, "threshold must be positive"),
        ({"max_logits": torch.ones(4, dtype=torch.float64)}, "max_logits must be torch.float32"),
    ],
)
def test_what_the_clipping_refuses(change: dict[str, Any], message: str) -> None:
    weights = {"query_weight": torch.ones(16, 8), "key_weight": torch.ones(8, 8)}
    arguments: dict[str, Any] = weights | {"max_logits": torch.ones(4)} | change
    for name, value in arguments.items():
        arguments[name] = value.to(DEVICE) if isinstance(value, torch.Tensor) else value
    with pytest.raises(ValueError, match=message):
        qk_clip(**arguments)


def test_muon_keeps_four_bytes_for_each_parameter_where_adamw_keeps_eight() -> None:
    weight = torch.nn.Parameter(torch.zeros(64, 96))
    adam = torch.optim.AdamW([weight])
    weight.grad = torch.ones_like(weight)
    adam.step()
    moments = [value for value in adam.state[weight].values() if value.numel() > 1]
    momentum = torch.zeros_like(weight)  # all that muon_step takes from one step to the next
    assert sum(value.nbytes for value in moments) == 8 * weight.numel()
    assert momentum.nbytes == 4 * weight.numel()
