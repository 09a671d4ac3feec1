"""File names of wheels."""

from __future__ import annotations

import pytest
from packaging.tags import Tag
from packaging.version import Version

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.wheel_name import expand_tag, parse_wheel_name


def test_every_part_is_kept_as_written() -> None:
    name = parse_wheel_name("torch-2.10.0-3-cp312-cp312-manylinux_2_28_x86_64.whl")
    assert (name.distribution, name.version, name.build) == ("torch", "2.10.0", "3")
    assert name.tags == {Tag("cp312", "cp312", "manylinux_2_28_x86_64")}
    assert name.parsed_version == Version("2.10.0")


def test_names_and_versions_that_are_not_normalized_pass() -> None:
    name = parse_wheel_name("Foo.Bar-1.0.RC1-py3-none-any.whl")
    assert (name.distribution, name.version, name.parsed_version) == ("Foo.Bar", "1.0.RC1", Version("1.0rc1"))


def test_compressed_tags_are_expanded() -> None:
    name = parse_wheel_name("six-1.16.0-py2.py3-none-any.whl")
    assert name.tags == {Tag("py2", "none", "any"), Tag("py3", "none", "any")}


def test_a_build_number_ranks_above_none_and_by_number() -> None:
    builds = ["", "-3", "-10", "-10post1"]
    keys = [parse_wheel_name(f"torch-2.10.0{build}-py3-none-any.whl").build_number for build in builds]
    assert keys == [(), (3, ""), (10, ""), (10, "post1")] == sorted(keys)


@pytest.mark.parametrize(
    ("file_name", "sentence"),
    [
        ("torch-2.10.0.tar.gz", "is not a wheel's file name"),
        ("torch.whl", "has 1 parts between dashes"),
        ("my-torch-2-1-py3-none-any.whl", "has 7 parts between dashes"),
        ("torch-2.10.0-rc1-py3-none-any.whl", "the build tag 'rc1'; expected a build tag that starts with a digit"),
        ("torch-2.10.0--py3-none-any.whl", "the build tag ''"),
        ("torch-two-py3-none-any.whl", "has the version 'two'"),
        ("my__torch-2-py3-none-any.whl", "has the name 'my__torch'"),
        ("torch-2-py3-none-any..x.whl", "'py3-none-any..x' is not a wheel tag"),
        ("torch-2-3-none-any.whl", "'3-none-any' is not a wheel tag"),
        ("torch-2-py3--any.whl", "'py3--any' is not a wheel tag"),
        (f"torch-{'9' * 1000}-py3-none-any.whl", "characters; expected at most 1000"),
    ],
)
def test_a_wrong_part_is_named(file_name: str, sentence: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_wheel_name(file_name)
    assert sentence in str(error.value)


def test_a_tag_that_stands_for_millions_is_refused() -> None:
    many = ".".join("p" * 300)
    with pytest.raises(FormatError, match="too many tags"):
        expand_tag(f"{many}-{many}-{many}")
