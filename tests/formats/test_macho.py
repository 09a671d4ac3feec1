"""Mach-O files by their first bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.macho import mach_o, universal
from wheel_checks.errors import FormatError
from wheel_checks.formats.macho import MachSlice, read_mach_slices

BOTH = universal(mach_o("x86_64", (10, 9), old=True), mach_o("arm64", (14, 2)))


def test_machine_and_version_of_a_library() -> None:
    assert read_mach_slices(mach_o("arm64", (11, 0))) == (MachSlice("arm64", (11, 0)),)


def test_a_universal_binary_has_one_slice_for_each_machine() -> None:
    assert read_mach_slices(BOTH) == (MachSlice("x86_64", (10, 9)), MachSlice("arm64", (14, 2)))


def test_of_a_slice_that_was_not_read_the_machine_is_known() -> None:
    assert read_mach_slices(BOTH[:0x1100]) == (MachSlice("x86_64", (10, 9)), MachSlice("arm64"))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\xca\xfe\xba\xbe\0\0\0\x37", b"\xcf\xfa\xed\xfe\0"])
def test_what_is_no_mach_o_file(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_mach_slices(data)


@given(
    st.binary(max_size=300),
    st.sampled_from([b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xce", b"\xca\xfe\xba\xbe\0\0\0\2", b""]),
)
def test_no_bytes_make_it_crash(data: bytes, magic: bytes) -> None:
    with contextlib.suppress(FormatError):
        read_mach_slices(magic + data)
