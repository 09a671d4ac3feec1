"""Does Triton's interpreter work here? It computes with numpy, but not with every version of it."""

import numpy as np
import torch
import triton
import triton.language as tl

from kernels_smoke.suite.advice import doctor, pip
from kernels_smoke.suite.probes.answer import Answer, first_line

COUNT = 300  # numbers in blocks of 128, so that the last block is masked


@triton.jit
def _sum_blocks(numbers, sums, count, BLOCK: tl.constexpr):
    for block in range(tl.cdiv(count, BLOCK)):
        positions = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(sums + block, tl.sum(tl.load(numbers + positions, mask=positions < count, other=0.0)))


def interpreter() -> Answer:
    """Run a kernel of a few lines under ``TRITON_INTERPRET=1``. Needs no GPU."""
    evidence = {"triton": triton.__version__, "numpy": np.__version__}
    numbers = torch.arange(COUNT, dtype=torch.float32)
    sums = torch.full((triton.cdiv(COUNT, 128),), torch.nan)
    try:
        _sum_blocks[(1,)](numbers, sums, COUNT, BLOCK=128)
    except Exception as error:  # the interpreter raises whatever numpy raised
        message = f"Triton's interpreter does not run with numpy {np.__version__}: {first_line(error)}"
        fix = (
            pip("install", "numpy<2.4", note="Triton 3.6 and older"),
            doctor("Triton comes with torch: a newer torch brings a newer one"),
        )
        return Answer("fail", message, evidence, fix)
    expected = [float(sum(range(first, min(first + 128, COUNT)))) for first in range(0, COUNT, 128)]
    if sums.tolist() != expected:
        message = f"Triton's interpreter sums three blocks to {sums.tolist()}, and not to {expected}"
        return Answer("fail", message, evidence, (doctor(),))
    return Answer("pass", "Triton's interpreter runs a kernel", evidence)
