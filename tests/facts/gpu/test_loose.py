"""Cubins, PTX and AMD's code objects that are in files by themselves."""

from __future__ import annotations

import struct

import pytest

from tests.support.fatbin import TOOLKIT_NOTE, cubin_head
from tests.support.wheel_facts import MemorySource, archive_of, facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.gpu import reading as gpu_reading
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.gpu.reading import read_gpu_code
from wheel_checks.formats.gpu.code_object import read_code_object, read_cubin, read_ptx
from wheel_checks.model import Unavailable

_CUDA, _AMDGPU = 190, 224


def gpu_elf(machine: int, flags: int, abi: int, rest: bytes = b"") -> bytes:
    """An ELF file with nothing but a header."""
    ident = b"\x7fELF\x02\x01\x01\x41" + bytes([abi]) + bytes(7)
    return ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 0, flags, 64, 56, 0, 64, 0, 0) + rest


def cubin(sm: int, note: str = "") -> bytes:
    """A cubin as CUDA 13 writes it; the note is that of the compiler."""
    return gpu_elf(_CUDA, sm << 8 | 2, 8, b"\0-O3 -arch " + note.encode() + b" -m 64 \0" if note else b"")


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (cubin(100, "sm_100f"), "sm_100f"),
        (cubin(103, "sm_103a"), "sm_103a"),
        (cubin(100, "sm_100"), "sm_100"),
        (cubin(100), "sm_100?"),
        (gpu_elf(_CUDA, 0x600640A, 8), "sm_100a"),
        (cubin(100, "sm_90a"), "sm_100?"),
        (gpu_elf(_CUDA, 0x5A055A, 7), "sm_90"),
        (gpu_elf(_CUDA, 0x5A0D5A, 7), "sm_90a"),
    ],
    ids=["family", "only 10.3", "plain", "no note", "no note, a", "a note of something else", "CUDA 12", "CUDA 12, a"],
)
def test_the_target_of_a_cubin(data: bytes, label: str) -> None:
    assert read_cubin(data) == label


@pytest.mark.parametrize(
    ("flags", "abi", "machine", "features"),
    [(0x54C, 3, 0x4C, ""), (0x63F, 3, 0x3F, ":xnack-"), (0xF3F, 2, 0x3F, ":sramecc+:xnack+"), (0x62F, 1, 0x2F, "")],
)
def test_the_target_of_a_code_object(flags: int, abi: int, machine: int, features: str) -> None:
    assert read_code_object(gpu_elf(_AMDGPU, flags, abi)) == (machine, features)


def test_the_target_of_ptx() -> None:
    assert read_ptx(b"//\n// .target none\n.version 8.7\n.target sm_100a\n.address_size 64\n") == "compute_100a"


def read(wheel: WheelBuilder, *, exact: bool) -> GpuCodeFacts:
    return read_gpu_code(MemorySource(wheel.build(), remote=True), archive_of(facts_of(wheel)), exact=exact)


def labels(facts: GpuCodeFacts) -> dict[str, tuple[str, dict[str, int]] | str]:
    """The facts of each library, or the reason without them."""
    return {
        item.member: item.code.reason
        if isinstance(item.code, Unavailable)
        else (item.code.certainty, dict(item.code.counts))
        for item in facts.libraries
    }


def test_files_of_one_kind_in_one_folder_are_one_library() -> None:
    wheel = WheelBuilder("demo", "1.0", "py3-none-any")
    wheel.add("demo/k/one.cubin", cubin(100, "sm_100f")).add("demo/k/two.cubin", cubin(103, "sm_103a"))
    wheel.add("demo/k/three.ptx", b".target sm_90\n").add("demo/amd/f.hsaco", gpu_elf(_AMDGPU, 0x54C, 3))
    wheel.add("demo/amd/g.co", gpu_elf(_AMDGPU, 0x63F, 3))

    assert labels(read(wheel, exact=False)) == {
        "demo/k/*.cubin": ("exact", {"sm_100f": 1, "sm_103a": 1}),
        "demo/k/*.ptx": ("exact", {"compute_90": 1}),
        "demo/amd/*.hsaco": ("exact", {"gfx942": 1}),
        "demo/amd/*.co": ("exact", {"gfx90a:xnack-": 1}),
    }


def test_the_toolkit_of_files_and_the_version_of_their_ptx() -> None:
    wheel = WheelBuilder("demo", "1.0").add("demo/a_sm90.cubin", cubin_head(7, 124, 90))
    wheel.add("demo/b_sm100.cubin", cubin_head(8, 1, 100 << 8) + TOOLKIT_NOTE % b"12.8")
    wheel.add("demo/c_sm90.cubin", cubin_head(8, 1, 90 << 8)).add("demo/d_sm100.cubin", cubin_head(8, 1, 100 << 8))
    wheel.add("demo/e.ptx", b"//\n.version 8.7\n.target sm_90\n").add("demo/f.ptx", b".target sm_90\n")
    cubins, ptx = (code for _, code in read(wheel, exact=True).known)
    assert cubins.toolkits == {"12.4": 1, "12.8": 1, "ABI 8": 1, "ABI 8 from sm_100": 1}
    assert ptx.toolkits == {"PTX 8.7": 1, "": 1}
    assert ptx.ptx_isa == {"compute_90": "8.7"}


def test_of_many_files_some_are_read_of_each_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_reading, "CHEAP", 100)
    wheel = WheelBuilder("demo", "1.0", "py3-none-any")
    for number in range(20):
        wheel.add(f"demo/k/gemm{number}Sm100f.cubin", cubin(100, "sm_100f"))
    wheel.add("demo/k/gemmSm90a.cubin", gpu_elf(_CUDA, 0x5A0D5A, 7))

    assert labels(read(wheel, exact=False)) == {"demo/k/*.cubin": ("sampled", {"sm_100f": 3, "sm_90a": 1})}
    assert labels(read(wheel, exact=True)) == {"demo/k/*.cubin": ("exact", {"sm_100f": 20, "sm_90a": 1})}


def test_a_file_that_is_no_gpu_code() -> None:
    wheel = WheelBuilder("demo", "1.0", "py3-none-any").add("demo/k/one.cubin", b"not an ELF file, but text")

    (reason,) = labels(read(wheel, exact=True)).values()
    assert "demo/k/one.cubin cannot be read" in reason
