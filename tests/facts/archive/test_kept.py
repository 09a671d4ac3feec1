"""Cached facts: read once, by one version of the readers, and never wrong with any content of the cache."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.archive import kept as kept_module
from wheel_checks.facts.archive.columns import Columns, SizedArchive
from wheel_checks.facts.archive.facts import Archive, ArchiveFault
from wheel_checks.facts.archive.kept import AsJson, FileFacts, kept_facts, readers_version
from wheel_checks.formats.zip.directory import EndRecord, Member
from wheel_checks.sources.http.cache import ByteCache
from wheel_checks.sources.local import LocalFile


@dataclass(frozen=True, slots=True)
class Fact:
    text: str


FACT = AsJson(Fact)


class Reader:
    """Reads a fact, and counts how often."""

    def __init__(self, text: str = "read") -> None:
        self.text, self.times = text, 0

    def __call__(self) -> Fact:
        self.times += 1
        return Fact(self.text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "facts.sqlite3"


@pytest.fixture
def cache(path: Path) -> Iterator[ByteCache]:
    made = ByteCache(path)
    yield made
    made.close()


def never() -> Fact:
    raise AssertionError("it was read again")


def test_a_fact_is_read_once(path: Path) -> None:
    reader = Reader()
    for _ in range(3):
        cache = ByteCache(path)
        assert FileFacts(cache, "file").remember("part", FACT, reader) == Fact("read")
        cache.close()
    assert reader.times == 1


def test_files_and_parts_are_kept_apart(cache: ByteCache) -> None:
    FileFacts(cache, "file").remember("part", FACT, Reader("one"))

    assert FileFacts(cache, "file").remember("another", FACT, Reader("two")) == Fact("two")
    assert FileFacts(cache, "other").remember("part", FACT, Reader("three")) == Fact("three")
    assert FileFacts(cache, "file").remember("part", FACT, never) == Fact("one")


def test_an_error_is_not_kept(cache: ByteCache) -> None:
    def fail() -> Fact:
        raise SourceError("no network")

    kept = FileFacts(cache, "file")
    with pytest.raises(SourceError, match="no network"):
        kept.remember("part", FACT, fail)
    assert kept.remember("part", FACT, Reader()) == Fact("read")


def test_what_is_not_sound_is_not_kept(cache: ByteCache) -> None:
    reader = Reader()
    for _ in range(2):
        FileFacts(cache, "file").remember("part", FACT, reader, is_sound=lambda _: False)
    assert reader.times == 2


def test_without_a_cache_or_a_name_nothing_is_kept(cache: ByteCache) -> None:
    reader = Reader()
    for kept in (FileFacts(), FileFacts(None, "file"), FileFacts(cache, "")):
        kept.remember("part", FACT, reader)
        kept.remember("part", FACT, reader)
    assert reader.times == 6


def pack(data: bytes) -> bytes:
    return zlib.compress(data)


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"no zlib stream",
        pack(b'{"text":"read"}')[:-3],
        pack(b"no JSON"),
        pack(b'{"text":1}'),
        pack(b'{"text":"read","more":1}'),
        pack(b'{"text":"' + b"x" * 5_000 + b'"}'),
    ],
    ids=["empty", "not packed", "cut", "no JSON", "another type", "another field", "too large"],
)
def test_what_does_not_decode_is_read_again(cache: ByteCache, stored: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "LARGEST", 1_000)
    cache.store_fact("file", "part", stored)
    reader = Reader("again")

    assert FileFacts(cache, "file").remember("part", FACT, reader) == Fact("again")
    assert FileFacts(cache, "file").remember("part", FACT, never) == Fact("again")
    assert reader.times == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE fact SET data = CAST(replace(data, x'61', x'62') AS BLOB)",
        "UPDATE fact SET data = 'text'",
        "UPDATE fact SET checksum = x'00'",
        "UPDATE fact SET part = 'b' WHERE part = 'a'",
        "UPDATE fact SET file = 'other'",
    ],
    ids=["a byte", "a type", "the checksum", "another part", "another file"],
)
def test_damage_and_swapped_rows_are_a_miss(path: Path, damage: str) -> None:
    cache = ByteCache(path)
    cache.store_fact("file", "a", b"aaaa")
    cache.close()
    connection = sqlite3.connect(path)
    connection.execute(damage)
    connection.commit()
    connection.close()

    cache = ByteCache(path)
    found = [cache.fact(file, part) for file in ("file", "other") for part in ("a", "b")]
    cache.close()
    assert found == [None] * 4


def test_another_version_of_the_readers_reads_again(
    cache: ByteCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "demo.whl").write_bytes(b"bytes")

    def remembered(text: str) -> Fact:
        return kept_facts(LocalFile(tmp_path / "demo.whl"), cache).remember("part", FACT, Reader(text))

    assert [remembered("first"), remembered("second")] == [Fact("first")] * 2
    monkeypatch.setattr(kept_module, "readers_version", lambda: "another")
    assert remembered("third") == Fact("third")
    monkeypatch.setattr(kept_module, "readers_version", lambda: "")
    assert [remembered("fourth"), remembered("fifth")] == [Fact("fourth"), Fact("fifth")]


def test_another_content_under_the_same_name_is_read_again(cache: ByteCache, tmp_path: Path) -> None:
    file = tmp_path / "demo.whl"
    for content in (b"one", b"two", b"one"):
        file.write_bytes(content)
        kept = kept_facts(LocalFile(file), cache)
        assert kept.remember("part", FACT, Reader(content.decode())) == Fact(content.decode())


def test_the_version_follows_every_module_that_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "wheel_checks"
    (root / "facts" / "elf").mkdir(parents=True)
    (root / "facts" / "archive").mkdir()
    module = root / "facts" / "elf" / "reading.py"
    module.write_text("one = 1\n")
    monkeypatch.setattr(kept_module, "__file__", str(root / "facts" / "archive" / "kept.py"))
    monkeypatch.setattr(kept_module, "READERS", ("facts/elf", "missing.py"))
    first = readers_version.__wrapped__()

    assert first == readers_version.__wrapped__()
    module.write_text("one = 2\n")
    assert first != readers_version.__wrapped__()
    module.rename(module.with_name("other.py"))
    (root / "facts" / "elf" / "other.py").write_text("one = 1\n")
    assert first != readers_version.__wrapped__()


def test_what_reads_facts_is_among_the_readers() -> None:
    root = Path(kept_module.__file__).parents[2]
    for name in kept_module.READERS:
        assert (root / name).exists(), name
    assert len(readers_version()) == 32


names = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers(0, (1 << 64) - 1)
members = st.builds(
    Member, names, st.binary(max_size=20), numbers, numbers, numbers, numbers, numbers, numbers, numbers, numbers
)
plain = st.builds(lambda member: member._replace(raw_name=member.name.encode()), members)
archives = st.builds(
    Archive,
    st.just(EndRecord(1, 2, 3, False, 0)),
    st.lists(members | plain, max_size=5).map(tuple),
    st.lists(st.builds(ArchiveFault, names, names, names), max_size=2).map(tuple),
    numbers,
)


@given(st.builds(SizedArchive, numbers, archives))
def test_an_archive_in_columns_is_the_same_archive(value: SizedArchive) -> None:
    assert Columns().decode(Columns().encode(value)) == value


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b"\0" * 8,
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data.replace(b'"other_names":[[0', b'"other_names":[[9'),
    ],
    ids=["empty", "cut", "longer", "a long head", "a member that is not present"],
)
def test_columns_that_do_not_fit_are_refused(spoil: Callable[[bytes], bytes]) -> None:
    member = Member("demo", b"\xff", 0, 0, 0, 0, 0, 0, 0, 0)
    data = Columns().encode(SizedArchive(9, Archive(EndRecord(1, 2, 3, False, 0), (member,), ())))
    with pytest.raises(FormatError):
        Columns().decode(spoil(data))
