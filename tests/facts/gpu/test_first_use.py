"""Packages without GPU code that compile at first use: the signs of it, and the targets of their compilers."""

from __future__ import annotations

import pytest

from tests.support.elf import Elf
from tests.support.fatbin import fat_binary, section
from tests.support.wheel_facts import X86_64, facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.gpu import first_use as reading
from wheel_checks.facts.gpu.first_use import Compiler, FirstUse
from wheel_checks.facts.gpu.targets import parse_gpus
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.summary import summarize
from wheel_checks.model import Unavailable
from wheel_checks.rules.wheel.gpu_code import has_code

KERNEL = "import triton\n\n@triton.jit\ndef add(x):\n    pass\n"
PTXAS = "triton/backends/nvidia/bin/ptxas"


def text_in_elf(*texts: str) -> bytes:
    """A library with these strings."""
    return Elf(contents={".rodata": b"\0".join([b"", *map(str.encode, texts), b""])}).build().data


def first_use(**members: bytes | str) -> FirstUse | None:
    """What compiles at first use of a wheel with these members, whose names have "__" for "/" and "_dot_" for "."."""
    wheel = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_x86_64").add("demo/__init__.py", "")
    for name, data in members.items():
        wheel.add(name.replace("__", "/").replace("_dot_", "."), data)
    return facts_of(wheel, gpus=parse_gpus("H100"), target=X86_64, first_use=True).first_use


@pytest.mark.parametrize(
    ("members", "what", "compiler"),
    [
        ({"demo__csrc__add_dot_cu": "__global__ void add();"}, "CUDA sources (1 files)", "nvcc or NVRTC on the host"),
        ({"demo__add_dot_cuh": "", "demo__b_dot_cu": ""}, "CUDA sources (2 files)", "nvcc or NVRTC on the host"),
        ({"demo__kernels_dot_py": KERNEL}, "Triton kernels", "triton"),
        ({"demo__driver_dot_py": "import ctypes\nctypes.CDLL('libcuda.so.1')\n"}, "libcuda.so", "the driver"),
        ({"demo__core_dot_so": text_in_elf(".version 7.0", ".target sm_")}, "the text '.target sm_'", "the driver"),
        ({"demo__core_dot_so": text_in_elf("libcuda.so")}, "the text 'libcuda.so'", "the driver"),
        ({"demo__core_dot_so": text_in_elf("libnvrtc.so.12")}, "the text 'libnvrtc.so'", "NVRTC"),
        ({"demo__libdevice_dot_10_dot_bc": b"BC\xc0\xde"}, "libdevice", "a compiler that links it"),
    ],
)
def test_the_signs(members: dict[str, bytes | str], what: str, compiler: str) -> None:
    found = first_use(**members)

    assert found is not None
    assert [(sign.what, sign.compiler) for sign in found.signs] == [(what, compiler)]
    assert found.compilers == ()
    assert found.knows(90) is None


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"demo__a_dot_py": "# @triton.jit compiles it elsewhere\nimport torch\n"},
        {"demo__doc_dot_md": "libcuda.so, .target sm_90"},
        {"demo__core_dot_so": text_in_elf("libcudart.so.12 is not opened", "sm_90")},
        {"demo__a_dot_cue": "cue sheet"},
    ],
)
def test_without_a_sign_nothing_compiles(members: dict[str, bytes | str]) -> None:
    assert first_use(**members) == FirstUse()


@pytest.mark.parametrize("bound", ["MOST_PYTHON", "MOST_NATIVE"])
def test_members_that_were_not_searched_leave_it_open(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(reading, bound, 10)
    members: dict[str, bytes | str] = {"demo__a_dot_py": "import os\n" * 9, "demo__core_dot_so": text_in_elf("nothing")}
    found = first_use(**members)
    assert found is not None
    assert found.unread == (("2 Python modules",) if bound == "MOST_PYTHON" else ("demo/core.so",))
    wheel = WheelBuilder("demo", "1.0", "cp312-cp312-manylinux_2_28_x86_64").add("demo/__init__.py", "")
    for name, data in members.items():
        wheel.add(name.replace("__", "/").replace("_dot_", "."), data)
    facts = facts_of(wheel, gpus=parse_gpus("H100"), target=X86_64, first_use=True)
    (finding,) = has_code(facts, Expectations(gpus=parse_gpus("H100")))
    assert (finding.undecided, "was not searched" in finding.message) == (True, True)
    whole = facts_of(wheel, gpus=parse_gpus("H100"), target=X86_64, first_use=True, depth=Depth.GPU)
    assert whole.first_use == FirstUse()


def test_a_sign_decides_whatever_was_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_NATIVE", 10)
    found = first_use(demo__kernels_dot_py=KERNEL, demo__core_dot_so=text_in_elf("nothing"))
    assert found is not None
    assert (len(found.signs), found.unread) == (1, ())


def test_a_wheel_with_gpu_code_is_not_searched() -> None:
    code = Elf(contents={".nv_fatbin": section(fat_binary("sm_90"))}).build().data

    assert first_use(demo___C_dot_so=code, demo__a_dot_cu="") is None


def test_a_compiler_knows_the_targets_in_its_text() -> None:
    wheel = WheelBuilder("triton", "3.5.0", "cp312-cp312-manylinux_2_28_x86_64")
    wheel.add(PTXAS, text_in_elf("sm_90", "sm_90a", "sm_100f", "x_sm_121", "sm_1200"))
    facts = facts_of(wheel, gpus=parse_gpus("H100"), target=X86_64, first_use=True)

    assert facts.first_use == FirstUse((), (Compiler(PTXAS, (90, 100), decides=True),))
    assert [facts.first_use.knows(sm) for sm in (90, 100, 121)] == [True, True, False]
    shown = summarize(facts, parse_gpus("H100"))["gpu_code"]["compiled_at_first_use"]
    assert shown == {"signs": [], "compilers": [{"member": PTXAS, "targets": ["sm_90", "sm_100"]}]}


@pytest.mark.parametrize(
    ("compilers", "knows"),
    [
        ((Compiler("a/ptxas", (90,)),), None),  # its PTX may be compiled by the driver
        ((Compiler(PTXAS, (90,), decides=True), Compiler(f"{PTXAS}-blackwell", (100, 121), decides=True)), True),
        ((Compiler(PTXAS, (90,), decides=True), Compiler(f"{PTXAS}-blackwell", (100,), decides=True)), False),
        ((Compiler(PTXAS, (90,), decides=True), Compiler("b/ptxas", Unavailable("x"), decides=True)), None),
        ((), None),
    ],
)
def test_what_is_proven_of_compilers(compilers: tuple[Compiler, ...], knows: bool | None) -> None:
    assert FirstUse((), compilers).knows(121) is knows
