"""The floor of an external function: its memory traffic, each tensor as often as necessary."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.model import Function, case
from kernels_smoke.suite.own.description import SEED, described


def test_what_a_function_changes_in_place_and_returns_counts_once() -> None:
    function = Function(
        _added,
        inputs=lambda _draw, rows: {"x": torch.ones(rows, 4), "more": torch.ones(rows, 4)},
        reference=lambda x, more: (x + more, (x + more) * 2),
        cases=[case("rows", rows=8)],
        name="added",
        modifies=("x",),
        timed={"rows": 8},
        bar=2.0,
    )
    (speed,) = described(function, __name__).speeds
    inputs: dict[str, Any] = {"x": torch.ones(8, 4), "more": torch.ones(8, 4), SEED: 0}
    assert speed.work(inputs, {}).bytes == 4 * inputs["x"].nbytes  # x and more are read, x and the product written
    assert torch.equal(inputs["x"], torch.ones(8, 4))


def _added(x: torch.Tensor, more: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    x += more
    return x, x * 2
