"""Real environments with a small torch for CUDA, to be inspected by the whole doctor.

patient = Patient.make(tmp_path / "venv")                  # a venv: torch 2.11.0+cu130, NCCL, triton, all of them tiny
patient.installed.remove("nvidia/nccl/lib/libnccl.so.2")   # and something that breaks it

Its torch asks libcuda.so.1 as the real one does in the end, so that a stub driver decides its answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.support.environments import Installed, library
from tests.support.wheels import WheelBuilder

MACHINE = os.uname().machine
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
PLATFORM = f"{TAG}-{TAG}-manylinux_2_28_{MACHINE}"
NCCL = "nvidia/nccl/lib/libnccl.so.2"
RPATH = "$ORIGIN:$ORIGIN/../../nvidia/nccl/lib"

TORCH = """
from torch import cuda, version
from torch.version import __version__


class _Numbers:
    \"\"\"Numbers that are always right.\"\"\"

    def __getattr__(self, _name):
        return lambda *_, **__: self

    __matmul__ = __mul__ = __mod__ = __add__ = __sub__ = __eq__ = __getitem__ = lambda self, *_: self

    def item(self):
        return 0

    def cuda(self):
        cuda.init()
        return self


def arange(*_, **__):
    return _Numbers()


full = ones = zeros = tensor = arange


def equal(*_):
    return True
"""
CUDA = """
import ctypes
from torch.version import cuda as built_for


def _count():
    if built_for is None:
        return 0, "Torch not compiled with CUDA enabled"
    try:
        libcuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0, "Found no NVIDIA driver on your system."
    version, count = ctypes.c_int(), ctypes.c_int()
    libcuda.cuDriverGetVersion(ctypes.byref(version))
    if version.value // 1000 < float(built_for):
        return 0, f"The NVIDIA driver on your system is too old (found version {version.value})."
    code = libcuda.cuInit(0)
    if code:
        return 0, f"Unexpected error from cudaGetDeviceCount(). Error {code}"
    libcuda.cuDeviceGetCount(ctypes.byref(count))
    return count.value, "" if count.value else "No CUDA GPUs are available"


def device_count():
    return _count()[0]


def is_available():
    return device_count() > 0


def init():
    _, fault = _count()
    if fault:
        raise RuntimeError(fault)


def synchronize(*_):
    pass
"""
TRITON = """
__version__ = "3.6.0"


def cdiv(one, other):
    return -(-one // other)


class jit:
    def __init__(self, function):
        pass

    def __getitem__(self, grid):
        return lambda *_, **__: None
"""


def torch_wheel(
    version: str = "2.11.0", build: str = "cu130", *, machine: str = MACHINE, python: str = TAG
) -> WheelBuilder:
    """A tiny torch: with its files in the real places."""
    cuda = "'13.0'" if build.startswith("cu") else "None"
    wheel = WheelBuilder("torch", version, f"{python}-{python}-manylinux_2_28_{machine}")
    wheel.metadata(requires=["nvidia-nccl-cu13==2.28.9", "triton==3.6.0"] if cuda != "None" else [])
    wheel.add("torch/version.py", f"__version__ = '{version}+{build}'\ncuda = {cuda}\nhip = None\nxpu = None\n")
    wheel.add("torch/__init__.py", TORCH).add("torch/cuda/__init__.py", CUDA)
    wheel.add("torch/lib/libtorch_cpu.so", library("libtorch_cpu.so", machine=machine))
    declared = b"\0sm_80 sm_90 sm_100\0" if cuda != "None" else b""
    wheel.add("torch/lib/libtorch_python.so", library("libtorch_python.so", machine=machine) + declared)
    if cuda != "None":
        cuda_library = library("libtorch_cuda.so", ["libnccl.so.2"], machine, rpath=RPATH)
        wheel.add("torch/lib/libtorch_cuda.so", cuda_library)
    return wheel


def nccl_wheel(name: str = "nvidia_nccl_cu13", version: str = "2.28.9") -> WheelBuilder:
    """NCCL, tiny; the distributions for CUDA 12 and 13 own the same path."""
    tags = f"py3-none-manylinux_2_18_{MACHINE}"
    return WheelBuilder(name, version, tags).metadata().add(NCCL, library("libnccl.so.2", machine=MACHINE))


def triton_wheel(python: str = TAG) -> WheelBuilder:
    """A Triton whose kernels do nothing."""
    wheel = WheelBuilder("triton", "3.6.0", f"{python}-{python}-manylinux_2_28_{MACHINE}").metadata()
    return wheel.add("triton/__init__.py", TRITON).add("triton/language.py", "constexpr = None\n")


@dataclass(frozen=True)
class Patient:
    """A virtual environment without pip; ``python`` is its interpreter."""

    folder: Path
    installed: Installed

    @classmethod
    def make(cls, folder: Path, *wheels: WheelBuilder, python: str = sys.executable) -> Self:
        """An environment of this ``python`` with these wheels, by default torch for CUDA, NCCL and triton."""
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
        (site_packages,) = folder.glob("lib/python3.*/site-packages")
        installed = Installed(folder, str(site_packages.relative_to(folder)))
        tag = site_packages.parent.name.replace("python", "cp").replace(".", "")
        for wheel in wheels or (torch_wheel(python=tag), nccl_wheel(), triton_wheel(tag)):
            installed.install(wheel)
        return cls(folder, installed)

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")
