"""DuaLip: one gradient of the dual of a matching problem, and its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.experiments.model import Experiment, Run

USERS, ITEMS, LEAST, MOST = 1_000_000, 10_000, 1, 31
SMOOTHING = 0.1
SEED = 20261120


def experiments() -> list[Experiment]:
    """The whole gradient, then the projection alone."""
    work = f"{USERS:,} users with {LEAST} to {MOST} of {ITEMS:,} items, float32"
    return [
        Experiment(
            name="Gradient of the dual",
            reported="75 times faster an iteration than on Spark, with 8 GPUs and torch's operators",
            baseline="torch",
            variants={
                "torch": _torch_gradient,
                "torch.compile": lambda: _torch_gradient(compiled=True),
                "Triton": _ours_gradient,
            },
            work=work,
        ),
        Experiment(
            name="Projection onto simplices",
            reported="batched projections (no separate figure)",
            baseline="torch",
            variants={
                "torch": _torch_projection,
                "torch.compile": lambda: _torch_projection(compiled=True),
                "Triton": _ours_projection,
            },
            work=work,
        ),
    ]


def _program() -> Any:
    """A matching problem: one variable for each pair of a user and an item."""
    import torch  # experiments() must not need torch

    from kernels_smoke.dualip.dual_ascent import linear_program  # imports torch and triton

    generator = torch.Generator("cuda").manual_seed(SEED)
    lengths = torch.randint(LEAST, MOST + 1, (USERS,), generator=generator, device="cuda")
    blocks = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    pairs = int(blocks[-1])
    rows = torch.randint(0, ITEMS, (pairs,), generator=generator, device="cuda", dtype=torch.int32)
    cost, values = (torch.rand(pairs, generator=generator, device="cuda") for _ in range(2))
    limits = torch.full((ITEMS,), 0.3 * USERS / ITEMS, device="cuda")
    offsets = torch.arange(pairs + 1, dtype=torch.int32, device="cuda")
    return linear_program(-cost, limits, offsets, rows, values, blocks)


def _dual(program: Any) -> Any:
    import torch  # as above

    return torch.full_like(program.limits, 0.3)


def _torch_gradient(*, compiled: bool = False) -> Run:
    """Constants of all iterations are made beforehand; A x is a product of cuSPARSE."""
    import torch  # as above

    program = _program()
    dual = _dual(program)
    project, matrix = _project_in_torch(program), program.rows
    shape = (len(program.limits), len(program.cost))
    by_row = torch.sparse_csr_tensor(
        matrix.segments.offsets, matrix.indices, matrix.values, shape, check_invariants=False
    )

    def best(dual: Any) -> Any:
        return project(_price_in_torch(program, dual))

    x: Any = torch.compile(best) if compiled else best
    return lambda: torch.mv(by_row, x(dual)) - program.limits


def _price_in_torch(program: Any, dual: Any) -> Any:
    matrix = program.columns
    return (program.cost + matrix.values * dual[matrix.indices]) * (-1 / SMOOTHING)


def _project_in_torch(program: Any) -> Callable[[Any], Any]:
    from benchmarks.eager_dualip import padded, projected  # imports torch

    blocks = program.blocks
    rows = padded(blocks.offsets, blocks.elements, blocks.longest)
    return lambda price: projected(price, rows, program.radius, equality=False)


def _ours_gradient() -> Run:
    from kernels_smoke.dualip.simplex_projection import simplex_projection  # imports torch and triton
    from kernels_smoke.dualip.sparse_product import sparse_product  # likewise

    program = _program()
    dual = _dual(program)

    def run() -> object:
        price = (program.cost + sparse_product(program.columns, dual)) * (-1 / SMOOTHING)
        x = simplex_projection(price, program.blocks, radius=program.radius, out=price)
        return sparse_product(program.rows, x) - program.limits

    return run


def _ours_projection() -> Run:
    from kernels_smoke.dualip.simplex_projection import simplex_projection  # imports torch and triton

    program = _program()
    price = _price_in_torch(program, _dual(program))
    return lambda: simplex_projection(price, program.blocks, radius=program.radius)


def _torch_projection(*, compiled: bool = False) -> Run:
    import torch  # as above

    program = _program()
    price = _price_in_torch(program, _dual(program))
    project: Any = _project_in_torch(program)
    project = torch.compile(project) if compiled else project
    return lambda: project(price)
