"""Two products added up in one accumulator, step by step in turn."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES_16, check_rows, interpreted, on_device_of, require


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out: tiles of ``block`` x ``block`` results, elements of K in one step, warps, stages.

    With tiles of 64 rows and more, Blackwell's tensor cores accumulate in tensor memory, and that is what was wrong.
    """

    block: int
    block_k: int
    warps: int
    stages: int


def configure() -> Configuration:
    """The layout: the smallest that shows the fault, or a smaller one for the interpreter."""
    return Configuration(16, 16, 4, 1) if interpreted() else Configuration(64, 32, 4, 3)


@triton.jit
def _load(source, row, column, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The tile [ROWS, COLUMNS] that begins at (row, column) of a matrix [rows, columns]; zero beyond it."""
    offs_m = row + tl.arange(0, ROWS)
    offs_n = column + tl.arange(0, COLUMNS)
    inside = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
    # [ROWS, COLUMNS]
    return tl.load(source + offs_m.to(tl.int64)[:, None] * columns + offs_n[None, :], mask=inside, other=0.0)


@triton.jit
def _chained_dots_kernel(a, b, c, d, out, m, n, k, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    column = tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start_k in range(0, k, BLOCK_K):
        tile_a = _load(a, row, start_k, m, k, BLOCK, BLOCK_K)  # [BLOCK, BLOCK_K]
        tile_b = _load(b, start_k, column, k, n, BLOCK_K, BLOCK)  # [BLOCK_K, BLOCK]
        acc = tl.dot(tile_a, tile_b, acc)  # [BLOCK, BLOCK]
        tile_c = _load(c, row, start_k, m, k, BLOCK, BLOCK_K)  # [BLOCK, BLOCK_K]
        tile_d = _load(d, start_k, column, k, n, BLOCK_K, BLOCK)  # [BLOCK_K, BLOCK]
        acc = tl.dot(tile_c, tile_d, acc)  # [BLOCK, BLOCK]; the second product waits for the first
    offs_m = row + tl.arange(0, BLOCK)
    offs_n = column + tl.arange(0, BLOCK)
    inside = (offs_m < m)[:, None] & (offs_n < n)[None, :]
    tl.store(out + offs_m.to(tl.int64)[:, None] * n + offs_n[None, :], acc, mask=inside)


def chained_dots(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return ``a @ b + c @ d``, accumulated in float32, in the order in which triton-lang/triton#10821 went wrong.

    ``a`` and ``c`` are [M, K], ``b`` and ``d`` [K, N], all bfloat16 or all float16; ``out`` is the result, [M, N] in
    float32. All are contiguous. Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    require(a.ndim == 2 and b.ndim == 2, f"a and b must be matrices, not {a.ndim}- and {b.ndim}-dimensional")
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=torch.float32, device=a.device) if out is None else out
    for name, matrix, shape in (("a", a, (m, k)), ("b", b, (k, n)), ("c", c, (m, k)), ("d", d, (k, n))):
        check_rows(name, matrix, shape, DTYPES_16 if matrix is a else (a.dtype,), a)
        require(matrix.is_contiguous(), f"{name} must be contiguous")
    check_rows("out", out, (m, n), (torch.float32,), a)
    require(out.is_contiguous(), "out must be contiguous")
    require(n <= 2**20, f"b has {n} columns; {2**20} are possible")
    if m and n:
        choice = configure()
        grid = (triton.cdiv(m, choice.block), triton.cdiv(n, choice.block))
        with on_device_of(a):
            _chained_dots_kernel[grid](
                a=a,
                b=b,
                c=c,
                d=d,
                out=out,
                m=m,
                n=n,
                k=k,
                BLOCK=choice.block,
                BLOCK_K=choice.block_k,
                num_warps=choice.warps,
                num_stages=choice.stages,
            )
    return out
