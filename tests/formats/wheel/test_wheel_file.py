"""WHEEL."""

from __future__ import annotations

import pytest
from packaging.tags import Tag

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.wheel_file import MAX_SIZE, parse_wheel_file

GOOD = b"Wheel-Version: 1.0\nGenerator: demo (1)\nRoot-Is-Purelib: false\nTag: cp312-cp312-linux_aarch64\n"


def test_the_fields() -> None:
    wheel = parse_wheel_file(GOOD + b"Tag: cp312-abi3-linux_aarch64\r\nBuild: 3\n\n")
    assert (wheel.wheel_version, wheel.generator, wheel.root_is_purelib, wheel.build) == ("1.0", "demo (1)", False, "3")
    assert wheel.tags == {Tag("cp312", "cp312", "linux_aarch64"), Tag("cp312", "abi3", "linux_aarch64")}
    assert wheel.faults == ()


def test_field_names_and_booleans_ignore_case() -> None:
    wheel = parse_wheel_file(b"wheel-version: 1.0\nroot-is-purelib: TRUE\ntag: py2.py3-none-any\n")
    assert (wheel.root_is_purelib, len(wheel.tags)) == (True, 2)
    assert wheel.faults == ("line 1 has the key wheel-version; uv supports only Wheel-Version",)


def test_an_empty_file_lacks_what_is_required() -> None:
    assert parse_wheel_file(b"").faults == (
        "Wheel-Version is missing",
        "Root-Is-Purelib is ''; expected true or false",
        "Tag is missing",
    )


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b"1.0", b"2.0", "Wheel-Version is 2.0; installers reject a major version other than 1"),
        (b"1.0", b"one", "Wheel-Version is 'one'; expected two numbers, such as 1.0"),
        (b"false", b"perhaps", "Root-Is-Purelib is 'perhaps'; expected true or false"),
        (b"cp312-cp312", b"cp312", "Tag is wrong: 'cp312-linux_aarch64' is not a wheel tag"),
        (b"Generator: ", b"Wheel-Version: 1.1\nGenerator: ", "Wheel-Version is given more than once"),
        (b"Generator: ", b"Build: x\nGenerator: ", "Build is 'x'; expected a build tag that starts with a digit"),
        (b"Generator: ", b"free text\nGenerator: ", "line 2 is 'free text'; expected Key: value"),
        (b"demo", b"\xff", "WHEEL is not UTF-8"),
    ],
)
def test_a_fault_is_a_sentence(old: bytes, new: bytes, fault: str) -> None:
    (found,) = parse_wheel_file(GOOD.replace(old, new)).faults
    assert found.startswith(fault)


def test_absurd_input_is_bounded() -> None:
    many = ".".join("p" * 90)
    wheel = parse_wheel_file(f"Tag: {many}-{many}-any\n".encode() * 1000 + b"x\n" * 1000)
    assert wheel.tags == {Tag("p", "p", "any")}
    assert len(wheel.faults) == 101
    assert wheel.faults[-1].startswith("and ")
    with pytest.raises(FormatError, match="WHEEL has"):
        parse_wheel_file(bytes(MAX_SIZE + 1))
