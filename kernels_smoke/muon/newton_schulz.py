"""Newton-Schulz iteration: a matrix whose singular values are driven towards one, by matrix products alone."""

import functools
from dataclasses import dataclass

import torch
import triton

from kernels_smoke.launch import check_written, interpreted, on_device_of, require
from kernels_smoke.launch_plan import allocated, plannable
from kernels_smoke.matmul.tiles import described
from kernels_smoke.muon.frobenius_norm import SQUARE, scale_into
from kernels_smoke.muon.product import Tiles, product

INPUTS = (torch.bfloat16, torch.float16, torch.float32)
OUTPUTS = (torch.bfloat16, torch.float16)
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan, "Muon: An optimizer for hidden layers in neural networks" (2024)


@dataclass(frozen=True)
class Configuration:
    """``symmetric`` lays out the products ``A = X X^T`` and ``A A``, in square tiles; ``update`` lays out ``B X``."""

    symmetric: Tiles
    update: Tiles

    @property
    def row_padding(self) -> int:
        """Rows of the workspaces are a multiple of this. All of these are powers of two."""
        return max(self.symmetric.block_m, self.symmetric.block_k, self.update.block_m, self.update.block_k)

    @property
    def column_padding(self) -> int:
        """Columns of the workspaces are a multiple of this."""
        return max(self.symmetric.block_k, self.update.block_n, SQUARE)


def configure(matrices: int, rows: int, columns: int, *, described: bool) -> Configuration:
    """The layout for matrices of rows <= columns: see "Layouts" in README.md.

    ``described``: tiles of the workspaces come through descriptors (TMA).
    """
    if interpreted():  # small, so that small cases have several tiles in both directions
        return Configuration(Tiles(32, 32, 32, 1, 4, 1, programs=1), Tiles(32, 64, 32, 4, 4, 1, halves=2, programs=1))
    side = triton.cdiv(rows, 128)
    triangle = matrices * side * (side + 1) // 2
    wide = matrices * side * triton.cdiv(columns, 256)
    if not described:  # 48 KiB of shared memory, which every GPU has
        tiles = Tiles(64, 64, 32, 8, 4, 4) if rows <= 64 or triangle < 132 else Tiles(128, 128, 32, 8, 8, 4)
        return Configuration(tiles, tiles)
    if rows <= 64 or (0 < rows % 128 <= 64 and triangle < 132):  # half of a large tile would be padding
        return Configuration(Tiles(64, 64, 64, 8, 4, 4), Tiles(64, 128, 64, 8, 4, 4))
    if triangle < 165:  # too few large tiles for 132 multiprocessors, or a second round for a few of them
        update = Tiles(128, 256, 64, 8, 8, 3, halves=2, programs=1) if wide >= 120 else Tiles(64, 128, 64, 8, 4, 4)
        return Configuration(Tiles(64, 64, 128, 8, 4, 3), update)
    symmetric = Tiles(128, 128, 64, 1, 8, 4, programs=1)
    if wide < 132:
        return Configuration(symmetric, Tiles(128, 128, 64, 8, 8, 3))
    return Configuration(symmetric, Tiles(128, 256, 64, 8, 8, 3, halves=2, programs=1))


@plannable
def newton_schulz(
    x: torch.Tensor,
    *,
    steps: int = 5,
    coefficients: tuple[float, float, float] = COEFFICIENTS,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``x`` with its singular values near one, which is near ``U V^T`` of ``x = U S V^T``.

    ``X = x / (||x|| + 1e-7)``, and ``steps`` times ``A = X X^T``, ``B = b A + c A A``, ``X = a X + B X`` with the
    coefficients (a, b, c). Every result is rounded to the dtype of ``out``; sums are in float32. Source: Jordan, "Muon:
    An optimizer for hidden layers in neural networks" (2024); with its coefficients and five steps, singular values
    above 2e-3 of the norm end between 0.68 and 1.21.

    - ``x``: [..., m, n], bfloat16, float16 or float32, with contiguous rows; all leading dimensions count matrices,
      which are at one distance. Where m is greater than n, the transpose is iterated. The squares of a matrix must have
      a sum that float32 holds.
    - ``out``: the result, [..., m, n], bfloat16 or float16, with contiguous rows; the dtype of ``x`` unless said
      otherwise, and bfloat16 for float32.

    Besides, memory for two of ``x`` and for two squares of its shorter side is allocated, each padded to whole tiles:
    of 64 rows and columns at least.
    Raises ValueError when a shape, dtype, device or stride is not as said, or ``steps`` is less than 1.
    """
    require(steps >= 1, f"steps must be 1 or more, not {steps}")
    out = checked_result(x, coefficients, out)
    if x.numel():
        with on_device_of(x):
            _iterate(*as_wide(x, out), steps, coefficients)
    return out


def checked_result(x: torch.Tensor, coefficients: tuple[float, float, float], out: torch.Tensor | None) -> torch.Tensor:
    """``out``, or what was allocated for it. Raises ValueError when an argument of an iteration is not as said."""
    require(x.ndim >= 2, f"x must be a matrix or a batch of matrices, not {x.ndim}-dimensional")
    require(x.dtype in INPUTS, f"x must be {' or '.join(map(str, INPUTS))}, not {x.dtype}")
    require(len(coefficients) == 3, f"coefficients must be three numbers, not {len(coefficients)}")
    if out is None:
        dtype = x.dtype if x.dtype in OUTPUTS else torch.bfloat16
        out = allocated(torch.empty(x.shape, dtype=dtype, device=x.device))
    require(out.shape == x.shape, f"out must have the shape {tuple(x.shape)}, not {tuple(out.shape)}")
    require(out.dtype in OUTPUTS, f"out must be {' or '.join(map(str, OUTPUTS))}, not {out.dtype}")
    require(out.device == x.device, f"out is on {out.device}, x is on {x.device}")
    if x.numel():
        check_written("out", out)
    return out


def as_wide(x: torch.Tensor, out: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """``x`` and ``out`` as [matrices, p, q] with p <= q, in the same memory."""
    for name, tensor in (("x", x), ("out", out)):
        require(tensor.stride(-1) == 1 or tensor.shape[-1] == 1, f"the rows of {name} must be contiguous")
    source, target = matrices_of("x", x), matrices_of("out", out)
    return (source.mT, target.mT) if x.shape[-2] > x.shape[-1] else (source, target)


def matrices_of(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` as [matrices, m, n], in the same memory."""
    try:
        return tensor.view(-1, *tensor.shape[-2:])
    except RuntimeError as error:
        raise ValueError(f"the matrices of {name} must be at one distance: {error}") from error


def _iterate(source: torch.Tensor, target: torch.Tensor, steps: int, coefficients: tuple[float, float, float]) -> None:
    """The iteration, from ``source`` into ``target``, both [matrices, p, q] with p <= q, in any strides.

    It runs in workspaces whose matrices are padded with zeros to whole tiles and are below one another: so no tile has
    to be masked, and none reaches into the next matrix.
    """
    a, b, c = coefficients
    matrices = len(source)
    choice, rows, columns = workspaces(source, target.dtype)
    workspace = functools.partial(torch.empty, dtype=target.dtype, device=target.device)
    x, other = (allocated(workspace(matrices * rows, columns)) for _ in range(2))
    square, factor = (allocated(workspace(matrices * rows, rows)) for _ in range(2))

    scale_into(x, source)
    for step in range(steps):
        product(choice.symmetric, x, x, square, matrices, symmetric=True)
        product(choice.symmetric, square, square, factor, matrices, symmetric=True, alpha=c, addend=square, beta=b)
        last = step == steps - 1
        product(choice.update, factor, x, target if last else other, matrices, addend=x, beta=a, last=last)
        x, other = other, x


def workspaces(source: torch.Tensor, dtype: torch.dtype) -> tuple[Configuration, int, int]:
    """The layout for ``source`` [matrices, p, q], with p and q padded to whole tiles of workspaces of ``dtype``."""
    matrices, p, q = source.shape
    choice = configure(matrices, p, q, described=described(torch.empty((16, 16), dtype=dtype, device=source.device)))
    return choice, *(-(-size // step) * step for size, step in ((p, choice.row_padding), (q, choice.column_padding)))
