"""Given two wheels, their differences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pairs import difference, library, wheel_for
from tests.support.wheel_facts import AARCH64, X86_64, facts_of
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.facts.difference.libraries import Change
from wheel_checks.facts.difference.wheels import (
    Compared,
    Difference,
    MemberDifference,
    RequirementDifference,
    SizeDifference,
    compare_wheels,
    name_sides,
    side_of,
)
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.member_roles import Kind
from wheel_checks.model import Unavailable


def members_of(pair: Difference, kind: Kind) -> MemberDifference:
    assert not isinstance(pair.members, Unavailable)
    return pair.members[kind]


def test_a_wheel_does_not_differ_from_itself() -> None:
    pair = difference(torch_like(), torch_like())

    sections = (pair.fields, pair.values, pair.requirements, pair.sizes, pair.links, pair.gpu_code)
    assert all(isinstance(section, Compared) and section.differences == () for section in sections)
    assert all(members_of(pair, kind).share == 0 for kind in Kind)


def test_requirements_are_those_active_on_each_side() -> None:
    pair = difference(torch_like("cpu", "2.10.0", "aarch64"), torch_like("cuda", "2.10.0", "x86_64"))

    assert isinstance(pair.requirements, Compared)
    assert pair.requirements.same == 3
    assert pair.requirements.differences[-1] == RequirementDifference("triton", "", "==3.6.0", by_marker=True)
    assert len(pair.requirements.differences) == 5


def test_one_wheel_for_every_platform_differs_by_its_targets() -> None:
    wheel = WheelBuilder().metadata(requires=["a; platform_machine == 'aarch64'", "b>=1", "b>=2; os_name == 'posix'"])

    pair = compare_wheels(facts_of(wheel, target=AARCH64), facts_of(wheel, target=X86_64))

    assert pair.requirements == Compared((RequirementDifference("a", "any version", "", by_marker=True),), 1)
    assert name_sides(pair.a, pair.b) == ("aarch64", "x86_64")


def test_extras_and_links_are_part_of_a_requirement() -> None:
    a = wheel_for().metadata(requires=["cuda-toolkit[cudart,cublas]==13.0.2", "x @ https://example.org/x.whl"])
    b = wheel_for().metadata(requires=["CUDA.Toolkit[cublas]==13.0.2", "x"])

    assert difference(a, b).requirements == Compared(
        (
            RequirementDifference("cuda-toolkit", "[cublas,cudart]==13.0.2", "[cublas]==13.0.2", by_marker=False),
            RequirementDifference("x", "@ https://example.org/x.whl", "any version", by_marker=False),
        ),
        0,
    )


def test_files_are_compared_by_role_and_texts_by_content() -> None:
    a = wheel_for("aarch64").add("demo/_C.cpython-312-aarch64-linux-gnu.so", library()).add("demo/a.py", "1")
    b = wheel_for("x86_64").add("demo/_C.abi3.so", library("x86_64")).add("demo/a.py", "2").add("demo/b.pyi")

    pair = difference(a, b)

    assert members_of(pair, Kind.NATIVE) == MemberDifference(same=1)
    assert members_of(pair, Kind.PYTHON) == MemberDifference((), ("demo/b.pyi",), ("demo/a.py",), 1)
    assert members_of(pair, Kind.PYTHON).share == pytest.approx(1 / 3)


def test_entry_points_are_compared_by_content() -> None:
    a, b = (wheel_for().dist_info_file("entry_points.txt", f"[console_scripts]\ndemo = demo:{name}\n") for name in "ab")

    assert members_of(difference(a, b), Kind.DIST_INFO).changed == ("*.dist-info/entry_points.txt",)


def test_sizes_are_those_of_native_files_inflated() -> None:
    a, b = (wheel_for().add("demo/lib.so", bytes(size)).add("demo/x.bin", bytes(size)) for size in (1000, 3000))

    assert difference(a, b, Depth.QUICK).sizes == Compared((SizeDifference("demo/lib.so", 1000, 3000),), 0)


def test_fields_and_values_of_version_py() -> None:
    a = torch_like("cuda", "2.11.0").metadata(requires_python=">=3.10")
    b = torch_like("cpu", "2.11.0").metadata(requires_python=">=3.11")

    pair = difference(a, b)

    assert pair.fields == Compared((Change("Requires-Python", ">=3.10", ">=3.11"),), 5)
    assert [change.name for change in pair.values.differences] == [
        "__version__ in torch/version.py",
        "cuda in torch/version.py",
    ]


def test_at_depth_quick_linking_and_gpu_code_are_not_compared() -> None:
    pair = difference(wheel_for(), wheel_for("x86_64"), Depth.QUICK)

    assert isinstance(pair.links, Unavailable)
    assert isinstance(pair.gpu_code, Unavailable)
    assert isinstance(pair.sizes, Compared)


def test_a_broken_wheel_is_compared_in_nothing_but_its_name() -> None:
    pair = compare_wheels(facts_of(wheel_for()), facts_of(b"no archive"))

    for section in (pair.fields, pair.requirements, pair.members, pair.sizes):
        assert section == Unavailable("the archive cannot be read", "see WHL001")


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        (wheel_for("aarch64"), wheel_for("x86_64"), ("aarch64", "x86_64")),
        (wheel_for(python="cp312"), wheel_for(python="cp313"), ("cp312", "cp313")),
        (wheel_for(version="1.0"), wheel_for(version="1.1"), ("1.0", "1.1")),
        (wheel_for(), wheel_for(build="3"), ("1.0", "1.0 3")),
        (wheel_for(), wheel_for(), ("A", "B")),
    ],
)
def test_the_sides_are_named_by_what_tells_them_apart(a: WheelBuilder, b: WheelBuilder, names: tuple[str, str]) -> None:
    assert name_sides(side_of(facts_of(a)), side_of(facts_of(b))) == names


lines = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@st.composite
def any_wheel(draw: st.DrawFn) -> WheelBuilder:
    machine = draw(st.sampled_from(["aarch64", "x86_64"]))
    wheel = wheel_for(machine).add("demo/version.py", draw(lines))
    contents = st.binary(max_size=80) | st.just(library(machine, needed=("libc.so.6",), gpu=("sm_90",)))
    for number, name in enumerate(draw(st.lists(st.text(max_size=20), max_size=4))):
        wheel.add(
            f"demo/{number}{name}{draw(st.sampled_from(['.so', '.py', '.h', '-0a1b2c3d.so.1', '']))}", draw(contents)
        )
    requirement = draw(st.sampled_from(["a", "a>1; os_name == 'x'", "a[b]", "a; extra == 'c'", "b ~= 1.0"]) | lines)
    return wheel.dist_info_file("METADATA", f"Metadata-Version: 2.1\nName: demo\nRequires-Dist: {requirement}\n")


@settings(max_examples=60)
@given(any_wheel(), any_wheel(), st.sampled_from([Depth.QUICK, Depth.GPU]))
def test_whatever_two_wheels_hold_the_sides_are_treated_alike(a: WheelBuilder, b: WheelBuilder, depth: Depth) -> None:
    one, other = difference(a, b, depth), difference(b, a, depth)

    assert (one.a, one.b) == (other.b, other.a)
    assert not isinstance(one.members, Unavailable)
    assert not isinstance(other.members, Unavailable)
    for kind, files in one.members.items():
        mirrored = replace(files, only_a=files.only_b, only_b=files.only_a)
        assert other.members[kind] == mirrored
    for ours, theirs in ((one.sizes, other.sizes), (one.gpu_code, other.gpu_code), (one.values, other.values)):
        if isinstance(ours, Compared) and isinstance(theirs, Compared):
            assert {(item.name, item.a, item.b) for item in ours.differences} == {
                (item.name, item.b, item.a) for item in theirs.differences
            }
    assert one.links_unread == other.links_unread
