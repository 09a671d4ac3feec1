"""Three ways in which a kernel can fail, and one that is right until a mutant is made of it."""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy_kernel(source, target, distance, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(target + offsets, tl.load(source + offsets + distance))


@triton.jit
def _wait_kernel(flag, target):
    while tl.atomic_add(flag, 0) == 0:
        pass
    tl.store(target, 1.0)


def reads_out_of_bounds(source: torch.Tensor, out: torch.Tensor) -> None:
    """Copy 16 elements of float32 from 2^44 bytes behind ``source``, where nothing is mapped."""
    _copy_kernel[(1,)](source, out, 2**42, BLOCK=16)


def hangs(flag: torch.Tensor, out: torch.Tensor) -> None:
    """Wait for ``flag`` (int32, one element), which no one sets."""
    _wait_kernel[(1,)](flag, out)


def is_wrong(source: torch.Tensor, out: torch.Tensor) -> None:
    """Copy 16 elements of float32, one place too far to the right."""
    _copy_kernel[(1,)](source, out, 1, BLOCK=16)


def is_right(source: torch.Tensor, out: torch.Tensor) -> None:
    """Copy 16 elements of float32."""
    _copy_kernel[(1,)](source, out, 0, BLOCK=16)
