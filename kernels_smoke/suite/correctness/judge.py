"""One case of one kernel, run in this process and judged."""

import contextlib
import hashlib
import importlib
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.correctness.guards import guarded
from kernels_smoke.suite.error_texts import AuthorError
from kernels_smoke.suite.model import Case, Check, Inputs, Kernel, Tensors

MOST_TOLD = 4  # tensors around which something was written
PART = 2**27  # elements of a result that are judged at once: float64 copies of them take some ten gigabytes


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
    own = guarded(draw) if kernel.returns else None  # what it allocates itself
    with own or contextlib.nullcontext():
        returned = kernel.launch(module, inputs, outputs)
    if device == "cuda":
        torch.cuda.synchronize()

    parts = PART if kernel.returns else 0  # others have large cases of which little is written
    written = written_by(kernel, inputs, outputs, returned)
    measured = compared(kernel, inputs, reference, written, elements=parts)
    faults = [f"{name}: {result['message']}" for name, result in measured.items() if result["message"]]
    trespasses = [*draw.trespasses(), *(own.trespasses() if own else ())]
    faults += [f"memory around {name} was written" for name in trespasses[:MOST_TOLD]]
    faults += [f"and around {len(trespasses) - MOST_TOLD} more"] if len(trespasses) > MOST_TOLD else []
    faults += [
        f"the input {name} was changed"
        for name, value in before.items()
        if name not in (*kernel.modifies, *kernel.scratch) and not same_bits(value, inputs[name])
    ]
    if kernel.returns and not faults:
        faults += _again(kernel, module, inputs, before, reference, written)
    return {"outcome": "wrong" if faults else "pass", "message": "; ".join(faults), "outputs": measured}


def _again(
    kernel: Kernel, module: ModuleType, inputs: Inputs, before: Tensors, reference: Tensors, written: Tensors
) -> list[str]:
    """What is wrong at a second launch, without guards: under these torch.compile runs nothing that it compiled."""
    first = {name: tensor.clone() for name, tensor in written.items()} if kernel.repeatable else {}
    for name in (*kernel.modifies, *kernel.scratch):
        inputs[name].copy_(before[name])
    second = written_by(kernel, inputs, {}, kernel.launch(module, inputs, {}))
    measured = compared(kernel, inputs, reference, second, elements=PART)
    faults = [
        f"{name}: {result['message']}, at a second launch" for name, result in measured.items() if result["message"]
    ]
    return faults + [
        f"{name}: a second launch wrote other bits" for name in first if not same_bits(first[name], second[name])
    ]


def written_by(kernel: Kernel, inputs: Inputs, outputs: Tensors, returned: object = None) -> dict[str, torch.Tensor]:
    """All that one launch of ``kernel`` writes, by name: the inputs that it modifies, the outputs, what it returned."""
    own = returned if kernel.returns and isinstance(returned, dict) else {}
    return {**{name: inputs[name] for name in kernel.modifies}, **outputs, **own}


def compared(
    kernel: Kernel, inputs: Inputs, reference: Tensors, written: Tensors, *, elements: int = 0
) -> dict[str, dict[str, Any]]:
    """What the checks of ``kernel`` say of all that was ``written``, by name.

    With ``elements``, a result that has more is judged in parts of some as many, each by itself, so that neither the
    memory of a GPU nor a norm over all of it is what decides. A part is wrong or right by the same tolerance.
    """
    if kernel.given is not None:
        reference = {**reference, **kernel.given(inputs, reference, written)}
    if kernel.returns and written.keys() != reference.keys():
        sides = [", ".join(sorted(side)) or "nothing" for side in (written, reference)]
        raise AuthorError(f"the function gives {sides[0]}; the reference gives {sides[1]}")
    return {name: _in_parts(kernel.checks[name], tensor, reference[name], elements) for name, tensor in written.items()}


def _in_parts(check: Check, output: torch.Tensor, reference: torch.Tensor, elements: int) -> dict[str, Any]:
    """The result of the first part that is wrong, or of the one that came nearest to it."""
    if not elements or output.numel() <= elements or output.shape != reference.shape:
        return dict(check(output, reference))
    parts = min(-(-output.numel() // elements), len(output))
    results = []
    for part, wanted in zip(output.chunk(parts), reference.chunk(parts), strict=True):
        results.append(dict(check(part, wanted)))
        if results[-1]["message"]:
            first = sum(len(each) for each in output.chunk(parts)[: len(results) - 1])
            results[-1]["message"] += f" (of those from {first} to {first + len(part) - 1})"
            return results[-1]
    return max(results, key=lambda result: float(result["error"]))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both hold the same bits; not-a-number equals itself."""
    if not one.numel():
        return True
    return bool(torch.equal(_bits(one), _bits(other)))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)  # flat: a view as bytes needs a last stride of 1
