"""Members of a wheel that are taken for ELF files, and their facts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.environments import library
from tests.support.wheel_facts import MemorySource
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.elf.native_members import is_library, may_be_elf, read_native_members
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable

LARGE = library("libx.so", contents={".text": bytes(range(256)) * 3_000})
PROGRAM = library()


def member(name: str, *, size: int = 1000, mode: int = 0o100644, system: int = 3) -> Member:
    return Member(name, name.encode(), 8, 0, 1, size, size, 0, mode << 16, system)


def read(wheel: WheelBuilder, *, programs: bool = True) -> dict[str, Any]:
    """The facts by member name, and the source with its requests."""
    source = MemorySource(wheel.build())
    return {elf.member.name: elf.facts for elf in read_native_members(source, read_archive(source), programs=programs)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/libx.so", True),
        ("a/libx.so.1.2.3", True),
        ("libcupti.so.2025.1.1", True),
        ("a/libMLIR.so.24.0git", True),
        ("a/_C.cpython-312-x86_64-linux-gnu.so", True),
        ("a/libx.so.1.2.3.txt", True),  # by its name alone; its content decides
        ("a/x.sources", False),
        ("a/also", False),
        ("a/libx.dylib", False),
    ],
)
def test_names_of_libraries(name: str, expected: bool) -> None:
    assert is_library(name) is expected


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (member("a/libx.so"), True),
        (member("a/bin/ptxas", mode=0o100755), True),
        (member("a/bin/ptxas"), False),
        (member("a/bin/run.py", mode=0o100755), False),
        (member("a/bin/ptxas", mode=0o100755, system=0), False),
        (member("a/lib.so/"), False),
        (member("a/libx.so", size=63), False),
    ],
    ids=["library", "program", "not executable", "script", "made on Windows", "folder", "smaller than a header"],
)
def test_members_that_may_be_elf_files(candidate: Member, expected: bool) -> None:
    assert may_be_elf(candidate) is expected


def test_programs_come_along_unless_they_are_not_wanted_and_scripts_never() -> None:
    wheel = WheelBuilder().add("a/libx.so", library()).add("a/bin/ptxas", PROGRAM, mode=0o100755)
    wheel.add("a/bin/run", b"#!/bin/sh\n" + b"#" * 100, mode=0o100755)

    assert set(read(wheel)) == {"a/libx.so", "a/bin/ptxas"}
    assert set(read(wheel, programs=False)) == {"a/libx.so"}


def test_what_is_named_like_a_library_and_is_none_says_why() -> None:
    facts = read(WheelBuilder().add("a/libx.so", b"INPUT(-lreal)" + b" " * 100))["a/libx.so"]

    assert isinstance(facts, Unavailable)
    assert "e_ident" in facts.reason


@pytest.mark.parametrize("whole", [False, True])
def test_copies_instead_of_links_are_read_once_but_for_depth_full(whole: bool) -> None:
    names = ("libx.so", "libx.so.1", "libx.so.1.2")
    wheel = WheelBuilder().add("liby.so", library("liby.so"))
    for name in names:
        wheel.add(name, LARGE)
    source = MemorySource(wheel.build())
    archive = read_archive(source)

    found = read_native_members(source, archive, whole=whole)

    assert [elf.member.name for elf in found] == ["liby.so", *names]
    assert len({repr(elf.facts) for elf in found}) == 2
    assert [elf.bytes_read > 0 for elf in found] == [True, True, whole, whole]
    starts = {item.header_offset for item in archive.members if item.name in names}
    assert len(starts & {offset for offset, _ in source.ranges}) == (3 if whole else 1)
