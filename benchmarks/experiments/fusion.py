"""Kernel fusion measured again: Inductor's kernels for the examples of its authors, and ours.

"Why Is PyTorch Compile So Fast: Kernel Fusion" (PyTorch's blog, 27 May 2026). It has no figures but counts of kernels
and of memory operations; the names of the generated kernels, in the last column, show the fusions.
"""

from __future__ import annotations

from typing import Any

from benchmarks.experiments.model import Experiment
from benchmarks.experiments.of_kernel import compiled, eager, ours


def experiments() -> list[Experiment]:
    """Vertical, reduction and horizontal fusion; an epilogue and a prologue of a product."""
    few = {"m": 16, "n": 12288, "k": 4096}
    many = {"m": 4096, "n": 12288, "k": 4096}
    shown: list[tuple[str, str, dict[str, Any], str, str]] = [
        (
            "Vertical fusion: sigmoid(x w + b)",
            "mul_add_sigmoid",
            {"rows": 8192, "width": 8192},
            "three kernels become one, eight memory operations four",
            "2^26 elements, bfloat16",
        ),
        (
            "Reduction fusion: (2 x).sum(-1) + 1",
            "mul_sum_add",
            {"rows": 1024, "width": 1024},
            "one kernel, triton_per_fused_add_mul_sum_0, of a 1024 x 1024 matrix",
            "1024 x 1024, float32: it stays in the L2 cache",
        ),
        (
            "Horizontal fusion: sin(x), cos(x)",
            "sin_and_cos",
            {"rows": 8192, "width": 8192},
            "x is loaded once",
            "2^26 elements, float32",
        ),
        (
            "Epilogue fusion: relu(x W + b)",
            "fused_linear",
            {**many, "activation": "relu", "bias": True},
            "bias and ReLU in the same kernel as the product",
            "4096 x 4096 by 12288, bfloat16",
        ),
        (
            "Prologue fusion: norm(x) W, 4096 rows",
            "fused_linear",
            {**many, "normed": True},
            "the input is normalised as it is loaded",
            "4096 x 4096 by 12288, bfloat16",
        ),
        (
            "Prologue fusion: norm(x) W, 16 rows",
            "fused_linear",
            {**few, "normed": True},
            "the input is normalised as it is loaded",
            "16 x 4096 by 12288, bfloat16",
        ),
    ]
    return [
        Experiment(
            name=name,
            reported=reported,
            baseline="eager torch",
            variants={
                "eager torch": eager(kernel, shape),
                "torch.compile": compiled(kernel, shape),
                "ours": ours(kernel, shape),
            },
            work=work,
        )
        for name, kernel, shape, reported, work in shown
    ]
