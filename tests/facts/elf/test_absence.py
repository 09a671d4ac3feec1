"""Proofs, with few bytes, that a library has no GPU code and needs none of the searched names."""

from __future__ import annotations

import random

import pytest

from tests.support.elf import Elf
from tests.support.wheel_facts import MemorySource
from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.data import load
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.absence import Absence, rule_out
from wheel_checks.facts.elf.held_bytes import HeldBytes
from wheel_checks.formats.elf.section_names import may_name_gpu_code

NOISE = random.Random(5).randbytes(400_000)


def of_cuda(name: str) -> bool:
    """The searched names."""
    return name.endswith("libcudart.so.13")


def ruled_out(*libraries: bytes) -> list[Absence]:
    """The proofs for these members of one archive."""
    archive = write_zip([ZipEntry(f"lib{number}.so", data) for number, data in enumerate(libraries)])
    end, members, _ = read_zip(archive)
    return rule_out(MemorySource(archive, remote=True), Archive(end, members, ()), members, of_cuda)


def library(**options: object) -> bytes:
    """A library of 400 KB that deflate cannot make smaller."""
    return Elf(contents={".rodata": NOISE}, **options).build().data  # type: ignore[arg-type]  # the builder's fields


def test_a_big_library_is_ruled_out_by_its_ends() -> None:
    (found,) = ruled_out(library(needed=["libc.so.6"]))

    assert found.proven
    assert found.bytes_read < 64 * 1024


@pytest.mark.parametrize(
    "data",
    [
        library(needed=["libcudart.so.13"]),
        library(needed=["xlibcudart.so.13"]),
        Elf(contents={".rodata": NOISE, ".nv_fatbin": bytes(16)}).build().data,
        Elf(contents={".rodata": NOISE, ".hip_fatbin.7": bytes(16)}).build().data,
        Elf(contents={".rodata": NOISE, "__CLANG_OFFLOAD_BUNDLE__sycl-spir64": bytes(16)}).build().data,
        library(section_table=False),
        b"INPUT(libother.so)" + bytes(200),
        library()[:-100],
        b"\x7fELF",
    ],
    ids=["needed", "the end of a name", "CUDA", "HIP", "SYCL", "no table", "a script", "cut off", "too short"],
)
def test_what_cannot_be_ruled_out(data: bytes) -> None:
    assert [found.proven for found in ruled_out(data)] == [False]


def test_a_small_library_is_read_whole_and_others_are_judged_by_themselves() -> None:
    small, cuda = Elf(needed=["libc.so.6"]).build().data, library(needed=["libcudart.so.13"])

    assert [found.proven for found in ruled_out(small, cuda, small)] == [True, False, True]


@pytest.mark.parametrize(
    ("names", "may"),
    [
        (b"\0.text\0.nv_fatbin\0", True),
        (b"\0.rel.nv_fatbin\0", True),
        (b"\0.nv_fatbin_of_mine\0", False),
        (b"\0.hip_fatbin.3\0", True),
        (b"\0.text\0.nv?fatbin\0", True),
        (b"\0.text\0.nv?fatcat\0", False),
        (b"\0.text\0????????????\0", True),
        (b"\0.text\0????\0", False),
        (b"\0.text\0.data\0", False),
    ],
)
def test_names_of_which_bytes_are_unknown(names: bytes, may: bool) -> None:
    """A question mark is an unknown byte."""
    assert may_name_gpu_code([None if byte == ord("?") else byte for byte in names]) is may


def test_the_names_that_are_sought_are_those_of_the_table() -> None:
    seen = {".nv_fatbin", "__nv_relfatbin", ".hip_fatbin", "__CLANG_OFFLOAD_BUNDLE__sycl-spir64"}

    assert {row["accelerator"] for row in load("accelerators")["section"]} == {"cuda", "rocm", "xpu"}
    assert all(may_name_gpu_code(list(f"\0{name}\0".encode())) for name in seen)


def test_no_byte_is_read_twice() -> None:
    source = MemorySource(bytes(range(100)))
    held = HeldBytes(source, 100)

    assert held.read_many([(0, 10), (20, 10)]) == [bytes(range(10)), bytes(range(20, 30))]
    assert held.read(5, 20) == bytes(range(5, 25))
    assert source.ranges == [(0, 10), (20, 10), (10, 10)]
