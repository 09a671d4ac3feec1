"""The differences of one library that two wheels both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.support.pairs import library, wheel_for
from tests.support.wheel_facts import facts_of
from wheel_checks.facts.difference.libraries import (
    Change,
    GpuCodeDifference,
    LinkDifference,
    compare_gpu_code,
    compare_links,
)
from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.gpu.code import GpuCodeFacts, LibraryGpuCode
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.formats.elf.file import Missing
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Unavailable


def elf(name: str = "demo/lib.so", machine: str = "aarch64", **fields: Any) -> MemberElf:
    """A library as it is read from a wheel; ``fields`` are those of the builder."""
    facts = facts_of(wheel_for(machine).add(name, library(machine, **fields)), depth=Depth.LINKS)
    assert not isinstance(facts.elfs, Unavailable)
    return facts.elfs[0]


def partly_read(*possible: str, name: str = "demo/lib.so") -> MemberElf:
    """A library whose dynamic section was not read; ``possible`` are its strings that may be libraries."""
    known = elf(name)
    assert not isinstance(known.facts, Unavailable)
    return replace(known, facts=replace(known.facts, dynamic=Missing()), possible_names=possible)


def links(a: MemberElf, b: MemberElf) -> LinkDifference:
    found = compare_links("demo/lib.so", a, b)
    assert isinstance(found, LinkDifference)
    return found


def test_what_one_side_needs() -> None:
    a, b = elf(needed=("libc.so.6", "libgomp.so.1")), elf(needed=("libcudart.so.13", "libc.so.6"))

    assert links(a, b) == LinkDifference("demo/lib.so", ("libgomp.so.1",), ("libcudart.so.13",))


def test_the_order_of_needs_and_the_hash_of_auditwheel_are_no_difference() -> None:
    a = elf(needed=("libc.so.6", "libgomp-a49a47f9.so.1"), soname="libx-0a1b2c3d.so.1")
    b = elf(needed=("libgomp-24fd393f.so.1", "libc.so.6"), soname="libx-4e5f6a7b.so.1")

    assert not links(a, b).differs


def test_soname_search_paths_interpreter_and_symbol_versions() -> None:
    a = elf(soname="a.so", rpath="$ORIGIN", needs={"libc.so.6": ("GLIBC_2.9", "GLIBC_2.17", "GLIBC_2.3.4")})
    b = elf(soname="b.so", runpath="$ORIGIN:/opt", interpreter="/lib/ld.so", needs={"libc.so.6": ("GLIBC_2.28", "X")})

    assert links(a, b).changes == (
        Change("soname", "a.so", "b.so"),
        Change("RPATH", "$ORIGIN", ""),
        Change("RUNPATH", "", "$ORIGIN:/opt"),
        Change("interpreter", "", "/lib/ld.so"),
        Change("GLIBC", "2.17", "2.28"),
    )


def test_a_kind_of_symbol_that_one_side_uses_none_of_is_no_difference() -> None:
    a, b = elf(needs={"libc.so.6": ("GLIBC_2.17",)}), elf(needs={"libgcc_s.so.1": ("GCC_3.0",)})

    assert not links(a, b).differs


def test_what_is_only_possible_is_not_told_as_certain() -> None:
    known = elf(needed=("libc.so.6", "libnccl.so.2"))
    possible = partly_read("libc.so.6", "libcublas.so.13", "$ORIGIN/../lib.so", "lib.so")

    found = links(known, possible)

    assert (found.only_a, found.only_b) == (("libnccl.so.2",), ())
    assert (found.maybe_a, found.maybe_b) == ((), ("libcublas.so.13",))


def test_linkers_put_a_name_at_the_end_of_another() -> None:
    found = links(elf(needed=("c10.so",)), partly_read("libc10.so"))

    assert (found.only_a, found.maybe_a, found.maybe_b) == ((), ("c10.so",), ("libc10.so",))


def test_what_is_not_even_possible_to_tell_is_not_compared() -> None:
    known, unknown = elf(needed=("libc.so.6",)), partly_read()
    unknown = replace(unknown, possible_names=Unavailable("too many bytes"))
    broken = replace(known, facts=Unavailable("no ELF file"))

    assert compare_links("demo/lib.so", known, unknown) == Unavailable("too many bytes")
    assert compare_links("demo/lib.so", broken, known) == Unavailable("no ELF file")


def test_a_hundred_thousand_needs_are_compared_in_no_time() -> None:
    a = partly_read(*(f"lib{number}a.so" for number in range(100_000)))
    b = partly_read(*(f"lib{number}b.so" for number in range(100_000)))

    assert len(links(a, b).maybe_a) == 100_000


def gpu_code(*libraries: LibraryGpuCode) -> GpuCodeFacts:
    return GpuCodeFacts(libraries)


def code(*labels: str) -> GpuCode:
    return GpuCode(dict.fromkeys(labels, 1), "exact", {})


def compared(a: Sequence[LibraryGpuCode], b: Sequence[LibraryGpuCode]) -> tuple[list[GpuCodeDifference], list[str]]:
    names = {"lib.so": "lib-0a1b2c3d.so"}, {"lib.so": "lib-4e5f6a7b.so"}
    return compare_gpu_code(gpu_code(*a), gpu_code(*b), *names)


def test_targets_are_compared_by_the_role_of_the_library() -> None:
    a = LibraryGpuCode("lib-0a1b2c3d.so", code("sm_110", "compute_90", "sm_90", "lto_80"))
    b = LibraryGpuCode("lib-4e5f6a7b.so", code("sm_75", "sm_90"))

    ((found,), unread) = compared([a], [b])

    assert found == GpuCodeDifference(
        "lib.so", ("sm_90", "sm_110", "compute_90", "lto_80"), ("sm_75", "sm_90"), "exact"
    )
    assert (found.only_a, found.only_b) == (("sm_110", "compute_90", "lto_80"), ("sm_75",))
    assert unread == []


def test_a_library_without_gpu_code_has_no_targets() -> None:
    a = LibraryGpuCode("lib-0a1b2c3d.so", code("sm_90"))

    assert compared([a], []) == ([GpuCodeDifference("lib.so", ("sm_90",), (), "exact")], [])
    assert compared([], []) == ([], [])


def test_a_library_that_could_not_be_read_is_named() -> None:
    a = LibraryGpuCode("lib-0a1b2c3d.so", Unavailable("too large"))

    assert compared([a], []) == ([], ["lib.so"])


def test_the_members_of_a_built_wheel() -> None:
    wheel = wheel_for().add("demo/lib.so", library(gpu=("sm_90",)))

    facts = facts_of(wheel, depth=Depth.GPU)

    assert not isinstance(facts.gpu_code, Unavailable)
    names = {"demo/lib.so": "demo/lib.so"}
    ((found,), _) = compare_gpu_code(facts.gpu_code, gpu_code(), names, names)
    assert (found.a, found.b) == (("sm_90",), ())
