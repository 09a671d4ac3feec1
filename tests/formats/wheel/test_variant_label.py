"""The variant label in the file name of a wheel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from variantlib.constants import VALIDATION_WHEEL_NAME_REGEX

from wheel_checks.errors import FormatError
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name


@pytest.mark.parametrize(
    ("file_name", "build", "label"),
    [
        ("numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64.whl", "", ""),
        ("numpy-2.3.2-cp313-cp313t-musllinux_1_2_x86_64-x86_64_v3.whl", "", "x86_64_v3"),
        ("numpy-2.3.2-1-cp313-cp313t-musllinux_1_2_x86_64.whl", "1", ""),
        ("numpy-2.3.2-1-cp313-cp313t-musllinux_1_2_x86_64-x86_64_v3.whl", "1", "x86_64_v3"),
        ("numpy-2.3.2-py2.py3-none-any-null.whl", "", "null"),
        ("torch-2.11.0+cu130-cp312-cp312-manylinux_2_28_aarch64-cu13.0.whl", "", "cu13.0"),
        ("demo-1.0-py3-none-any-CU13.whl", "", "CU13"),
    ],
)
def test_the_last_part_is_the_label(file_name: str, build: str, label: str) -> None:
    name = parse_wheel_name(file_name)

    assert (name.build, name.variant) == (build, label)
    assert name.file_name == file_name


@pytest.mark.parametrize(
    "file_name",
    [
        "demo-1.0-py3-none-any-.whl",  # an empty label
        "demo-1.0-rc1-py3-none-any.whl",  # a build tag that starts with no digit
        "demo-1.0-1-py3-none-any-cu13-more.whl",  # a label with a dash
        "my-demo-1.0-1-py3-none-any.whl",  # a name with a dash
    ],
)
def test_other_sixes_and_sevens_are_malformed_as_before(file_name: str) -> None:
    with pytest.raises(FormatError):
        parse_wheel_name(file_name)


@given(
    st.from_regex(r"[a-z][a-z0-9]{0,4}(_[a-z0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["", "1", "2post"]),
    st.sampled_from(["py3-none-any", "cp312-abi3-manylinux_2_28_x86_64", "pp310-pypy310_pp73-manylinux_2_28_aarch64"]),
    st.one_of(st.just(""), st.from_regex(r"[0-9a-z._]{1,20}", fullmatch=True)),
)
def test_names_are_split_as_the_reference_library_splits_them(name: str, build: str, tags: str, label: str) -> None:
    file_name = "-".join(filter(None, (name, "1.0", build, tags, label))) + ".whl"
    theirs = VALIDATION_WHEEL_NAME_REGEX.fullmatch(file_name)
    assert theirs is not None

    ours = parse_wheel_name(file_name)

    assert (ours.build, ours.variant) == (theirs["build"] or "", theirs["variant_label"] or "")
