"""Shared by the kernels' own tests: the device, tensors of zeros, the error of a result. Needs torch."""

from __future__ import annotations

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # on a CPU, in Triton's interpreter: see conftest.py


def zeros(*shape: int, dtype: torch.dtype = torch.float16, device: str = DEVICE) -> torch.Tensor:
    """A tensor of zeros."""
    return torch.zeros(shape, dtype=dtype, device=device)


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """||got - wanted|| / ||wanted||."""
    return float((got.double() - wanted.double()).norm() / wanted.double().norm())
