"""The k greatest of each row beyond the suite's cases: draws over many uniforms, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.routing.top_k_sample import top_k_sample
from kernels_smoke.routing.topk_softmax import topk_softmax
from tests.kernels.support import DEVICE, zeros


def test_uniforms_draw_each_token_as_often_as_its_weight_says() -> None:
    logits = torch.tensor([0.0, 2.0, 1.0, -1.0], device=DEVICE).expand(200, 4).contiguous()
    uniforms = (torch.arange(200, device=DEVICE) + 0.5) / 200
    counts = top_k_sample(logits, uniforms, 3).long().bincount(minlength=4)
    wanted = 200 * torch.softmax(torch.tensor([0.0, 2.0, 1.0, float("-inf")]), dim=0)
    assert float((counts.cpu() - wanted).abs().max()) <= 1


@pytest.mark.parametrize("width", [20, 100], ids=["a row in registers", "groups"])
def test_zeros_of_both_signs_are_equal(width: int) -> None:
    logits = zeros(1, width)
    logits[0, ::2] = -0.0
    weights, indices = topk_softmax(logits, 5)
    assert indices.tolist() == [[0, 1, 2, 3, 4]]
    assert weights.tolist() == [[pytest.approx(1 / width)] * 5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": zeros(3)}, "logits must be .rows, width., not 1-dimensional"),
        ({"k": 0}, "k must be from 1 to 40, not 0"),
        ({"k": 41}, "k must be from 1 to 40, not 41"),
        ({"logits": zeros(1, 300), "k": 129}, "k must be from 1 to 128, not 129"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"out": (zeros(3, 6), zeros(3, 6, dtype=torch.int32))}, r"out\[0\] must be torch.float32"),
        ({"out": (zeros(3, 6, dtype=torch.float32), zeros(3, 6))}, r"out\[1\] must be torch.int32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        topk_softmax(**{"logits": zeros(3, 40), "k": 6} | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"uniforms": zeros(3)}, "uniforms must be torch.float32"),
        ({"uniforms": zeros(6, dtype=torch.float32)[::2]}, "rows of uniforms must be contiguous"),
        ({"out": zeros(3, dtype=torch.int64)}, "out must be torch.int32"),
    ],
)
def test_what_sampling_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        top_k_sample(**{"logits": zeros(3, 40), "uniforms": zeros(3, dtype=torch.float32), "k": 6} | change)
