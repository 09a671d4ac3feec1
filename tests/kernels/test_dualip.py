"""Dual ascent against another solver, and refusals of DuaLip's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from kernels_smoke.dualip import dual_ascent as module
from kernels_smoke.dualip import reference
from kernels_smoke.dualip.cases_dual_ascent import matching
from kernels_smoke.dualip.dual_ascent import LinearProgram, certify, dual_ascent, linear_program
from kernels_smoke.dualip.segments import LengthClass, Segments, segments
from kernels_smoke.dualip.share import share
from kernels_smoke.dualip.simplex_projection import simplex_projection
from kernels_smoke.dualip.sparse_product import Compressed, sparse_product
from tests.kernels.support import DEVICE


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """On a busy machine, torch's threads wait for each other longer than they work on tensors this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def problem(users: int, items: int, **others: Any) -> LinearProgram:
    """A matching problem; every user may take of one to three items."""
    generator = torch.Generator().manual_seed(5)
    lengths = torch.randint(1, 4, (users,), generator=generator)
    made = matching(users, items, 3, generator, lengths, **others)
    matrix = made.columns
    tensors = (made.cost, made.limits, matrix.segments.offsets, matrix.indices, matrix.values, made.blocks.offsets)
    cost, limits, offsets, indices, values, blocks = (tensor.to(DEVICE) for tensor in tensors)
    return linear_program(cost, limits, offsets, indices, values, blocks, made.radius)


def optimum(program: LinearProgram) -> float:
    """The least cost, found by HiGHS."""
    optimize = pytest.importorskip("scipy.optimize")
    sparse = pytest.importorskip("scipy.sparse")
    matrix, blocks = program.columns, program.blocks
    limits = sparse.csc_array(
        (matrix.values.cpu().double().numpy(), matrix.indices.cpu().numpy(), matrix.segments.offsets.cpu().numpy()),
        shape=(len(program.limits), len(program.cost)),
    )
    ones = torch.ones(blocks.elements).numpy()
    sums = sparse.csr_array((ones, range(blocks.elements), blocks.offsets.cpu().numpy()))
    found = optimize.linprog(
        program.cost.cpu().double().numpy(),
        A_ub=sparse.vstack([limits, sums]),
        b_ub=torch.cat((program.limits.cpu().double(), torch.full((blocks.count,), program.radius))).numpy(),
        method="highs",
    )
    assert found.status == 0, found.message
    return float(found.fun)


def test_the_kernels_reach_the_optimum_that_highs_finds() -> None:
    program = problem(8, 3)
    x, dual = dual_ascent(program, iterations=30 if DEVICE == "cpu" else 1000)
    best, proof = optimum(program), certify(program, x, dual)
    assert float(proof.bound) <= best + 1e-6 <= float(proof.feasible) + 2e-6  # HiGHS itself allows some 1e-7
    assert float(torch.dot(program.cost, x)) == pytest.approx(best, rel=0.02 if DEVICE == "cpu" else 1e-4)
    assert float(proof.gap) < (0.02 if DEVICE == "cpu" else 2e-3)


@pytest.mark.parametrize("others", [{}, {"shops": 3, "radius": 2.5, "unit": 10.0}])
def test_given_time_the_method_reaches_it_to_four_digits(
    others: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The interpreter would take minutes for so many steps; the suite compares the kernels with these functions.
    def product(matrix: Compressed, vector: torch.Tensor) -> torch.Tensor:
        return reference.sparse_product(matrix.segments, matrix.indices, matrix.values, vector).float()

    def projection(values: torch.Tensor, blocks: Segments, *, radius: float, out: torch.Tensor) -> torch.Tensor:
        return out.copy_(reference.simplex_projection(values, blocks, radius=radius, equality=False))

    monkeypatch.setattr(module, "sparse_product", product)
    monkeypatch.setattr(module, "simplex_projection", projection)
    program = problem(60, 8, **others)
    x, dual = dual_ascent(program, iterations=300)
    best, proof = optimum(program), certify(program, x, dual)
    assert float(torch.dot(program.cost, x)) == pytest.approx(best, rel=1e-4)
    assert float(proof.violation) < 1e-4 * float(program.limits.min())
    assert float(proof.bound) <= best + 1e-6 <= float(proof.feasible) + 2e-6
    assert float(proof.gap) < 1e-3 * program.radius  # what smoothing costs


def test_segments_fall_into_classes_of_their_lengths_in_their_order() -> None:
    made = segments(torch.tensor([0, 1, 3, 43, 43, 45, 54], device=DEVICE))
    assert made.classes == (LengthClass(32, 0, 5), LengthClass(64, 5, 1))  # the mean length is 9, and twice that 18
    assert made.order.tolist() == [0, 1, 3, 4, 5, 2]
    assert (made.count, made.elements, made.longest) == (6, 54, 64)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        (torch.tensor([0, 2**30 + 1]), "a segment has 1073741825 elements; 1073741824 are possible"),
        (torch.tensor([1, 2]), "offsets must begin with 0 and never fall"),
        (torch.tensor([0, 2, 1]), "offsets must begin with 0 and never fall"),
        (torch.tensor([0.0]), "offsets must be torch.int32 or torch.int64, not torch.float32"),
        (torch.tensor([], dtype=torch.int32), "offsets must be a vector of at least one element"),
    ],
)
def test_offsets_that_are_none_are_refused(offsets: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        segments(offsets)


def test_what_does_not_fit_is_refused() -> None:
    pair = segments(torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="radius must be positive and finite in float32, not 0"):
        simplex_projection(torch.zeros(2), pair, radius=0)
    with pytest.raises(ValueError, match=r"values must have the shape \(2,\), not \(3,\)"):
        simplex_projection(torch.zeros(3), pair)
    with pytest.raises(ValueError, match="a segment has more than 16384 elements"):
        simplex_projection(torch.zeros(20_000), segments(torch.tensor([0, 20_000])))
    with pytest.raises(ValueError, match=r"indices must be torch\.int32, not torch\.int64"):
        sparse_product(Compressed(pair, torch.zeros(2, dtype=torch.int64), torch.zeros(2)), torch.zeros(1))
    vector, indices = torch.zeros(1), torch.zeros(2, dtype=torch.int32)
    with pytest.raises(ValueError, match="out and vector must not share memory"):
        sparse_product(Compressed(pair, indices, torch.ones(2)), vector, out=vector[:])
    for smoothing in ((0.1, 0.0), (1.0, float("nan")), (float("inf"),), ()):
        with pytest.raises(ValueError, match="smoothing must be positive numbers"):
            dual_ascent(problem(2, 3), smoothing=smoothing)


def little(cost: list[float], values: list[float], limits: list[float]) -> LinearProgram:
    """A program with one block, whose variables share the only row of A."""
    count = len(cost)
    return linear_program(
        torch.tensor(cost, device=DEVICE),
        torch.tensor(limits, device=DEVICE),
        torch.arange(count + 1, device=DEVICE),
        torch.zeros(count, dtype=torch.int32, device=DEVICE),
        torch.tensor(values, device=DEVICE),
        torch.tensor([0, count], device=DEVICE),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": torch.zeros(0)}, "a program needs a variable and a limit"),
        ({"limits": torch.zeros(0)}, "a program needs a variable and a limit"),
        ({"limits": torch.tensor([torch.inf])}, "limits must be finite"),
        ({"cost": torch.tensor([torch.nan])}, "cost must be finite"),
        ({"values": torch.tensor([-torch.inf])}, "values must be finite"),
        ({"radius": torch.nan}, "radius must be positive and finite"),
        ({"radius": -1.0}, "radius must be positive and finite"),
        ({"cost": torch.zeros(1, dtype=torch.float64)}, "cost must be torch.float32, not torch.float64"),
        ({"indices": torch.zeros(1, dtype=torch.int64)}, "indices must be torch.int32, not torch.int64"),
        ({"indices": torch.ones(1, dtype=torch.int32)}, "indices must be from 0 to 0: a row for each limit"),
    ],
)
def test_programs_that_are_none_are_refused(change: dict[str, Any], message: str) -> None:
    arguments = {
        "cost": torch.zeros(1),
        "limits": torch.zeros(1),
        "offsets": torch.tensor([0, 1]),
        "indices": torch.zeros(1, dtype=torch.int32),
        "values": torch.ones(1),
        "blocks": torch.tensor([0, 1]),
    }
    with pytest.raises(ValueError, match=message):
        linear_program(**{**arguments, **change})


def test_where_nothing_is_worth_its_cost_nothing_is_taken() -> None:
    program = little([1.0, 2.0], [1.0, 1.0], [1.0])
    x, dual = dual_ascent(program, smoothing=(0.1,), iterations=3)
    assert not x.any()
    assert not dual.any()
    assert float(certify(program, x, dual).gap) == 0.0


@pytest.mark.parametrize("unit", [1e-30, 1e-24, 1.0, 1e20, 1e30])
def test_a_row_limits_in_whatever_unit_it_is_counted(unit: float) -> None:
    x, _ = dual_ascent(little([-1.0, -2.0], [unit, unit], [0.5 * unit]), smoothing=(0.1,), iterations=150)
    assert x.tolist() == pytest.approx([0.0, 0.5], abs=1e-3)


def test_a_matrix_of_zeros_limits_nothing() -> None:
    x, dual = dual_ascent(little([-1.0, 2.0], [0.0, 0.0], [0.0]), smoothing=(0.1,), iterations=3)
    assert x.tolist() == [1.0, 0.0]
    assert dual.tolist() == [0.0]


def test_a_certificate_proves_itself() -> None:
    program = problem(8, 3)
    x, dual = dual_ascent(program, iterations=30)
    proof = certify(program, x, dual)
    assert float(proof.outside) < 1e-6
    assert float(certify(program, 1.01 * x, dual).outside) == pytest.approx(0.01, rel=1e-3)
    # Reduced to the simplices it is no better than it was, and still above the bound.
    assert float(certify(program, 10 * x, dual).feasible) >= float(proof.bound)
    assert float(certify(program, x, -dual).bound) == -torch.inf
    nobody = replace(program, limits=-program.limits)
    assert float(certify(nobody, x, dual).feasible) == torch.inf


# Shares of several ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_shares_of_all_ranks_are_the_whole(ranks: int) -> None:
    whole = problem(7, 3)
    matrix = whole.columns
    tensors = (whole.cost, whole.limits, matrix.segments.offsets, matrix.indices, matrix.values, whole.blocks.offsets)
    shares = [share(*tensors, rank=rank, ranks=ranks) for rank in range(ranks)]
    assert torch.equal(torch.cat([each.cost for each in shares]), whole.cost)
    assert torch.equal(torch.cat([each.columns.indices for each in shares]), matrix.indices)
    assert sum(each.blocks.count for each in shares) == whole.blocks.count
    assert all(torch.equal(each.limits, whole.limits) for each in shares)


def test_a_share_needs_a_rank_and_a_block() -> None:
    whole = problem(3, 3)
    matrix = whole.columns
    tensors = (whole.cost, whole.limits, matrix.segments.offsets, matrix.indices, matrix.values, whole.blocks.offsets)
    with pytest.raises(ValueError, match="rank must be from 0 to 1, not 2"):
        share(*tensors, rank=2, ranks=2)
    with pytest.raises(ValueError, match="there are 3 blocks for 4 ranks"):
        share(*tensors, rank=0, ranks=4)
