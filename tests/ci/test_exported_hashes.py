"""The hashes of a library's exports in a wheel: equal to its symbol table, however the member is read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ci import exported_hashes as module
from ci.exported_hashes import exported_hashes, read_exported_hashes
from tests.support.installation import compile_library
from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.formats.elf.gnu_hash import gnu_hash
from wheel_checks.model import Unavailable
from wheel_checks.sources.local import LocalFile

SOURCE = "".join(f"int function_{number}(void) {{ return {number}; }}\n" for number in range(500))
SOURCE += "extern int elsewhere(void); int use(void) { return elsewhere(); }\n"
FILLING = bytes(random.Random(1).choices(range(40), k=2_000_000))


def read(folder: Path, data: bytes, *, stream: int = 0) -> frozenset[int] | Unavailable:
    path = folder / "example.whl"
    path.write_bytes(write_zip([ZipEntry("demo/libdemo.so", data)]))
    end, members, _ = read_zip(path.read_bytes())
    return read_exported_hashes(LocalFile(path), Archive(end, members, ()), members[0], stream=stream)


def hashes_of(*names: str) -> set[int]:
    return {gnu_hash(name) & ~1 for name in names}


def test_all_that_a_library_defines_and_nothing_that_it_takes(tmp_path: Path) -> None:
    found = read(tmp_path, compile_library(tmp_path / "libdemo.so", SOURCE).read_bytes())
    assert isinstance(found, frozenset)
    assert hashes_of("function_0", "function_499", "use") <= found
    assert not hashes_of("elsewhere", "function_500") & found


@pytest.fixture
def large_library(tmp_path: Path) -> bytes:
    """A library whose code takes 2 MB, more than is read whole."""
    (tmp_path / "filling").write_bytes(FILLING)
    inserted = f'__asm__(".incbin \\"{tmp_path / "filling"}\\"");\n'
    return compile_library(tmp_path / "liblarge.so", SOURCE + inserted).read_bytes()


def test_a_large_library_is_read_by_its_ends(tmp_path: Path, large_library: bytes) -> None:
    found = read(tmp_path, large_library)
    assert isinstance(found, frozenset)
    assert hashes_of("function_0", "function_499", "use") <= found


def test_what_its_ends_do_not_hold_is_streamed_where_that_is_allowed(
    tmp_path: Path, large_library: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_ends = read(tmp_path, large_library)
    monkeypatch.setattr(module, "_MOST", 0)
    unknown = read(tmp_path, large_library)
    assert isinstance(unknown, Unavailable)
    assert unknown.reason == "head and tail of demo/libdemo.so do not hold its exports"
    assert read(tmp_path, large_library, stream=len(large_library)) == by_ends


def test_a_file_that_is_no_library_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, b"\x7fELF" + bytes(300))
    assert isinstance(found, Unavailable)
    assert "the exports of demo/libdemo.so cannot be read" in found.reason


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        (b"", "has 0 bytes"),
        (bytes(16), "0 buckets"),
        (b"\2\0\0\0" + b"\1\0\0\0" + bytes(16) + bytes(8), "belong to no bucket|leads to no hash"),
        (b"\xff\xff\xff\xff" + bytes(12), "4,294,967,295 buckets"),
    ],
)
def test_a_table_that_is_not_what_its_head_says_is_refused(section: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        exported_hashes(section, 64)
