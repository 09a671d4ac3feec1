"""Local files as sources of bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wheel_checks.errors import ChangedFileError, NotFoundError, SourceError
from wheel_checks.sources.local import LocalFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "demo.whl"
    file.write_bytes(bytes(range(256)) * 16)
    return file


def test_reads_the_tail_ranges_and_streams(path: Path) -> None:
    data = path.read_bytes()
    file = LocalFile(path)
    assert file.read_tail(100) == (4096, data[-100:])
    assert file.read_tail(10_000) == (4096, data)
    assert file.read(1000, 24) == data[1000:1024]
    assert file.read(4096, 0) == b""
    assert file.read_many([(7, 3), (0, 2)]) == [data[7:10], data[:2]]
    assert b"".join(file.stream(5, 4000)) == data[5:4005]
    assert file.location == str(path)
    assert not file.remote
    assert file.cost.bytes_read == 100 + 4096 + 24 + 5 + 4000
    assert file.cost.requests == 0
    file.close()
    file.close()


def test_a_stream_comes_in_chunks_of_at_most_one_mebibyte(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * (5 << 19))
    file = LocalFile(large)
    assert [len(chunk) for chunk in file.stream(0, 5 << 19)] == [1 << 20, 1 << 20, 1 << 19]
    file.close()


@pytest.mark.parametrize(("offset", "length"), [(4000, 97), (4097, 0), (-1, 5), (5, -1)])
def test_a_range_outside_the_file_is_refused(path: Path, offset: int, length: int) -> None:
    file = LocalFile(path)
    with pytest.raises(SourceError, match="has 4096 bytes"):
        file.read(offset, length)
    with pytest.raises(SourceError, match="has 4096 bytes"):
        list(file.stream(offset, length))
    file.close()


def test_a_file_that_shrinks_while_it_is_read_is_noticed(path: Path) -> None:
    file = LocalFile(path)
    os.truncate(path, 1000)
    with pytest.raises(ChangedFileError, match="changed while it was read"):
        file.read(900, 200)
    file.close()


def test_a_file_that_is_rewritten_while_it_is_read_is_noticed(path: Path) -> None:
    file = LocalFile(path)
    path.write_bytes(b"y" * 4096)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ChangedFileError, match="changed while it was read"):
        file.read(0, 10)
    file.close()


def test_what_is_no_regular_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotFoundError, match=r"there is no file .*absent\.whl"):
        LocalFile(tmp_path / "absent.whl")
    with pytest.raises(SourceError, match=r"is a folder; expected a regular file"):
        LocalFile(tmp_path)
    with pytest.raises(SourceError, match=r"is a pipe, not a regular file"):
        LocalFile(tmp_path / "pipe")
    with pytest.raises(SourceError, match=r"is a device"):
        LocalFile("/dev/null")
    with pytest.raises(SourceError, match=r"null character"):
        LocalFile("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(path: Path) -> None:
    path.chmod(0)
    with pytest.raises(SourceError, match="Permission denied"):
        LocalFile(path)
