"""One case of one kernel, run in this process and judged."""

from __future__ import annotations

import hashlib
import importlib
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Case, Kernel


def seed_of(seed: int, kernel: str, case: str) -> int:
    """The seed of one case: from the run's seed and the names alone, so that it can be run again alone."""
    return int.from_bytes(hashlib.sha256(f"{seed} {kernel} {case}".encode()).digest()[:4], "little")


def judge(kernel: Kernel, case: Case, *, device: str, seed: int, module: ModuleType | None = None) -> dict[str, Any]:
    """Run ``case`` on ``device`` ("cuda" or "cpu") and compare everything that it wrote.

    Returns ``{"outcome": "pass" or "wrong", "message": ..., "outputs": {name: what its check measured}}``. What the
    kernel raises comes through. ``module`` is the module to run, when it is not the kernel's own (a mutant).
    """
    module = module or importlib.import_module(kernel.module)
    draw = Draw(seed_of(seed, kernel.name, case.name), device)
    inputs = dict(kernel.inputs(draw, **case.shape))
    before = {name: value.clone() for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    reference = kernel.reference({**inputs, **before})
    outputs = draw.outputs(kernel.outputs(inputs))
    kernel.launch(module, inputs, outputs)
    if device == "cuda":
        torch.cuda.synchronize()

    written = {**{name: inputs[name] for name in kernel.modifies}, **outputs}
    measured = {name: dict(kernel.checks[name](tensor, reference[name])) for name, tensor in written.items()}
    faults = [f"{name}: {result['message']}" for name, result in measured.items() if result["message"]]
    faults += [f"memory around {name} was written" for name in draw.trespasses()]
    faults += [
        f"the input {name} was changed"
        for name, value in before.items()
        if name not in kernel.modifies and not _same_bits(value, inputs[name])
    ]
    return {"outcome": "wrong" if faults else "pass", "message": "; ".join(faults), "outputs": measured}


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.numel():
        return True
    return bool(torch.equal(_bits(one), _bits(other)))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)  # flat: a view as bytes needs a last stride of 1
