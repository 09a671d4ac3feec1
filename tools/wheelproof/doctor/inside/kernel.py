"""One Triton kernel, small enough to compile quickly, with a mask and an edge: ``out = x * x + y``."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

LENGTH, BLOCK = 1000, 256  # the last block is not full
UNTOUCHED = -1.0


@triton.jit  # type: ignore[untyped-decorator]
def square_and_add(x, y, out, length, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Elements from ``length`` on are left alone."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < length
    value = tl.load(x + place, mask=inside)
    tl.store(out + place, value * value + tl.load(y + place, mask=inside), mask=inside)


def check(torch: Any, device: str) -> str:
    """Run the kernel and compare it with the CPU: "" if it is right, else the fault. Integers are exact."""
    x, y = torch.arange(LENGTH).float(), torch.arange(LENGTH).flip(0).float()
    out = torch.full((LENGTH + BLOCK,), UNTOUCHED, device=device)
    square_and_add[(triton.cdiv(LENGTH, BLOCK),)](x.to(device), y.to(device), out, LENGTH, block=BLOCK)
    result = out.cpu()
    if not torch.equal(result[:LENGTH], x * x + y):
        return "the kernel ran, and its result is wrong"
    if not bool((result[LENGTH:] == UNTOUCHED).all()):
        return "the kernel wrote after the end of its output"
    return ""
