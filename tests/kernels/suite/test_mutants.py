"""Mutants of kernels that a GPU does not launch: on Hopper, one in Gluon runs where the plain one is broken."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.torch_worker import PYTHON, ROOT

SCRIPT = """
import importlib, json, pathlib, sys
from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling import ahead_of_time
from kernels_smoke.suite.correctness import mutants, tasks

folder, target, name = sys.argv[1:]
subject = registry.load(registry.entry("scaled_mm_blockwise"))
mutant = next(mutant for mutant in subject.mutants if mutant.name == name)

def compiled(emit, kernel, case, device, seed, module, **_):
    with ahead_of_time.compiling(ahead_of_time.target_of(target)):
        sys.modules[subject.module] = module  # what launching a case imports
        ahead_of_time.launch(kernel, kernel.speeds[0])
    return {"outcome": "pass", "message": ""}

importlib.import_module(subject.module)
tasks._with_retries = compiled
made = mutants.broken(subject, mutant, pathlib.Path(folder))
print(json.dumps(tasks.caught(lambda _: None, subject, made, "cuda", 1)[0]))
"""


@pytest.mark.kernels
@pytest.mark.parametrize(("target", "outcome"), [("sm_90", "skip"), ("sm_100", "missed")])
def test_a_mutant_that_no_case_launches_on_this_gpu_is_skipped(tmp_path: Path, target: str, outcome: str) -> None:
    command = [PYTHON, "-c", SCRIPT, str(tmp_path), target, "columns not scaled"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["outcome"] == outcome
    assert (found["message"] == "no case launches its kernel here: this GPU has another one") == (outcome == "skip")


AUTOTUNED = """
import triton
import triton.language as tl

@triton.jit
def _helper(x):
    return x

@triton.autotune([triton.Config({})], key=[])
@triton.heuristics({})
@triton.jit
def _kernel(x):
    tl.store(x, _helper(1.0))
"""
BEHIND = """
import pathlib, sys
from kernels_smoke.suite.correctness import mutants

made = mutants._load("mutant_1_own", sys.argv[2], pathlib.Path(sys.argv[1]))
before = mutants.launched(made)
made._kernel.fn.fn.device_caches[0] = ({"key": "compiled"},)
print(before, mutants.launched(made))
"""


@pytest.mark.kernels
def test_a_kernel_behind_autotuning_counts_as_launched(tmp_path: Path) -> None:
    command = [PYTHON, "-c", BEHIND, str(tmp_path), AUTOTUNED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert (done.stdout.split(), done.returncode) == (["False", "True"], 0), done.stderr
