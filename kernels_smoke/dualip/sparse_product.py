"""The product of a compressed sparse matrix and a vector, a gather on either side: no atomic additions."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.dualip.segments import Configuration, Segments, _elements, _sum, _tile, check_segments, layout
from kernels_smoke.launch import check_apart, check_rows, on_device_of
from kernels_smoke.launch_plan import allocated, launch, plannable_apart

TILE = 2048  # elements of a segment at a time; longer ones take several rounds


@dataclass(frozen=True)
class Compressed:
    """A sparse matrix: segment i has the non-zeros of its row i (CSR), or of its column i (CSC, the transpose's CSR).

    ``indices`` [elements], int32, are the columns (rows) of the non-zeros, ``values`` [elements], float32.
    """

    segments: Segments
    indices: torch.Tensor
    values: torch.Tensor


def configure(length: int) -> Configuration:
    """The layout for segments of at most ``length``: four elements a thread, of two segments where they are short."""
    return layout(length, most=TILE, steps=4, together=2, eviction="evict_first")


@triton.jit(do_not_specialize=["first", "count"])
def _sparse_product_kernel(
    values, indices, vector, offsets, order, out, first, count,
    LENGTH: tl.constexpr, LANES: tl.constexpr, SEGMENTS: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    segment, exists, begin, length = _tile(offsets, order, first, count, SEGMENTS)
    total = tl.zeros((SEGMENTS,), tl.float32)
    for start in range(0, tl.max(length, axis=0), LENGTH):
        element = _elements(LENGTH, LANES) + start
        inside = element < length[None, :, None]
        where = tl.max_contiguous(begin[None, :, None] + element, [1, 2, LANES])
        value = tl.load(values + where, mask=inside, other=0.0, eviction_policy=EVICTION)  # [steps, SEGMENTS, LANES]
        index = tl.load(indices + where, mask=inside, other=0, eviction_policy=EVICTION)  # [steps, SEGMENTS, LANES]
        # [SEGMENTS]
        total += _sum(value * tl.load(vector + tl.max_contiguous(index, [1, 2, LANES]), mask=inside, other=0.0))
    tl.store(out + segment, total, mask=exists)


@plannable_apart
def sparse_product(matrix: Compressed, vector: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``A vector`` for a matrix compressed by rows, and ``A^T vector`` for the same compressed by columns.

    ``out[i] = sum(values[k] * vector[indices[k]] for k in segment i)``, summed in float32, always in the same order.

    - ``vector``: [n], float32; every index is from 0 to n - 1 (which is not checked: that would wait for the GPU).
    - ``out``: the result, [segments], float32; not ``vector``, which is read to the end.

    A program works on a long segment alone: with fewer segments than multiprocessors, some of those are idle.
    Raises ValueError when a shape, dtype or device is not as said.
    """
    segments = matrix.segments
    check_rows("values", matrix.values, (segments.elements,), (torch.float32,), vector)
    check_rows("indices", matrix.indices, (segments.elements,), (torch.int32,), vector)
    check_rows("vector", vector, (vector.numel(),), (torch.float32,), vector)
    check_segments("matrix", segments, vector)
    out = allocated(vector.new_empty(segments.count)) if out is None else out
    check_rows("out", out, (segments.count,), (torch.float32,), vector)
    check_apart("out", out, "vector", vector)
    with on_device_of(vector):
        for members in segments.classes:
            choice = configure(members.length)
            launch(
                _sparse_product_kernel,
                (triton.cdiv(members.count, choice.segments),),
                values=matrix.values,
                indices=matrix.indices,
                vector=vector,
                offsets=segments.offsets,
                order=segments.order,
                out=out,
                first=members.first,
                count=members.count,
                LENGTH=choice.length,
                LANES=choice.lanes,
                SEGMENTS=choice.segments,
                EVICTION=choice.eviction,
                num_warps=choice.warps,
            )
    return out
