"""WHL201 to WHL203: the accelerator that was demanded, signals that disagree, better siblings. WHL301 and WHL302."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import WARNING, Case
from tests.support.wheel_facts import facts_of, listed
from tests.support.wheels import WheelBuilder, gpu_library, torch_like
from wheel_checks.facts.wheel.expectations import parse_expectation
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.siblings import find_siblings
from wheel_checks.model import Unavailable

CPU_TORCH = torch_like("cpu", "2.10.0", "aarch64")
X86_TORCH = torch_like("cuda", "2.10.0", "x86_64")


def expect(text: str) -> dict[str, object]:
    """``--expect TEXT``."""
    return {"accelerator": parse_expectation(text)}


def runtime_of(cuda: str) -> WheelFacts:
    """A wheel for CUDA 12.8 whose requirements bring this CUDA runtime."""
    wheel = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_x86_64")
    wheel.add("demo/version.py", "__version__ = '1.0+cu128'\ncuda = '12.8'\n").add(
        "demo/libdemo_cuda.so", gpu_library()
    )
    return facts_of(wheel.metadata(requires=[f"nvidia-cuda-runtime=={cuda}"]))


def beside(wheel: WheelBuilder, *others: WheelBuilder, read: bool = False) -> WheelFacts:
    """A wheel among others of its index, which this run has read, or not."""
    facts = facts_of(wheel, listing=listed(wheel.file_name))
    known = {other.file_name: facts_of(other) for other in others} if read else {}
    return replace(facts, siblings=find_siblings(facts, [listed(other.file_name) for other in (wheel, *others)], known))


def sampled(wheel: WheelBuilder) -> WheelFacts:
    """A wheel with libraries that were not read."""
    facts = facts_of(wheel)
    assert not isinstance(facts.accelerator, Unavailable)
    return replace(facts, accelerator=replace(facts.accelerator, certainty="sampled", unread="3 of 4 are not known"))


CASES = [
    Case(
        "WHL201",
        "the CPU wheel where CUDA is demanded",
        lambda: facts_of(CPU_TORCH),
        ("the wheel is CPU only (2.10.0+cpu); expected cuda",),
        evidence=(
            "nothing: no GPU code, and no library of a GPU is needed, in 5 native members",
            "cpu: 4 requirements such as nvidia-cuda-runtime-cu12 active on linux x86_64, none on linux aarch64",
        ),
        expectations=expect("cuda"),
    ),
    Case(
        "WHL201",
        "another CUDA than the one that is demanded",
        lambda: facts_of(X86_TORCH),
        ("the wheel is CUDA 12.8 (2.10.0+cu128); expected cuda>=13",),
        expectations=expect("cuda>=13"),
    ),
    Case(
        "WHL201",
        "a wheel that says too little",
        lambda: facts_of(WheelBuilder("cupy_cuda13x").add("cupy/cuda/common.so", gpu_library())),
        ("not proven: expected cuda==13.0, but the wheel states only version 13",),
        undecided=True,
        expectations=expect("cuda==13.0"),
    ),
    Case(
        "WHL201",
        "another CUDA in what was read of the wheel",
        lambda: sampled(WheelBuilder().add("demo/_C.so", gpu_library(needed=["libcudart.so.12"]))),
        (
            "not proven: expected cuda==13.*, but the wheel states only version 12 in what was read: 3 of 4 are not "
            "known",
        ),
        undecided=True,
        expectations=expect("cuda==13"),
    ),
    Case(
        "WHL201",
        "another CUDA, by what was read and by version.py",
        lambda: sampled(X86_TORCH),
        ("the wheel is CUDA 12.8 (2.10.0+cu128); expected cuda>=13",),
        expectations=expect("cuda>=13"),
    ),
    Case(
        "WHL201",
        "any CUDA of the major version that is demanded",
        lambda: facts_of(WheelBuilder().add("demo/_C.so", gpu_library(needed=["libcudart.so.13"]))),
        expectations=expect("cuda==13"),
    ),
    Case("WHL201", "the CUDA that is demanded", lambda: facts_of(X86_TORCH), expectations=expect("cuda==12.8")),
    Case("WHL201", "the CPU wheel that is demanded", lambda: facts_of(CPU_TORCH), expectations=expect("cpu")),
    Case(
        "WHL201",
        "one of several accelerators",
        lambda: facts_of(
            WheelBuilder().add("demo/cuda.so", gpu_library()).add("demo/hip.so", gpu_library(section=".hip_fatbin"))
        ),
        expectations=expect("rocm"),
    ),
    Case(
        "WHL202",
        "a CUDA library in a wheel that calls itself CPU",
        lambda: facts_of(torch_like("cpu", "2.11.0", "aarch64").add("torch/lib/libtorch_cuda.so", gpu_library())),
        (
            "the wheel's accelerator is contradictory: content says CUDA (torch/lib/libtorch_cuda.so has "
            ".nv_fatbin), version.py says CPU only (__version__ = '2.11.0+cpu', cuda = hip = rocm = xpu = None)",
        ),
        evidence=(
            "cuda: torch/lib/libtorch_cuda.so has .nv_fatbin",
            "nothing: no requirement is a library of an accelerator",
        ),
    ),
    Case(
        "WHL202",
        "the runtime of another CUDA",
        lambda: runtime_of("13.0.88"),
        ("the wheel's accelerator is contradictory: version.py says CUDA 12.8, requirements say 13.0",),
    ),
    Case("WHL202", "the runtime of the same CUDA, any patch", lambda: runtime_of("12.8.*")),
    Case("WHL202", "a major version that both share", lambda: runtime_of("12.*")),
    Case("WHL202", "the METADATA of x86_64 in the CPU wheel for aarch64", lambda: facts_of(CPU_TORCH)),
    Case(
        "WHL203",
        "CUDA on x86_64, CPU on aarch64",
        lambda: beside(CPU_TORCH, X86_TORCH),
        (
            "this wheel has no accelerator, but the same release is built for CUDA on x86_64: users of aarch64 "
            "silently get no GPU",
        ),
        WARNING,
        evidence=(f"{X86_TORCH.file_name}: CUDA 12.8",),
    ),
    Case("WHL203", "the CUDA wheel itself", lambda: beside(X86_TORCH, CPU_TORCH, read=True)),
    Case(
        "WHL203",
        "CPU on both machines",
        lambda: beside(torch_like("cpu", "2.11.0"), torch_like("cpu", "2.11.0", "x86_64"), read=True),
    ),
    Case(
        "WHL203", "CUDA for another Python", lambda: beside(CPU_TORCH, torch_like("cuda", "2.10.0", "x86_64", "cp313"))
    ),
    Case("WHL203", "CPU as demanded", lambda: beside(CPU_TORCH, X86_TORCH), expectations=expect("cpu")),
    Case(
        "WHL301",
        "a yanked file",
        lambda: facts_of(WheelBuilder(), listing=listed(yanked="broken metadata")),
        ("the file is yanked",),
        WARNING,
        evidence=("broken metadata",),
    ),
    Case(
        "WHL301",
        "a file yanked without a reason",
        lambda: facts_of(WheelBuilder(), listing=listed(yanked="")),
        ("the file is yanked",),
        WARNING,
        evidence=("none given",),
    ),
    Case("WHL301", "a file that is not yanked", lambda: facts_of(WheelBuilder(), listing=listed())),
    Case(
        "WHL302",
        "a byte too many",
        lambda: facts_of(WheelBuilder()),
        ("the wheel exceeds the size limit by 1 bytes",),
        expectations={"max_size": len(WheelBuilder().build()) - 1},
    ),
    Case(
        "WHL302",
        "just the limit",
        lambda: facts_of(WheelBuilder()),
        expectations={"max_size": len(WheelBuilder().build())},
    ),
]
