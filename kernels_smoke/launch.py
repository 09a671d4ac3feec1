"""What every public function needs: which GPU it runs on, and the checks of its arguments."""

import contextlib
import os
from dataclasses import dataclass

import torch
import triton

FP8 = torch.float8_e4m3fn
MOST_ROWS = 2**31 - 2048  # numbers of rows are 32-bit in most kernels, and the last tile may reach beyond
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
DTYPES_16 = DTYPES[:2]  # of what tensor cores multiply without loss
FP8_MAX = 448.0  # the greatest finite e4m3 value (OCP 8-bit floating point specification 1.0, table 1)


@dataclass(frozen=True)
class WholeRows:
    """How a launch is laid out that takes whole rows.

    A program works on a tile of ``rows`` rows of ``block`` elements (powers of two, ``block`` at least the width), with
    ``warps`` warps. ``eviction`` is the cache's hint for what is read once.
    """

    block: int
    rows: int
    warps: int
    eviction: str = ""


def whole_rows(width: int) -> WholeRows:
    """The layout for rows of ``width`` elements: 16 elements a thread kept the memory of an H200 busiest."""
    block = triton.next_power_of_2(width)
    rows = max(2048 // block, 1)
    return WholeRows(block=block, rows=rows, warps=min(max(rows * block // 512, 1), 16))


@dataclass(frozen=True)
class Architecture:
    """``backend`` is cuda, hip or interpret; ``name`` is sm_90, gfx942 or interpret; ``number`` is 90 for sm_90."""

    backend: str
    name: str
    number: int


INTERPRETER = Architecture("interpret", "interpret", 0)


def architecture() -> Architecture:
    """The GPU for which a kernel that is launched now is compiled: the present one, or the target of a compilation."""
    if interpreted():
        return INTERPRETER
    target = triton.runtime.driver.active.get_current_target()
    if target.backend == "cuda":
        return Architecture("cuda", f"sm_{target.arch}", int(target.arch))
    return Architecture(target.backend, str(target.arch), 0)


def interpreted() -> bool:
    """True when Triton interprets kernels on the CPU (``TRITON_INTERPRET=1``)."""
    return os.environ.get("TRITON_INTERPRET", "").lower() in {
        "1",
        "true",
        "on",
        "yes",
        "y",
    }  # as triton/knobs.py has it


def multiprocessors(tensor: torch.Tensor, otherwise: int = 132) -> int:
    """How many streaming multiprocessors the GPU of ``tensor`` has; ``otherwise`` where there is no GPU."""
    if tensor.device.type != "cuda":
        return otherwise
    return int(torch.cuda.get_device_properties(tensor.device).multi_processor_count)


def on_device_of(tensor: torch.Tensor) -> contextlib.AbstractContextManager[object]:
    """Make the GPU of ``tensor`` the current one: Triton launches on the current GPU, whatever its arguments are."""
    if tensor.device.type != "cuda" or tensor.device.index == torch.cuda.current_device():
        return contextlib.nullcontext()
    device: contextlib.AbstractContextManager[object] = torch.cuda.device(tensor.device)
    return device


def require(condition: bool, message: str) -> None:
    """Raise ValueError with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


def check_span(name: str, tensor: torch.Tensor) -> None:
    """Raise ValueError unless the elements of ``tensor`` are within 2^31 of one another: offsets are 32-bit there."""
    span = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    require(span < 2**31, f"the elements of {name} must be within 2^31 of one another")


def check_scale(scale: float, name: str = "scale") -> None:
    """Raise ValueError unless ``scale`` is positive, and stays so, and finite, in float32."""
    require(1e-37 < scale < 1e38, f"{name} must be positive and finite in float32, not {scale}")


def check_apart(name: str, tensor: torch.Tensor, other_name: str, other: torch.Tensor) -> None:
    """Raise ValueError when both tensors begin at the same place, or are contiguous and share memory."""
    if "meta" in {tensor.device.type, other.device.type} or not (tensor.numel() and other.numel()):
        return
    first, second = sorted((tensor, other), key=torch.Tensor.data_ptr)
    dense = first.is_contiguous() and second.is_contiguous()
    end = first.data_ptr() + (first.nbytes if dense else 1)
    require(end <= second.data_ptr(), f"{name} and {other_name} must not share memory")


def check_matrix(name: str, matrix: torch.Tensor, widest: int) -> tuple[int, int]:
    """Return (rows, width) of ``matrix``.

    Raises ValueError unless it is one of floating-point numbers, its rows are dense, not too many, and not too wide.
    """
    require(matrix.ndim == 2, f"{name} must be [rows, width], not {matrix.ndim}-dimensional")
    rows, width = matrix.shape
    require(0 < width <= widest, f"rows are {width} elements wide; 1 to {widest} are possible")
    require(rows < MOST_ROWS, f"{name} has {rows} rows; the limit is {MOST_ROWS - 1}")
    check_rows(name, matrix, (rows, width), DTYPES, matrix)
    return rows, width


def check_written(name: str, tensor: torch.Tensor) -> None:
    """Raise ValueError unless each element of ``tensor``, which will be written, has its own memory.

    That is so when every dimension steps over all that those with smaller steps reach. An expanded tensor has none: its
    elements would be written by several threads at once, with several values.
    """
    reach = 0
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            own = step > reach or not tensor.numel()
            require(own, f"elements of {name} are at the same place: {tuple(tensor.shape)}, strides {tensor.stride()}")
            reach += (size - 1) * step


def check_rows(
    name: str, tensor: torch.Tensor, shape: tuple[int, ...], dtypes: tuple[torch.dtype, ...], like: torch.Tensor
) -> None:
    """Raise ValueError unless ``tensor`` has ``shape``, one of ``dtypes``, the device of ``like``, and dense rows.

    Rows may be further apart than they are wide, at one distance: a slice of a wider tensor will do.
    """
    require(tuple(tensor.shape) == shape, f"{name} must have the shape {shape}, not {tuple(tensor.shape)}")
    require(tensor.dtype in dtypes, f"{name} must be {' or '.join(map(str, dtypes))}, not {tensor.dtype}")
    require(tensor.device == like.device, f"{name} is on {tensor.device}, the other arguments are on {like.device}")
    dense = tensor.ndim == 0 or tensor.numel() == 0 or tensor.shape[-1] == 1 or tensor.stride(-1) == 1
    require(dense, f"the rows of {name} must be contiguous")
