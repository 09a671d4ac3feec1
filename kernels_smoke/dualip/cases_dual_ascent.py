"""What the suite runs for dual_ascent: solutions that prove themselves."""

from types import ModuleType

import torch

from kernels_smoke.dualip.cases_shared import draw_lengths, found, offsets_of, placed
from kernels_smoke.dualip.dual_ascent import LinearProgram, certify, linear_program
from kernels_smoke.dualip.sparse_product import Compressed
from kernels_smoke.suite.correctness.compare import Absolute
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Case, Inputs, Kernel, Mutant, Tensors, here

OUTSIDE = 1e-5  # of simplices with the radius 1, in float32


def matching(
    users: int,
    items: int,
    most: int,
    generator: torch.Generator,
    lengths: torch.Tensor,
    *,
    shops: int = 0,
    unit: float = 1.0,
    radius: float = 1.0,
) -> LinearProgram:
    """A matching problem on the CPU: each user takes of some items, at most ``radius`` in all; items are limited.

    Variables are the pairs of a user and one of the ``lengths`` items that fit. Those of a user are different items.
    With ``shops``, each variable is taken in one of them, which are limited, too: the matrix has two rows for it.
    Everything is counted in ``unit``: rows and their limits are as many times as large, the optimum is not.
    """
    choice = torch.rand(users, items, generator=generator).argsort(dim=1)[:, :most]
    chosen = torch.arange(most)[None, :] < lengths[:, None]
    rows = choice[chosen].to(torch.int32)
    variables = len(rows)
    cost = -(0.1 + 0.9 * torch.rand(variables, generator=generator))
    limits = torch.full((items,), 0.35 * users * radius / items)
    limits[0] = users * radius  # there is enough of one item, so that its dual is zero
    if shops:
        shop = torch.randint(shops, (variables,), generator=generator, dtype=torch.int32)
        rows = torch.stack((rows, items + shop), dim=1).flatten()
        limits = torch.cat((limits, torch.full((shops,), 0.4 * users * radius / shops)))
    values = 0.5 + torch.rand(len(rows), generator=generator)
    offsets = torch.arange(variables + 1, dtype=torch.int32) * (len(rows) // variables)
    return linear_program(cost, unit * limits, offsets, rows, unit * values, offsets_of(lengths), radius)


def draw_inputs(
    draw: Draw,
    *,
    users: int,
    items: int,
    most: int,
    smoothing: tuple[float, ...],
    iterations: int,
    gap: float,
    violation: float,
    shops: int = 0,
    unit: float = 1.0,
    radius: float = 1.0,
) -> Inputs:
    """Draw a matching problem with 1 to ``most`` items for each user; ``gap`` and ``violation`` are what is allowed."""
    generator = torch.Generator().manual_seed(draw.seed)
    lengths = draw_lengths(draw, users, 1, most)
    program = matching(users, items, most, generator, lengths, shops=shops, unit=unit, radius=radius)
    tensors = {
        "cost": program.cost,
        "limits": program.limits,
        "column_indices": program.columns.indices,
        "column_values": program.columns.values,
        "row_indices": program.rows.indices,
        "row_values": program.rows.values,
    }
    return {
        **{name: draw.place(tensor, name=name) for name, tensor in tensors.items()},
        **placed(draw, program.columns.segments, "columns"),
        **placed(draw, program.rows.segments, "rows"),
        **placed(draw, program.blocks, "blocks"),
        "radius": radius,
        "smoothing": smoothing,
        "iterations": iterations,
        "gap": gap,
        "violation": violation,
    }


def program_of(inputs: Inputs) -> LinearProgram:
    """The problem that was drawn."""
    columns = Compressed(found(inputs, "columns"), inputs["column_indices"], inputs["column_values"])
    rows = Compressed(found(inputs, "rows"), inputs["row_indices"], inputs["row_values"])
    return LinearProgram(inputs["cost"], inputs["limits"], columns, rows, found(inputs, "blocks"), inputs["radius"])


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> None:
    """Solve, and let the solution prove itself."""
    program = program_of(inputs)
    x, dual = module.dual_ascent(program, smoothing=inputs["smoothing"], iterations=inputs["iterations"])
    proof = certify(program, x, dual)
    contradicted = proof.gap < -1e-9  # a feasible point below the bound: then one of the two is wrong
    outputs["gap"].copy_(torch.where(contradicted, torch.inf, proof.gap / inputs["gap"]))
    outputs["violation"].copy_(proof.violation / inputs["violation"])
    outputs["outside"].copy_(proof.outside / OUTSIDE)


def expected(inputs: Inputs) -> Tensors:
    """The bound is below the optimum and the feasible point above, so that a gap of nothing needs no other solver."""
    nothing = torch.zeros(1, dtype=torch.float64, device=inputs["cost"].device)
    return {"gap": nothing, "violation": nothing, "outside": nothing}


KERNEL = Kernel(
    name="dual_ascent",
    module="kernels_smoke.dualip.dual_ascent",
    inputs=draw_inputs,
    # How far the optimum may be away, relatively, and by how much x exceeds limits and simplices; over what may be.
    outputs=lambda _inputs: dict.fromkeys(("gap", "violation", "outside"), ((1,), torch.float64)),
    launch=launch,
    reference=expected,
    checks=dict.fromkeys(("gap", "violation", "outside"), Absolute(1.0)),
    cases=(
        Case(
            "200 users, 20 items",
            {
                "users": 200,
                "items": 20,
                "most": 5,
                "smoothing": (1.0, 0.3, 0.1, 0.03),
                "iterations": 375,
                "gap": 3e-3,  # of 160 such problems, solved in plain torch, the worst had 2.0e-3
                "violation": 0.1,  # of limits of 3.5; the worst had 0.028, nine of ten had less than 0.016
            },
            checked=False,
        ),
        Case(
            "8,000 users, 2,600 items, counted in tens",
            {
                "users": 8000,
                "items": 2600,
                "most": 5,
                "unit": 10.0,
                "smoothing": (0.3, 0.1),
                "iterations": 100,
                "gap": 0.04,  # of 10 such problems, solved on an H200, the worst had 0.0235
                "violation": 4.0,  # of limits of 10.8; the worst had 1.74
            },
            checked=False,
        ),
        here(
            "8 users, 3 items",
            "quick",
            users=8,
            items=3,
            most=3,
            smoothing=(0.3, 0.1),
            iterations=40,
            gap=0.05,  # of 600 such problems, solved in plain torch, the worst had 0.029
            violation=0.2,  # of limits of 0.93; the worst had 0.082
        ),
        here(
            "24 users, 4 items in 2 shops, counted in tens",  # so that norms of rows, and dual prices, are far from 1
            users=24,
            items=4,
            shops=2,
            most=3,
            unit=10.0,
            radius=1.5,
            smoothing=(0.3, 0.1),
            iterations=60,
            gap=0.08,  # of 500 such problems, solved in plain torch, the worst had 0.047
            violation=6.0,  # of limits of 31.5; the worst had 2.1
        ),
    ),
    mutants=(
        Mutant("radius 1 in each step", "radius=program.radius, out", "radius=1.0, out"),
        Mutant("downwards", "ahead + step * gradient", "ahead - step * gradient"),
        Mutant("the dual forgotten", "program.cost + sparse_product(program.columns, dual)", "program.cost"),
        Mutant("blocks of another radius", "radius=program.radius, out", "radius=1.003 * program.radius, out"),
        Mutant("dual not scaled back", "dual * scale", "dual / scale"),
        Mutant("duals below zero", "min=0.0)\n            overshot", "min=-1.0)\n            overshot"),
    ),
)
