"""Every case of every kernel as a test, on the GPU or in Triton's interpreter.

Each run draws other inputs; a failure says the seed, and ``KERNELS_SMOKE_SEED`` repeats
it. A case that takes its CUDA context with it takes the rest of the run along: ``python -m kernels_smoke`` does not.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.correctness.judge import seed_of
from kernels_smoke.suite.correctness.mutants import broken
from kernels_smoke.suite.correctness.tasks import run
from kernels_smoke.suite.model import Case, Kernel, Where
from kernels_smoke.suite.run.stages import new_seed
from tests.kernels.support import DEVICE

WHERE: Where = "cuda" if DEVICE == "cuda" else "interpret"
SEED = int(os.environ.get("KERNELS_SMOKE_SEED") or new_seed())
KERNELS = [registry.load(entry) for entry in registry.ENTRIES]
CASES = [(kernel, case) for kernel in KERNELS for case in kernel.cases if WHERE in case.where and case.level != "deep"]


@pytest.mark.parametrize(("kernel", "case"), CASES, ids=[f"{kernel.name}-{case.name}" for kernel, case in CASES])
def test_a_kernel_computes_what_its_reference_computes(kernel: Kernel, case: Case) -> None:
    result = run(kernel, case, WHERE, SEED)
    if result["outcome"] == "skip":
        pytest.skip(result["message"])
    assert result["outcome"] == "pass", f"{result['message']} (KERNELS_SMOKE_SEED={SEED})"


@pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.name for kernel in KERNELS])
def test_every_kernel_has_cases_for_both_devices_and_mutants_that_apply(kernel: Kernel, tmp_path: Path) -> None:
    for device in ("cuda", "interpret"):
        assert [case for case in kernel.cases if device in case.where], device
        assert [mutant for mutant in kernel.mutants if device in mutant.where], device
    assert len({case.name for case in kernel.cases}) == len(kernel.cases)
    for mutant in kernel.mutants:
        broken(kernel, mutant, tmp_path)
        assert mutant.where == ("cuda", "interpret") or mutant.why, f"{mutant.name} does not say why it shows on one"


@pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.name for kernel in KERNELS])
def test_elements_that_are_written_may_not_lie_at_the_same_place(kernel: Kernel) -> None:
    module = importlib.import_module(kernel.module)
    refused: set[str] = set()
    for case in (case for of, case in CASES if of is kernel):
        draw = Draw(seed_of(SEED, kernel.name, case.name), DEVICE)
        inputs = dict(kernel.inputs(draw, **case.shape))
        outputs = draw.outputs(kernel.outputs(inputs))
        written = {name: inputs[name] for name in kernel.modifies} | outputs
        for name in {name for name, tensor in written.items() if tensor.numel() > 1} - refused:
            shape = written[name].shape
            repeated = next(dimension for dimension, size in enumerate(shape) if size > 1)
            same = {name: written[name].narrow(repeated, 0, 1).expand(shape)}
            changed = (inputs | same, outputs) if name in kernel.modifies else (inputs, outputs | same)
            with pytest.raises(ValueError, match=r"are at the same place|must be contiguous|the rows of"):
                kernel.launch(module, *changed)
            refused.add(name)
    assert refused or kernel.name == "dual_ascent"  # which the suite judges by three numbers
