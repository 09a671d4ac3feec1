"""The parts of a member's name that belong to one build alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pairs import library
from tests.support.wheel_facts import archive_of, facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.wheel.member_roles import Kind, members_by_role, role_of


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("torch/_C.cpython-312-aarch64-linux-gnu.so", "torch/_C.so"),
        ("torch/_C.cpython-313t-x86_64-linux-gnu.so", "torch/_C.so"),
        ("vllm/_C.abi3.so", "vllm/_C.so"),
        ("demo/_C.cp312-win_amd64.pyd", "demo/_C.pyd"),
        ("demo/__pycache__/a.cpython-312.opt-1.pyc", "demo/__pycache__/a.opt-1.pyc"),
        ("demo.libs/libgomp-a49a47f9.so.1.0.0", "demo.libs/libgomp.so.1.0.0"),
        ("numpy.libs/libgfortran-040039e1-0352e75f.so.5.0.0", "numpy.libs/libgfortran.so.5.0.0"),
        ("torch.libs/libopenblasp-r0-121ca252.3.30.so", "torch.libs/libopenblasp-r0.3.30.so"),
        ("torch-2.11.0.dist-info/entry_points.txt", "*.dist-info/entry_points.txt"),
        ("demo-1.0.data/scripts/run", "*.data/scripts/run"),
    ],
)
def test_what_one_build_has_is_no_part_of_the_role(name: str, role: str) -> None:
    assert role_of(name) == role


@pytest.mark.parametrize(
    "name",
    [
        "torch/lib/libtorch_cuda.so",
        "torch/lib/libcudart-13.so.13",
        "demo/libx-0123abc.so",  # seven digits
        "demo-0a1b2c3d/x.so",
        "demo/cpython-312-notes.txt",
        "demo/notes-1.0.dist-info/x",
        "é" * 5_000 + ".abi3.so",
    ],
)
def test_everything_else_is(name: str) -> None:
    assert role_of(name) == name


@given(st.text(max_size=300), st.sampled_from(["", ".abi3.so", "-0a1b2c3d.so.1", ".dist-info/x", "/"]))
def test_a_role_is_no_longer_than_the_name_and_as_deep(name: str, end: str) -> None:
    role = role_of(name + end)

    assert len(role) <= len(name + end)
    assert role.count("/") == (name + end).count("/")


def test_kinds_are_told_by_names_and_what_elf_files_are_by_what_was_read() -> None:
    wheel = WheelBuilder(tags="cp312-cp312-manylinux_2_28_x86_64").add("demo/").add("demo/a.pyi").add("demo/b.cuh")
    wheel.add("demo/bin/run", b"#!/bin/sh\n" * 9, mode=0o755).add("demo/lib.so", library()).add("demo/c.json")
    wheel.dist_info_file("entry_points.txt", "[console_scripts]\n")
    members = archive_of(facts_of(wheel)).members

    by_name = {kind: list(roles) for kind, roles in members_by_role(members, None).items()}
    read = {kind: list(roles) for kind, roles in members_by_role(members, {"demo/lib.so"}).items()}

    assert by_name == {
        Kind.PYTHON: ["demo/a.pyi"],
        Kind.NATIVE: ["demo/bin/run", "demo/lib.so"],
        Kind.DIST_INFO: ["*.dist-info/entry_points.txt"],
        Kind.HEADER: ["demo/b.cuh"],
        Kind.DATA: ["demo/c.json"],
    }
    assert read[Kind.NATIVE] == ["demo/lib.so"]
    assert read[Kind.DATA] == ["demo/bin/run", "demo/c.json"]


def test_two_members_of_one_role_both_count() -> None:
    wheel = WheelBuilder().add("demo/_C.abi3.so").add("demo/_C.cpython-312-x86_64-linux-gnu.so")

    roles = members_by_role(archive_of(facts_of(wheel)).members, None)[Kind.NATIVE]

    assert list(roles) == ["demo/_C.so", "demo/_C.cpython-312-x86_64-linux-gnu.so"]
