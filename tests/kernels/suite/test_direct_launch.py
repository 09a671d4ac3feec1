"""Launches by a plan, and by the cache of a plain call, equal Triton's own launch.

Compiled for sm_90 without a GPU, and launched into a libcuda.so.1 that is built for the purpose.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.torch_worker import PYTHON, ROOT

SOURCE = Path(__file__).with_name("stub_launches.c")

pytestmark = [
    pytest.mark.kernels,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc, which builds the stub of a driver"),
]

SCRIPT = """
import contextlib, ctypes, json
import torch, triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaLauncher, CudaUtils
from triton.runtime.jit import JITFunction

STREAM = 77
STORED = {"i1": 1, "i32": 4, "i64": 8, "fp32": 4}


class Driver:
    launcher_cls = CudaLauncher
    device = 0

    def __init__(self):
        self.utils = CudaUtils()

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return self.device

    def get_current_stream(self, device):
        return STREAM + device


@contextlib.contextmanager
def on_device(number):
    driver = triton.runtime.driver.active
    before, driver.device = driver.device, number
    try:
        yield
    finally:
        driver.device = before


triton.runtime.driver.set_active(Driver())
torch.Tensor.is_cuda = True  # those of this script stand for tensors on a GPU
torch.Tensor.get_device = lambda self: 0

from kernels_smoke.launching import direct as direct_launch
from kernels_smoke.launching.plan import plannable
from kernels_smoke.matmul.scaled_mm import scaled_mm
from kernels_smoke.matmul.scaled_mm_blockwise import scaled_mm_blockwise
from kernels_smoke.norm import fused_add_rms_norm as norm
from kernels_smoke.norm.fused_add_rms_norm import _fused_add_rms_norm_kernel, fused_add_rms_norm

library = ctypes.CDLL("libcuda.so.1")
sizes = (ctypes.c_int * 64).in_dll(library, "sizes")
count = ctypes.c_int.in_dll(library, "count")
launches = ctypes.c_int.in_dll(library, "launches")
parameters = (ctypes.c_ubyte * 128 * 64).in_dll(library, "parameters")
grid = (ctypes.c_uint * 3).in_dll(library, "grid")
stream = ctypes.c_void_p.in_dll(library, "stream")


def expect(compiled):
    found = []
    for kind in compiled.src.signature.values():
        if kind.startswith("tensordesc"):
            found += [128, 4, 4, 8, 8]
        elif kind != "constexpr":
            found.append(8 if kind[0] == "*" else STORED[kind])
    found += [8, 8]  # scratch memory, of which there is none
    sizes[: len(found)] = found
    count.value = len(found)


def launched(call):
    before = launches.value
    call()
    bytes_of = [bytes(parameters[number][: sizes[number]]).hex() for number in range(count.value)]
    return [launches.value - before, list(grid), stream.value, bytes_of]


def ways(function, *arguments, **options):
    found = []
    JITFunction.run, run = lambda *a, **k: found.append(run(*a, **k)), JITFunction.run
    function.function(*arguments, **options)  # compiles
    JITFunction.run = run
    expect(found[0])
    made = {"Triton": launched(lambda: function.function(*arguments, **options))}
    function(*arguments, **options)  # what it checks is kept
    plan = function.plan(*arguments, **options)
    made["kept"] = launched(lambda: function(*arguments, **options))
    made["plan"] = launched(plan)
    name = next(iter(plan._indices))
    made["moved"] = launched(lambda: plan(**{name: plan._arguments[name]}))
    seen = []
    hook = lambda metadata: seen.append(metadata.get()["name"])
    knobs.runtime.launch_enter_hook.add(hook)
    made["hooked"] = launched(plan)
    knobs.runtime.launch_enter_hook.remove(hook)
    before, direct_launch.NVIDIA = direct_launch.NVIDIA, "of another vendor"
    made["by the launcher in Python"] = launched(function.plan(*arguments, **options))
    direct_launch.NVIDIA = before
    return made, seen


half = dict(dtype=torch.float16)
x, residual, weight = torch.ones(3, 128, **half), torch.ones(3, 128, **half), torch.ones(128, **half)
out = torch.empty_like(x), torch.empty_like(x)
a, b, one = torch.ones(128, 64, **half), torch.ones(96, 64, **half), torch.ones(1)
codes, scales = torch.ones(1536, 128).to(torch.float8_e4m3fn), torch.ones(1536, 1)
answers = [
    ways(fused_add_rms_norm, x, residual, weight, out=out),
    ways(scaled_mm, a, b.t(), one, one, out=torch.empty(128, 96, **half)),
    ways(scaled_mm_blockwise, codes, codes.t(), scales, scales[:12].t(), out=torch.empty(1536, 1536, **half)),
]


@plannable
def bypassing(x):
    _fused_add_rms_norm_kernel[(1,)](x, x, x, x, x, 128, 128, 128, 128, 1, 128, 1e-6, False, 128, 1, "")


count.value = 0
torch.cuda.device = on_device
norm.on_device_of = lambda tensor: on_device(1)  # all tensors are on another GPU than the current one
other = torch.ones(5, 128, **half)
plan = fused_add_rms_norm.plan(other, other, weight)
elsewhere = [launched(lambda: fused_add_rms_norm(other, other, weight))[2] for _ in range(3)] + [launched(plan)[2]]
elsewhere.append(triton.runtime.driver.active.device)
refused = []
try:
    bypassing.plan(x)
except RuntimeError as error:
    refused.append(str(error))
refused += [launched(lambda: bypassing(x))[0] for _ in range(3)]
print(json.dumps([answers, refused, elsewhere]))
"""


def test_a_plan_and_a_kept_call_launch_what_triton_launches(tmp_path: Path) -> None:
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, SOURCE], check=True, timeout=60)
    settings = {
        "PYTHONPATH": str(ROOT),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "TRITON_LIBCUDA_PATH": str(tmp_path),
        "LD_LIBRARY_PATH": str(tmp_path),
        "TRITON_INTERPRET": "0",
    }
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT], env=os.environ | settings, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    answers, refused, elsewhere = json.loads(done.stdout)
    assert refused == ["no plan can be made: a kernel was launched by other means than launch()", 1, 1, 1]
    assert elsewhere == [78, 78, 78, 78, 0]
    names = ("_fused_add_rms_norm_kernel", "_scaled_mm_kernel", "_specialized_blockwise_kernel")
    for (made, seen), name in zip(answers, names, strict=True):
        wanted = made.pop("Triton")
        assert wanted[0] == 1
        assert wanted[2] == 77
        assert any(int(value, 16) for value in wanted[3])
        assert made == dict.fromkeys(made, wanted)
        assert seen == [name]
