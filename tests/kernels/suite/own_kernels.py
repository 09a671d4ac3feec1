"""Files for ``--kernels``: functions of each kind that can be described, right and wrong."""

# ruff: noqa: N803  # Triton's constexpr arguments are written in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"
# Triton's functions take pointers and values that no Python type describes, and torch is Any here.

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Function, Mutant, case, here

FP32 = torch.float32


@triton.jit
def _clamp(x, limit):
    return tl.minimum(x, limit)


@triton.jit
def _scale_kernel(x, out, width, x_stride, out_stride, factor, limit, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    values = tl.load(x + row * x_stride + columns, mask=mask, other=0.0)
    tl.store(out + row * out_stride + columns, _clamp(values * factor, limit), mask=mask)


def scale(
    x: torch.Tensor, factor: float = 2.0, *, into: torch.Tensor | None = None, limit: float = 1e9
) -> torch.Tensor:
    """``x`` times ``factor``, at most ``limit``; ``into`` may be ``x``."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device) if into is None else into
    block = triton.next_power_of_2(x.shape[1])
    _scale_kernel[(len(x),)](x, out, x.shape[1], x.stride(0), out.stride(0), factor, limit, BLOCK=block)
    return out


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return scale(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return scale(gradients[0].contiguous(), _Double.factor)

    factor = 2.0


class _WrongWayBack(_Double):
    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return scale(gradients[0].contiguous(), 2.5)


def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
    """Two results, and a third that is not wanted."""
    return scale(x), scale(x, 3.0), None


def in_place(x: torch.Tensor) -> None:
    """Double ``x``."""
    scale(x, into=x)


def leaves_a_hole(x: torch.Tensor) -> torch.Tensor:
    """Write all but the last row."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    scale(x[:-1], into=out[:-1])
    return out


def writes_behind(x: torch.Tensor) -> torch.Tensor:
    """Write a row after its own result."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    scale(x[:-1], into=out[:-1])
    block = triton.next_power_of_2(x.shape[1])
    _scale_kernel[(2,)](x[-1:], out[-1:], x.shape[1], x.stride(0), out.stride(0), 2.0, 1e9, BLOCK=block)
    return out


def spoils(x: torch.Tensor) -> torch.Tensor:
    """Change its argument, and not say so."""
    out = scale(x)
    scale(x, 0.0, into=x)
    return out


def flags_but_one(x: torch.Tensor) -> torch.Tensor:
    """Say of all numbers but the last whether they are positive."""
    out = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    out.view(-1)[:-1] = x.reshape(-1)[:-1] > 0
    return out


library = torch.library.Library("own_kernels", "DEF")
library.define("writes_behind(Tensor x) -> Tensor")
library.impl("writes_behind", writes_behind, "CPU")
library.impl("writes_behind", writes_behind, "CUDA")


class _Unsteady:
    """Right at the first launch alone."""

    launches = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.launches += 1
        return scale(x, 1.0 + (self.launches % 2))


def raises(x: torch.Tensor) -> torch.Tensor:
    """Refuse."""
    raise RuntimeError(f"no kernel image for {tuple(x.shape)}")


def inputs(draw: Draw, rows: int, width: int, padding: int = 0) -> dict[str, torch.Tensor]:
    """One argument, with rows further apart than they are wide."""
    return {"x": draw.normal(rows, width, dtype=FP32, row_stride=width + padding, name="x")}


def doubled_in_place(x: torch.Tensor) -> None:
    """What in_place does, without a kernel."""
    x.mul_(2)


def broken_inputs(draw: Draw, rows: int, width: int) -> dict[str, torch.Tensor]:
    """Break."""
    raise KeyError("weights")


def plain_inputs(draw: Draw, rows: int, width: int, padding: int = 0) -> dict[str, torch.Tensor]:
    """The same under the name that functions of torch have for it."""
    return {"input": inputs(draw, rows, width, padding)["x"]}


CASES = (here("odd", rows=5, width=127, padding=17), case("wide", rows=64, width=4096))


def function(call: Any, reference: Any, name: str = "", **more: Any) -> Function:
    """A description of ``call`` with the inputs and the cases of all."""
    return Function(call, **{"inputs": inputs, "reference": reference, "cases": CASES, "name": name, **more})


KERNELS = [
    function(
        scale,
        lambda x: x * 2,
        "right",
        timed={"rows": 4096, "width": 4096},
        bar=1.3,
        mutants=(
            Mutant("no factor", "values * factor", "values"),
            Mutant("not there", "no such text", ""),
        ),
    ),
    function(_Double.apply, lambda x: x * 2, "with_gradients", gradients=("x",)),
    function(_WrongWayBack.apply, lambda x: x * 2, "wrong_way_back", gradients=("x",)),
    function(both, lambda x: (x * 2, x * 3), "two_results"),
    function(both, lambda x: x * 2, "two_results_for_one"),
    function(in_place, doubled_in_place, "changes_its_argument", modifies=("x",)),
    function(in_place, lambda x: {"x": x * 3}, "changes_it_wrongly", modifies=("x",)),
    function(spoils, lambda x: x * 2, "spoils"),
    function(spoils, lambda x: x * 2, "may_spoil", scratch=("x",)),
    function(leaves_a_hole, lambda x: x * 2, "leaves_a_hole"),
    function(writes_behind, lambda x: x * 2, "writes_behind"),
    function(torch.ops.own_kernels.writes_behind, lambda x: x * 2, "operator_writes_behind"),
    function(flags_but_one, lambda x: x > 0, "flags_but_one"),
    function(_Unsteady(), lambda x: x * 2, "unsteady"),
    function(_Unsteady(), lambda x: x * 2, "unsteady_within_tolerance", tolerance=9.0, repeatable=True),
    function(
        lambda pair: [scale(x) for x in pair],
        lambda pair: [x * 2 for x in pair],
        "list_of_tensors",
        inputs=lambda draw, **shape: {"pair": [inputs(draw, **shape)["x"], inputs(draw, **shape)["x"]]},
    ),
    function(raises, lambda x: x * 2, "raises"),
    function(scale, lambda x: x * 2, "inputs_break", inputs=broken_inputs, cases=(here("c", rows=1, width=1),)),
    function(scale, lambda x: 1 / 0, "reference_breaks"),
    function(scale, lambda x: x * 2.00001, "strict", tolerance=1e-7),
    function(scale, lambda x: x * 2.01, "lenient", tolerance={"out": 0.1}),
    function(torch.sin, torch.sin, "not_triton", inputs=plain_inputs, triton=False),
    function(torch.sin, torch.sin, "launches_nothing", inputs=plain_inputs),
]
