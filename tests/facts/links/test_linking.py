"""Wheels laid out as if they were installed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.environments import library
from tests.support.wheel_facts import AARCH64, X86_64
from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.facts.elf.member_elf import MemberElf, ReadMode
from wheel_checks.facts.links.closure import Status
from wheel_checks.facts.links.linking import LaidOutWheel, LinkFacts, installed_path, lay_out, link
from wheel_checks.facts.links.possible_needs import supposed_dynamic
from wheel_checks.formats.elf.bytes import ByteRange, WholeFile
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Missing, read_elf
from wheel_checks.model import Unavailable

MODULE = "torch/_C.cpython-312-aarch64-linux-gnu.so"
RPATH = "$ORIGIN/../../nvidia/cu13/lib:$ORIGIN"
NOT_SOUGHT = Unavailable("the strings of .dynstr would take too many bytes")
CUBLAS = "nvidia/cu13/lib/libcublas.so.13"


def read(path: str, data: bytes) -> MemberElf:
    """The facts of a member that was read completely."""
    _, members, _ = read_zip(write_zip([ZipEntry(path, data)]))
    return MemberElf(members[0], read_elf(WholeFile(data)), ReadMode.WHOLE, len(data))


def unread(path: str, names: Sequence[str] = ()) -> MemberElf:
    """The facts of a big member whose dynamic section was not found, with the strings that were."""
    elf = read(path, library())
    assert isinstance(elf.facts, ElfFacts)
    facts = replace(elf.facts, dynamic=Missing((ByteRange(10**8, 100),)))
    return replace(elf, facts=facts, possible_names=tuple(names) or NOT_SOUGHT)


def wheel(name: str, *elfs: MemberElf) -> LaidOutWheel:
    return lay_out(f"{name}-1.0-cp312-cp312-manylinux_2_28_aarch64.whl", elfs, 1000, 3)


def torch(cuda: MemberElf | None = None, *more: MemberElf) -> LaidOutWheel:
    module = read(MODULE, library("", ["libtorch_cuda.so"], rpath="$ORIGIN/lib"))
    plain = read("torch/lib/libtorch_cuda.so", library("libtorch_cuda.so", ["libcublas.so.13"], rpath=RPATH))
    return wheel("torch", module, cuda or plain, *more)


NVIDIA = wheel("nvidia_cublas", read(CUBLAS, library("libcublas.so.13", ["libc.so.6"])))


def statuses(facts: LinkFacts) -> dict[tuple[str, str], tuple[Status, bool]]:
    return {(item.elf.rpartition("/")[2], item.soname): (item.status, item.certain) for item in facts.closure.needs}


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ("torch/lib/libc10.so", "torch/lib/libc10.so"),
        ("demo-1.0.data/purelib/demo/libx.so", "demo/libx.so"),
        ("demo-1.0.data/platlib/demo/libx.so", "demo/libx.so"),
        ("demo-1.0.data/data/lib/libx.so", "../../../lib/libx.so"),
        ("demo-1.0.data/scripts/ptxas", "../../../bin/ptxas"),
        ("demo-1.0.data/headers/x.h", "../../../include/x.h"),
        ("demo.data/x", "demo.data/x"),
    ],
)
def test_where_members_are_installed(member: str, path: str) -> None:
    assert installed_path(member) == path


def test_a_library_among_the_data_is_found_by_its_place_after_the_install() -> None:
    demo = wheel(
        "demo",
        read("demo-1.0.data/platlib/demo/_x.abi3.so", library("", ["libx.so"], rpath="$ORIGIN/../../../../lib")),
        read("demo-1.0.data/data/lib/libx.so", library("libx.so")),
    )

    (need,) = link(demo, [], AARCH64).closure.needs
    assert (need.elf, need.by) == ("demo/_x.abi3.so", "../../../lib/libx.so")


def test_every_need_has_its_status_and_its_wheel() -> None:
    facts = link(torch(), [NVIDIA], AARCH64, how="uv")

    assert statuses(facts) == {
        ("libcublas.so.13", "libc.so.6"): (Status.SYSTEM, True),
        ("_C.cpython-312-aarch64-linux-gnu.so", "libtorch_cuda.so"): (Status.RESOLVED, True),
        ("libtorch_cuda.so", "libcublas.so.13"): (Status.RESOLVED, True),
    }
    assert facts.owners[CUBLAS] == NVIDIA.file_name
    assert facts.wheels == (torch().file_name, NVIDIA.file_name)
    assert (facts.bytes_read, facts.requests, facts.how) == (1000, 3, "uv")


def test_of_two_wheels_with_one_path_the_judged_one_counts() -> None:
    mine = torch(None, read(CUBLAS, library("libcublas.so.13", ["libmine.so"])))

    facts = link(mine, [NVIDIA], AARCH64)
    assert facts.owners[CUBLAS] == mine.file_name
    assert ("libcublas.so.13", "libmine.so") in statuses(facts)


def test_files_for_another_machine_are_not_there() -> None:
    foreign = wheel("foreign", read("a/libcublas.so.13", library("libcublas.so.13", machine="x86_64")))

    assert link(torch(), [foreign], AARCH64).files.keys() == torch().files.keys()
    assert link(torch(), [NVIDIA], X86_64).files == {}


# Libraries whose dynamic section was not found.


def test_the_strings_of_a_library_tell_what_it_needs_at_most() -> None:
    names = ["libcublas.so.13", "libc.so.6", "libtorch_cuda.so", RPATH]

    facts = link(torch(unread("torch/lib/libtorch_cuda.so", names)), [NVIDIA], AARCH64)

    found = statuses(facts)
    assert found["libtorch_cuda.so", "libcublas.so.13"] == (Status.RESOLVED, False)
    assert found["libtorch_cuda.so", "libc.so.6"] == (Status.SYSTEM, False)
    assert found["_C.cpython-312-aarch64-linux-gnu.so", "libtorch_cuda.so"] == (Status.RESOLVED, True)
    assert facts.closure.unread == ()
    assert CUBLAS in facts.loaded().files


def test_without_strings_its_needs_are_unknown_and_what_lies_beside_it_may_be_loaded() -> None:
    vision = wheel("torchvision", read("torchvision/_C.so", library("", ["libc10.so", "libnowhere.so"])))
    c10 = read("torch/lib/libc10.so", library("libc10.so", ["libc.so.6"]))

    facts = link(vision, [torch(unread("torch/lib/libtorch_cuda.so"), c10)], AARCH64)

    found = statuses(facts)
    assert facts.closure.unread == ("torch/lib/libtorch_cuda.so",)
    assert found["_C.so", "libc10.so"] == (Status.PRELOAD, True)
    assert found["_C.so", "libnowhere.so"] == (Status.MISSING, True)
    assert "torch/lib/libc10.so" in facts.loaded().files


@pytest.mark.parametrize(
    ("path", "names", "soname", "needed"),
    [
        ("a/libx.so.1", ["libx.so.1", "liby.so", "libx"], "libx.so.1", ("liby.so",)),
        ("a/libx.so.1.2", ["libx.so.1", "liby.so"], "libx.so.1", ("liby.so",)),
        ("a/libcupti.so", ["libcupti.so.12", "libdl.so.2"], "libcupti.so.12", ("libdl.so.2",)),
        ("a/libx.so", ["liby.so"], "libx.so", ("liby.so",)),
        ("a/libx.so", ["libgomp.so.1", "libgomp-a49a47f9.so.1.0.0", "libm.so.6"], "libx.so",
         ("libgomp-a49a47f9.so.1.0.0", "libm.so.6")),
        ("a/libx.so", ["libq-dd7a54b5-1c7b79d9.so.0", "libq.so.0"], "libx.so", ("libq-dd7a54b5-1c7b79d9.so.0",)),
        ("a/libx.so", ["_ZN3foo.so", "/build/liby.so", "ld-linux-aarch64.so.1", "not a.so"], "libx.so",
         ("_ZN3foo.so", "ld-linux-aarch64.so.1")),
        ("a/bin/ptxas", ["libdl.so.2"], "ptxas", ("libdl.so.2",)),
        ("a/_x.so", ["lib_x.so", "libdl.so.2"], "lib_x.so", ("libdl.so.2",)),
        ("a/x.so", ["libx.so.5"], "x.so", ("libx.so.5",)),
    ],
    ids=["soname", "longer name", "shorter name", "no soname", "auditwheel", "auditwheel twice", "paths", "program",
         "module", "library"],
)  # fmt: skip
def test_what_strings_tell(path: str, names: list[str], soname: str, needed: tuple[str, ...]) -> None:
    found = supposed_dynamic(path, names)

    assert (found.soname, found.needed) == (soname, needed)


def test_search_paths_are_the_strings_with_an_origin() -> None:
    assert supposed_dynamic("a/libx.so", ["/usr/lib", "${ORIGIN}/y:$ORIGIN", "x/y"]).rpath == ("${ORIGIN}/y", "$ORIGIN")


@given(st.text(max_size=30), st.lists(st.text(max_size=40), max_size=20))
def test_any_strings_make_a_dynamic_section(path: str, names: list[str]) -> None:
    found = supposed_dynamic(path, names)

    assert isinstance(found, DynamicFacts)
    assert set(found.needed) <= set(names)


def test_a_million_strings_are_cut_off() -> None:
    assert len(supposed_dynamic("a/libx.so", (f"lib{number}.so" for number in range(1_000_000))).needed) <= 1000


# The closure of an import.


def test_what_modules_lead_to_is_imported_and_all_else_is_opened_by_name() -> None:
    left_over = read("torch/lib/libgfortran.so.5", library("libgfortran.so.5", ["libquadmath.so.0"]))
    program = read("torch/bin/ptxas", library("", ["libgone.so"]))

    assert link(torch(None, left_over, program), [NVIDIA], AARCH64).loaded().files == {
        MODULE,
        "torch/lib/libtorch_cuda.so",
        CUBLAS,
    }


@pytest.mark.parametrize(
    "name", ["triton/_C/libtriton.so", "a/x.cpython-312-aarch64-linux-gnu.so", "a/x.abi3.so", "a/_x.so", "_x.so"]
)
def test_names_of_modules(name: str) -> None:
    assert link(wheel("demo", read(name, library())), [], AARCH64).loaded().files == {name}


def test_a_wheel_without_modules_must_be_able_to_open_one_of_its_libraries() -> None:
    lame, sound = (
        read(f"a/{name}.so", library("", [needed])) for name, needed in (("x", "libx.so"), ("y", "libm.so.6"))
    )

    assert link(wheel("demo", lame), [], AARCH64).loaded().files == {"a/x.so"}
    both = link(wheel("demo", lame, sound), [], AARCH64).loaded()
    assert both.files == {"a/y.so"}
    assert both.undecided == ("a/x.so",)
    assert link(wheel("demo", lame), [torch()], AARCH64).loaded().files == {"a/x.so"}
