"""METADATA."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.growth import assert_at_most_doubles
from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.core_metadata import (
    MAX_REQUIREMENTS,
    METADATA_VERSIONS,
    parse_core_metadata,
    read_fields,
)

MINIMAL = "Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"


def faults(text: str | bytes) -> tuple[str, ...]:
    return parse_core_metadata(text).faults


def test_the_fields_that_matter() -> None:
    metadata = parse_core_metadata(
        b"Metadata-Version: 2.4\n"
        b"Name: Demo_Project\n"
        b"Version: 1.0.0\n"
        b"Requires-Python: >=3.11\n"
        b"License-Expression: Apache-2.0\n"
        b"Provides-Extra: docs\n"
        b"Requires-Dist: numpy>=2\n"
        b'Requires-Dist: sphinx (>=7) ; extra == "docs"\n'
        b"\n"
        b"Name: this is the description\n"
    )
    assert (metadata.metadata_version, metadata.name, metadata.version) == ("2.4", "Demo_Project", "1.0.0")
    assert (metadata.requires_python, metadata.license, metadata.provides_extra) == (">=3.11", "Apache-2.0", ("docs",))
    assert [str(r) for r in metadata.requirements] == ["numpy>=2", 'sphinx>=7; extra == "docs"']
    assert (metadata.bad_requirements, metadata.faults) == ((), ())


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_newline_will_do(newline: str) -> None:
    metadata = parse_core_metadata((MINIMAL + "\nName: not a field\n").replace("\n", newline).encode())
    assert (metadata.name, metadata.version, metadata.faults) == ("demo", "1.0", ())


def test_nothing_at_all_lacks_every_required_field() -> None:
    known = ", ".join(METADATA_VERSIONS)
    assert faults(b"") == (
        f"Metadata-Version is missing; expected one of {known}",
        "Name is missing",
        "Version is missing",
    )


@pytest.mark.parametrize("version", METADATA_VERSIONS)
def test_every_legal_version_passes(version: str) -> None:
    assert faults(MINIMAL.replace("2.4", version)) == ()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("2.4", "2.0"), "Metadata-Version is '2.0'; expected one of 1.0, 1.1,"),
        (("2.4", "9.9"), "Metadata-Version is '9.9'; expected one of 1.0, 1.1,"),
        (("demo", "-demo-"), "Name: '-demo-' is invalid"),
        (("demo", "demo\nName: other"), "Name is given 2 times"),
        (("1.0", "one"), "Version: 'one' is invalid"),
        (("1.0", "9" * 4400), "Version has 4400 characters; expected at most 4096"),
        (("1.0\n", "1.0\nRequires-Python: three\n"), "Requires-Python: 'three' is invalid"),
        (("1.0\n", "1.0\nLicense-Expression: Do what you want\n"), "License-Expression: 'Do what you want' is invalid"),
        (("1.0\n", "1.0\nSummary: one\n two\n"), "Summary: 'summary' must be a single line"),
        (("1.0\n", "1.0\nProvides-Extra: _bad_\n"), "Provides-Extra: '_bad_' is invalid"),
        (("1.0\n", "1.0\n<html>\nRequires-Dist: numpy\n"), "line 4 is '<html>'; expected a field"),
        (
            ("1.0\n", "1.0\nDescription-Content-Type: text/plain; " + "(" * 4000),
            "METADATA is malformed (RecursionError",
        ),
    ],
)
def test_a_fault_is_a_sentence(change: tuple[str, str], fault: str) -> None:
    assert faults(MINIMAL.replace(*change))[0].startswith(fault)


def test_all_faults_are_told_at_once_and_the_rest_is_read() -> None:
    metadata = parse_core_metadata(MINIMAL.replace("demo", "-").replace("1.0", "x") + "Requires-Dist: numpy\n")
    assert len(metadata.faults) == 2
    assert [r.name for r in metadata.requirements] == ["numpy"]


def test_a_field_that_needs_a_newer_version() -> None:
    old = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
    assert faults(old + "License-Expression: MIT\n") == (
        "License-Expression introduced in metadata version 2.4, not 2.1",
    )
    # setuptools wrote this for years, and no one minds.
    assert faults(old + "License-File: LICENSE\n") == ()


def test_a_license_expression_nested_too_deeply() -> None:
    text = MINIMAL + f"License-Expression: {'(' * 60}MIT{')' * 60}\n"
    assert faults(text) == ("License-Expression is nested too deeply",)


def test_requirements_that_do_not_parse_are_kept_apart() -> None:
    nested = "a; " + "(" * 400 + "python_version > '3'" + ")" * 400
    lines = ["numpy>=2", "torch ==", nested, "sympy"]
    metadata = parse_core_metadata(MINIMAL + "".join(f"Requires-Dist: {line}\n" for line in lines))
    assert [r.name for r in metadata.requirements] == ["numpy", "sympy"]
    (torch, reason), (deep, limit) = metadata.bad_requirements
    assert (torch, deep) == ("torch ==", nested[:200])
    assert "Expected" in reason
    assert "more than 50 parentheses" in limit
    assert metadata.faults == ()


def test_bytes_that_are_not_utf8() -> None:
    metadata = parse_core_metadata(MINIMAL.encode() + b"Author: M\xfcller\n")
    assert (metadata.name, metadata.faults) == ("demo", ("METADATA is not UTF-8 (line 4)",))


def test_unknown_fields_are_nobodys_business() -> None:
    assert faults(MINIMAL + "X-Custom: 1\nX-Custom: 2\n") == ()


def test_a_description_of_any_kind_is_not_parsed() -> None:
    body = "Content-Type: multipart/mixed; boundary=a\n\n" + "--a\nContent-Type: multipart/mixed; boundary=a\n\n" * 9999
    assert parse_core_metadata(MINIMAL + body).name == "demo"


def test_what_packaging_reads_what_it_does_not_and_the_description() -> None:
    text = f"{MINIMAL}Classifier: A\nclassifier: B\nSummary: x\nSummary: y\nFoo: z\n\n\nTitle\n=====\n"
    raw, unread, description = read_fields(text.replace("\n", "\r\n").encode(), [])
    assert raw == {"metadata_version": "2.4", "name": "demo", "version": "1.0", "classifiers": ["A", "B"]}
    assert (unread, description) == ({"summary": ["x", "y"], "foo": ["z"]}, "Title\n=====")


@given(st.binary(max_size=400))
def test_no_bytes_make_it_crash(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        read_fields(data, [])


def test_absurd_sizes_are_refused() -> None:
    with pytest.raises(FormatError, match="METADATA has 6000000 bytes"):
        parse_core_metadata(b"x" * 6_000_000)
    for fields in ("".join(f"X-{i}: 1\n" for i in range(300)), "Classifier: a\n" * 30_000):
        with pytest.raises(FormatError, match="METADATA has over 20000 lines or 200 kinds of field"):
            parse_core_metadata(MINIMAL + fields)


def test_the_requirements_together_are_bounded() -> None:
    marker = " or ".join(["python_version == '3.9'"] * 100)
    line = f"Requires-Dist: demo; {marker}\n"
    fitting = MAX_REQUIREMENTS // len(line.removeprefix("Requires-Dist: ").strip())
    assert len(parse_core_metadata(MINIMAL + line * fitting).requirements) == fitting
    with pytest.raises(
        FormatError, match=r"METADATA has \d+,\d+ characters of Requires-Dist; expected at most 524,288"
    ):
        parse_core_metadata(MINIMAL + line * (fitting + 2))


@pytest.mark.parametrize(
    "lines",
    [
        "Requires-Dist: demo; {many} == '1'\n",
        "Requires-Dist: demo ({many})\n",
        "Requires-Dist: demo[{many}]\n",
        "Requires-Dist: demo @ https://example.org/{many}\n",
        "Requires-Python: >=3.{many}\n",
        "Version: 1.{many}\n",
        "Version: 1{dots}\n",
        "Name: {many}\n",
        "License-Expression: {brackets}\n",
        "Provides-Extra: {many}\n",
    ],
)
def test_fields_of_absurd_length_cost_little(lines: str) -> None:
    def make(size: int) -> str:
        return lines.format(many="1" * size, dots=".1" * size, brackets="(" * size)

    def run(text: str) -> None:
        with contextlib.suppress(FormatError):
            parse_core_metadata(MINIMAL + text)

    assert_at_most_doubles(make, run, 20_000)
