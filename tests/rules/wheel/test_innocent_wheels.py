"""Wheels in the shape of real ones that must pass every rule, and their oddities that are worth a note."""

from __future__ import annotations

import pytest

from tests.support.wheel_facts import facts_of, listed
from tests.support.wheels import WheelBuilder, elf_stub, torch_like
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Outcome, Severity
from wheel_checks.runner import run_rules

LINUX = "manylinux_2_28_x86_64"


def numpy_like() -> WheelBuilder:
    wheel = WheelBuilder("numpy", "2.5.5", f"cp312-cp312-manylinux_2_27_x86_64.{LINUX}")
    wheel.add("numpy/version.py", '"""\nModule to expose more detailed version info\n"""\nversion = "2.5.5"\n')
    wheel.add("numpy/_core/_multiarray_umath.cpython-312-x86_64-linux-gnu.so", elf_stub())
    wheel.add("numpy.libs/libgfortran-040039e1-0352e75f.so.5.0.0", elf_stub())
    return wheel.metadata("License-File: LICENSE.txt", metadata_version="2.1", requires_python=">=3.12")


def nvidia_like() -> WheelBuilder:
    wheel = WheelBuilder("nvidia_cublas", "13.10.0.20", "py3-none-manylinux1_x86_64.manylinux_2_5_x86_64")
    wheel.add("nvidia/cu13/lib/libcublas.so.13", elf_stub()).add("nvidia/cu13/include/cublas.h")
    wheel.metadata(requires=["nvidia-cuda-nvrtc"], name="nvidia-cublas", metadata_version="2.1", requires_python=">=3")
    return wheel.wheel(root_is_purelib="true")


def vllm_like() -> WheelBuilder:
    wheel = WheelBuilder("vllm", "0.33.0", f"cp38-abi3-{LINUX}").add("vllm/_C.abi3.so", elf_stub())
    wheel.metadata(requires=["torch==2.15.0", "nvidia-cudnn-frontend>=1.31"], requires_python=">=3.99")
    return wheel.wheel(tags=["cp38-abi3-linux_x86_64"])


def debugpy_like() -> WheelBuilder:
    wheel = WheelBuilder("debugpy", "1.8.22", "py2.py3-none-any")
    return wheel.add("debugpy/attach_linux_amd64.so", elf_stub()).add("debugpy/attach_amd64.dll")


def windows_torch() -> WheelBuilder:
    wheel = WheelBuilder("torch", "2.10.0", "cp312-cp312-win_amd64").add("torch/lib/torch_cpu.dll")
    wheel.add("torch/version.py", "__version__ = '2.10.0+cpu'\ncuda: Optional[str] = None\n")
    return wheel.metadata(requires=['nvidia-cublas-cu12==12.8.4.1; platform_system == "Linux"'])


@pytest.mark.parametrize(
    ("wheel", "words"),
    [
        (numpy_like(), []),
        (torch_like("cuda", "2.11.0", "aarch64"), []),
        (torch_like("cuda", "2.10.0", "x86_64", build="3"), []),
        (torch_like("cpu", "2.10.0", "aarch64"), []),
        (windows_torch(), []),
        (nvidia_like(), ["WHL105"]),
        (vllm_like(), ["WHL103"]),
        (debugpy_like(), ["WHL105"]),
    ],
    ids=lambda value: value.file_name if isinstance(value, WheelBuilder) else "",
)
def test_an_innocent_wheel_passes(wheel: WheelBuilder, words: list[str]) -> None:
    facts = facts_of(wheel, listing=listed(wheel.file_name), depth=Depth.FULL)

    results = run_rules(select_rules("wheel"), facts, Expectations())

    failed = [result for result in results if result.outcome is Outcome.FAIL]
    assert [result.rule for result in failed] == words
    assert Severity.ERROR not in {result.severity for result in failed}
    skipped = {result.rule for result in results if result.outcome is Outcome.SKIP}
    assert {rule for rule in skipped if rule < "WHL500"} == {
        "WHL008",
        "WHL109",
        "WHL111",
        "WHL112",
        "WHL126",
        "WHL201",
        "WHL302",
    }
    assert Outcome.ERROR not in {result.outcome for result in results}
