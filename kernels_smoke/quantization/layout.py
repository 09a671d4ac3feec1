"""What the public functions share on the host: the layout of a launch, and the checks of arguments and results."""

from dataclasses import dataclass

import torch
import triton

from kernels_smoke.launch import DTYPES, FP8, MOST_ROWS, check_rows, check_span, check_written, interpreted, require
from kernels_smoke.launch_plan import allocated

WIDEST = 32768  # elements of a row, when a program holds one whole row in registers
WIDEST_NORM = 16384  # the same, when it needs the residual and the weight, too
TMA_ALIGNMENT = 4  # float32 values: 16 bytes, of which the strides of a tensor must be multiples for TMA
GREATEST_GROUP = 1024
FEW = 2**17  # elements, of which each program gets a group: 4 to 15 % faster on an H200 than whole tiles
FEW_ROWS = 512  # so few programs do not fill a GPU, and one wait for memory is shorter than two (3 to 14 % on an H200)


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    A program of ``warps`` warps works on a tile of ``tile`` rows, or of ``tile`` groups in kernels that need only a
    group at a time (powers of two). A thread takes ``vector`` neighbours of a row: the codes of 16 are one store of 16
    bytes; 8 of two bytes are one load of 16 bytes, and then nothing crosses shared memory that is stored in two bytes,
    too. ``eviction`` is the cache's hint for the inputs, which are read once. ``weight_first``: a norm's weight is
    loaded with its row, and not after the row's sum.
    """

    warps: int
    tile: int = 1
    vector: int = 16
    eviction: str = ""
    weight_first: bool = False


def code_dtype() -> torch.dtype:
    """The dtype of codes: e4m3, or in Triton's interpreter, which casts to that wrongly, float32 for the quotients."""
    return torch.float32 if interpreted() else FP8


def check_matrix(x: torch.Tensor) -> None:
    """Raise ValueError unless ``x`` is a matrix of floating-point numbers with dense rows and at least one column."""
    require(x.ndim == 2, f"x must be [rows, width], not {x.ndim}-dimensional")
    require(x.shape[1] > 0, "the rows of x must not be empty")
    require(x.shape[0] < MOST_ROWS, f"x has {x.shape[0]} rows; the limit is {MOST_ROWS - 1}")
    require(x.shape[1] < 2**31, f"rows of x have {x.shape[1]} elements; the limit is 2^31 - 1")
    check_rows("x", x, tuple(x.shape), DTYPES, x)


def check_width(width: int, widest: int = WIDEST) -> None:
    """Raise ValueError for rows that one program cannot hold."""
    require(width <= widest, f"rows are {width} elements wide; {widest} are possible")


def check_groups(width: int, group: int) -> int:
    """Return how many groups a row has. Raises ValueError when ``group`` is not a power of two or the last is
    partial.
    """
    possible = 0 < group <= GREATEST_GROUP and group == triton.next_power_of_2(group)
    require(possible, f"a group must be a power of two up to {GREATEST_GROUP}, not {group}")
    require(width % group == 0, f"rows of {width} elements cannot be divided into groups of {group}")
    return width // group


def few_groups(group: int, elements: int) -> Configuration | None:
    """The layout where there are few ``elements``: a warp for each group; None where there are more."""
    return Configuration(warps=triton.cdiv(group, 512), vector=8) if elements < FEW else None


def tiles_of(configuration: Configuration, rows: int, groups: int) -> tuple[int, int, int]:
    """The number of tiles of ``rows`` of ``groups``, and of how many rows and groups one is."""
    groups_of_tile = min(configuration.tile, triton.next_power_of_2(groups))
    rows_of_tile = configuration.tile // groups_of_tile
    return triton.cdiv(rows, rows_of_tile) * triton.cdiv(groups, groups_of_tile), rows_of_tile, groups_of_tile


def check_bound(bound: torch.Tensor | None, x: torch.Tensor) -> None:
    """Raise ValueError unless ``bound`` is None or one float32 on the device of ``x``."""
    if bound is not None:
        require(bound.numel() == 1, f"scale_upper_bound must be one number, not {bound.numel()}")
        check_rows("scale_upper_bound", bound, tuple(bound.shape), (torch.float32,), x)


def results(
    out: tuple[torch.Tensor, torch.Tensor] | None,
    x: torch.Tensor,
    *,
    width: int,
    groups: int = 1,
    column_major: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``out``, or new tensors: codes [rows of x, width] and scales [rows of x, groups].

    New scales with ``column_major`` have strides (1, the rows rounded up to four), as TMA needs them. Raises ValueError
    when ``out`` is not of these shapes, of the dtypes e4m3 and float32, and on the device of ``x``.
    """
    rows = x.shape[0]
    if out is None:
        codes = allocated(torch.empty((rows, width), dtype=code_dtype(), device=x.device))
        aligned = triton.cdiv(rows, TMA_ALIGNMENT) * TMA_ALIGNMENT
        strides = (1, aligned) if column_major else (groups, 1)
        return codes, allocated(torch.empty_strided((rows, groups), strides, dtype=torch.float32, device=x.device))
    codes, scales = out
    check_rows("out[0]", codes, (rows, width), (code_dtype(),), x)
    shape = (rows, groups)
    require(tuple(scales.shape) == shape, f"out[1] must have the shape {shape}, not {tuple(scales.shape)}")
    require(scales.dtype == torch.float32, f"out[1] must be torch.float32, not {scales.dtype}")
    require(scales.device == x.device, f"out[1] is on {scales.device}, x is on {x.device}")
    check_span("the scales of a row in out[1]", scales[:1])
    check_written("out[0]", codes)
    check_written("out[1]", scales)
    return codes, scales
