"""Cross entropy as training uses it, against torch; and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.loss.cross_entropy import cross_entropy
from tests.kernels.support import DEVICE, error, zeros


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_mean_and_its_gradient_are_those_of_torch(smoothing: float) -> None:
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(7, 90, generator=generator).to(DEVICE).requires_grad_()
    targets = torch.tensor([3, -1, 89, 0, -1, 7, 7], device=DEVICE)
    wanted = torch.nn.functional.cross_entropy(logits, targets, ignore_index=-1, label_smoothing=smoothing)
    (wanted_gradient,) = torch.autograd.grad(3 * wanted, logits)
    weight = 1.0 / (targets != -1).sum().float()
    gradient = torch.empty_like(logits)
    losses = cross_entropy(
        logits.detach(), targets, ignore_index=-1, label_smoothing=smoothing, weight=weight, gradient=gradient
    )
    assert float(losses.sum() * weight) == pytest.approx(float(wanted.detach()), rel=1e-6)
    assert error(3 * gradient, wanted_gradient) < 1e-6


def test_logits_of_an_ignored_row_do_not_matter() -> None:
    logits = torch.full((1, 40), float("nan"), device=DEVICE)
    gradient = torch.empty_like(logits)
    losses = cross_entropy(logits, torch.tensor([-100], device=DEVICE), gradient=gradient)
    assert not losses.any()
    assert not gradient.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": zeros(40)}, "logits must be .rows, width., not 1-dimensional"),
        ({"targets": zeros(3)}, "targets must be torch.int32 or torch.int64"),
        ({"targets": zeros(6, dtype=torch.int64)[::2]}, "rows of targets must be contiguous"),
        ({"label_smoothing": 1.0}, "label_smoothing must be at least 0 and less than 1, not 1.0"),
        ({"weight": zeros(2, dtype=torch.float32)}, "weight must be one element"),
        ({"weight": zeros(1)}, "weight must be torch.float32"),
        ({"gradient": zeros(3, 41)}, "gradient must have the shape"),
        ({"gradient": zeros(1, 40).expand(3, 40)}, "are at the same place"),
        ({"out": zeros(3)}, "out must be torch.float32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cross_entropy(**{"logits": zeros(3, 40), "targets": zeros(3, dtype=torch.int64)} | change)
