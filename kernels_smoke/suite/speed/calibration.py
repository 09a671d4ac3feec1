"""What this GPU can do, measured in the same run as the kernels: bytes a second, and matrix operations a second.

Bars are fractions of these, so that they hold on an H100, a GH200 or a GB200 as they do on an H200.
"""

import os
import statistics
import time
from typing import Any

import torch

from kernels_smoke.suite.model import Emit
from kernels_smoke.suite.probes.answer import Answer, record
from kernels_smoke.suite.speed.gpu_state import Monitor
from kernels_smoke.suite.speed.timing import Call, replayed

COPIED = 2**30  # bytes: far more than any cache holds
MATRIX = 8192  # rows, columns and inner dimension: 1.1e12 operations
CALLS = 4  # between two events
ROUNDS = 7
FP8 = torch.float8_e4m3fn


def calibrate(emit: Emit) -> dict[str, Any] | None:
    """Emit one record of kind "calibration" and return it, or a probe that says why there isn't one, and None."""
    start = time.monotonic()
    try:
        measured = rates(monitor())
    except torch.cuda.OutOfMemoryError:
        free, total = torch.cuda.mem_get_info()
        message = (
            f"no speed could be measured: {free:,} of the GPU's {total:,} bytes of memory are free, and "
            f"a copy of {COPIED:,} bytes needs {2 * COPIED:,}"
        )
        fix = ("end the other processes on this GPU (nvidia-smi lists them), or choose another GPU",)
        emit(record("calibration", Answer("error", message, {}, fix), time.monotonic() - start))
        return None
    emit({"kind": "calibration", **measured, "seconds": time.monotonic() - start})
    return measured


def monitor() -> Monitor:
    """The monitor of the current GPU; one that knows nothing where torch is too old to say the GPU's UUID."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES", "")).startswith("MIG-") and "," not in visible:
        return Monitor.open(visible)
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", "")
    return Monitor.open(f"GPU-{uuid}")


def rates(gpu: Monitor) -> dict[str, Any]:
    """``bandwidth`` in bytes a second (read and written together), ``bf16`` and ``fp8`` in operations a second.

    ``fp8`` is None where this GPU or this torch has no fp8 matrix product. ``gpu`` is the state of the GPU while it
    multiplied.
    """
    generator = torch.Generator("cuda")
    generator.manual_seed(0)
    bandwidth = 2 * COPIED / _seconds(_copy())
    a = torch.randn(MATRIX, MATRIX, generator=generator, device="cuda").to(torch.bfloat16)
    b = torch.randn(MATRIX, MATRIX, generator=generator, device="cuda").to(torch.bfloat16)
    state: dict[str, Any] = {}
    bf16 = _seconds(_bf16(a, b), lambda: state.update(gpu.read()))
    fp8 = _fp8_seconds(a.to(FP8), b.to(FP8))
    operations = 2 * MATRIX**3
    return {"bandwidth": bandwidth, "bf16": operations / bf16, "fp8": operations / fp8 if fp8 else None, "gpu": state}


def _copy() -> Call:
    """One eager copy: the same copy captured in a graph was measured at 2.7 TB/s where this gave 4.2."""
    source = torch.zeros(COPIED, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _bf16(a: torch.Tensor, b: torch.Tensor) -> Call:
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b.t(), out=out)


def _fp8_seconds(a: torch.Tensor, b: torch.Tensor) -> float | None:
    """Seconds of one product with a scale for each row and column, or with one for all where that is all there is."""
    rows = torch.ones(MATRIX, 1, device="cuda")
    one = torch.ones((), device="cuda")
    for scale_a, scale_b in ((rows, rows.t()), (one, one)):
        try:
            return _seconds(_fp8(a, b, scale_a, scale_b))
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, NotImplementedError):  # a GPU without fp8, or without scales for rows
            continue
    return None


def _fp8(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> Call:
    return lambda: torch._scaled_mm(  # noqa: SLF001  # the only fp8 product that torch 2.6 to 2.13 have in common
        a, b.t(), scale_a=scale_a, scale_b=scale_b, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def _seconds(call: Call, while_running: Call = lambda: None) -> float:
    """Seconds of one call: the median over rounds of a few, launched one by one."""

    def several() -> None:
        for _ in range(CALLS):
            call()

    replayed(several, 2)
    return statistics.median(replayed(several, ROUNDS, while_running)) / CALLS / 1e6
