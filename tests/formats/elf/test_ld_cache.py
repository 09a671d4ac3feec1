"""ld.so.cache: the entries of ldconfig, broken files, and that no bytes do harm."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.environments import ld_cache
from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.ld_cache import CacheEntry, libraries_of, parse_ld_cache

X86_64, AARCH64, I686 = 0x0303, 0x0A03, 0x0003
CACHE = Path("/etc/ld.so.cache")


def test_each_entry_has_its_machine() -> None:
    cache = ld_cache(("liba.so.1", "/lib64/liba.so.1", X86_64), ("liba.so.1", "/lib/liba.so.1", I686))

    assert parse_ld_cache(cache) == (
        CacheEntry("liba.so.1", "/lib64/liba.so.1", "x86_64", False),
        CacheEntry("liba.so.1", "/lib/liba.so.1", "i686", False),
    )


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_new_format_is_found_behind_the_old_one(count: int) -> None:
    (entry,) = parse_ld_cache(ld_cache(("libb.so", "/lib/libb.so", AARCH64), old=count))

    assert (entry.soname, entry.machine) == ("libb.so", "aarch64")


def test_libraries_are_those_of_one_machine_and_variants_for_processors_come_last() -> None:
    variant = parse_ld_cache(ld_cache(("liba.so", "/lib64/glibc-hwcaps/x86-64-v3/liba.so", X86_64), hwcap=1 << 62))
    plain = parse_ld_cache(ld_cache(("liba.so", "/lib64/liba.so", X86_64), ("liba.so", "/lib/liba.so", I686)))

    assert libraries_of(variant + plain, "x86_64") == {
        "liba.so": ("/lib64/liba.so", "/lib64/glibc-hwcaps/x86-64-v3/liba.so")
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "starts with b''"),
        (b"ld.so-1.7.0\0" + b"\xff" * 40, "starts with"),
        (b"glibc-ld.so.cache1.1", "ends after 20 bytes"),
        (ld_cache(("a", "b", X86_64))[:70], "nlibs of ld.so.cache is 1"),
        (ld_cache(("a", "b", X86_64))[:-1], "value of an entry of ld.so.cache points to byte 74"),
        (ld_cache(*[("a", "/" + "b" * 4096, X86_64)]), "shorter than 4096 bytes"),
        (bytes(16 * 1024 * 1024 + 1), "at most 16777216"),
    ],
)
def test_a_broken_cache_is_an_error_that_names_the_field(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_ld_cache(data)
    assert message in str(error.value)


def test_entries_that_share_one_long_string_cannot_fill_the_memory() -> None:
    one = ld_cache(("a" * 4000, "b", X86_64))
    header, entry, strings = bytearray(one[:48]), one[48:72], one[72:]
    header[20:24] = (2000).to_bytes(4, "little")
    entry = entry[:4] + (48 + 24 * 2000).to_bytes(4, "little") * 2 + entry[12:]

    with pytest.raises(FormatError, match="share their strings too often"):
        parse_ld_cache(bytes(header) + entry * 2000 + strings)


@given(st.binary(max_size=400), st.integers(0, 47), st.booleans())
def test_no_bytes_whatever_crash_the_reader(data: bytes, cut: int, valid_start: bool) -> None:
    start = ld_cache(("liba.so", "/lib/liba.so", X86_64))[: 20 + cut] if valid_start else b""
    try:
        entries = parse_ld_cache(start + data)
    except FormatError:
        return
    assert sum(len(e.soname) + len(e.path) for e in entries) <= 4 * len(start + data)


@pytest.mark.skipif(not CACHE.is_file() or not shutil.which("ldconfig", path="/sbin:/usr/sbin"), reason="no ldconfig")
def test_this_machines_cache_is_read_as_ldconfig_reads_it() -> None:
    ldconfig = str(shutil.which("ldconfig", path="/sbin:/usr/sbin"))
    printed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    listed = [(line.split()[0], line.partition(" => ")[2]) for line in printed.splitlines() if " => " in line]

    assert [(entry.soname, entry.path) for entry in parse_ld_cache(CACHE.read_bytes())] == listed
