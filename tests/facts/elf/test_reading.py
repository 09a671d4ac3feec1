"""ELF files inside an archive: whichever way they are read, the facts are those of the whole file."""

from __future__ import annotations

import random
import re
import struct
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.elf import Elf
from tests.support.online import configured_index
from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.member import MAX_INFLATED, PartialMember
from wheel_checks.facts.elf.member_elf import MemberElf, ReadMode
from wheel_checks.facts.elf.reading import THOROUGH, Effort, read_member_elfs
from wheel_checks.formats.elf.bytes import BytesNeeded, WholeFile
from wheel_checks.formats.elf.file import LOADER_PARTS, ElfFacts, Missing, Part, read_elf
from wheel_checks.formats.elf.versions import SymbolVersions
from wheel_checks.formats.zip.directory import read_directory
from wheel_checks.formats.zip.end_record import find_end_record
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.local import LocalFile

LIBRARY = Elf(
    soname="libexample.so.1",
    needed=("libc10.so", "libcudart.so.13", "libc.so.6"),
    rpath="$ORIGIN/../../nvidia/cu13/lib:$ORIGIN",
    needs={"libc.so.6": ("GLIBC_2.17", "GLIBC_2.28")},
    moved=True,
)


def filling(size: int, seed: int = 1) -> bytes:
    """Bytes that deflate to about two thirds, in dynamic blocks."""
    return bytes(random.Random(seed).choices(range(40), k=size))


MACHINE_CODE = filling(1_200_000)
AT_THE_END = replace(LIBRARY, contents={".text": MACHINE_CODE}).build()
AT_THE_START = replace(LIBRARY, moved=False).build().data + MACHINE_CODE
IN_THE_MIDDLE = AT_THE_END.data + filling(1_200_000, 2)
SMALL = LIBRARY.build().data


def table_at_the_end(rpath: str = LIBRARY.rpath) -> bytes:
    """The dynamic section and its strings are in the middle; the section headers come last."""
    built = replace(LIBRARY, contents={".text": MACHINE_CODE}, rpath=rpath).build()
    table = built.data[built.value("e_shoff") :]
    behind = filling(1_200_000, 2)
    return built.with_fields({"e_shoff": len(built.data) + len(behind)}) + behind + table


class Opened:
    """An archive on disk with one member per given file, and a count of the rounds of requests."""

    def __init__(self, folder: Path, entries: Sequence[ZipEntry]) -> None:
        data = write_zip(entries)
        path = folder / "example.whl"
        path.write_bytes(data)
        self.source = LocalFile(path)
        end, self.members, _ = read_zip(data)
        self.archive = Archive(end, self.members, ())
        self.rounds = 0
        read_many = self.source.read_many

        def counted(ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            self.rounds += bool(ranges)
            return read_many(ranges)

        self.source.read_many = counted  # type: ignore[method-assign]  # counts, and does the real thing

    def read(self, *, effort: Effort = THOROUGH, stream: int = 0) -> list[MemberElf]:
        try:
            return read_member_elfs(self.source, self.archive, self.members, effort=effort, stream=stream)
        finally:
            self.source.close()


def read_one(folder: Path, data: bytes, method: int = 8, *, effort: Effort = THOROUGH, stream: int = 0) -> MemberElf:
    (found,) = Opened(folder, [ZipEntry("libexample.so", data, method=method)]).read(effort=effort, stream=stream)
    return found


def truth(data: bytes) -> ElfFacts:
    return read_elf(WholeFile(data), LOADER_PARTS)


@pytest.mark.parametrize(
    ("data", "method", "mode", "stream"),
    [
        (SMALL, 8, ReadMode.WHOLE, 0),
        (AT_THE_END.data, 0, ReadMode.RANGES, 0),
        (AT_THE_START, 8, ReadMode.HEAD, 0),
        (AT_THE_END.data, 8, ReadMode.TAIL, 0),
        (IN_THE_MIDDLE, 8, ReadMode.STREAMED, 10**7),
    ],
    ids=["small", "stored", "head", "tail", "streamed"],
)
def test_each_way_tells_what_the_whole_file_tells(
    tmp_path: Path, data: bytes, method: int, mode: ReadMode, stream: int
) -> None:
    found = read_one(tmp_path, data, method, stream=stream)
    assert found.mode is mode
    assert found.facts == truth(data)
    assert found.complete
    if mode in (ReadMode.RANGES, ReadMode.HEAD, ReadMode.TAIL):
        assert found.bytes_read < 150_000 < found.member.compressed_size


def test_what_would_take_too_much_is_missing_and_not_guessed(tmp_path: Path) -> None:
    found = read_one(tmp_path, IN_THE_MIDDLE)
    assert isinstance(found.facts, ElfFacts)
    assert found.facts.segments == truth(IN_THE_MIDDLE).segments
    assert isinstance(found.facts.dynamic, Missing)
    assert found.facts.missing == {Part.DYNAMIC, Part.VERSIONS}
    assert not found.complete


@pytest.mark.parametrize("rpath", [LIBRARY.rpath, "$ORIGIN"])  # the second has neither a slash nor a dot
def test_the_strings_name_whatever_may_be_needed(tmp_path: Path, rpath: str) -> None:
    data = table_at_the_end(rpath)
    found = read_one(tmp_path, data, effort=replace(THOROUGH, parts=100_000))
    assert not found.complete
    facts = truth(data)
    assert facts.dynamic is not None
    assert not isinstance(facts.dynamic, Missing)
    assert isinstance(found.possible_names, tuple)
    assert isinstance(facts.versions, SymbolVersions)
    versions = {version.name for library in facts.versions.needs for version in library.versions}
    wanted = {*facts.dynamic.needed, facts.dynamic.soname, ":".join(facts.dynamic.rpath)} | versions
    assert wanted == set(found.possible_names)


def test_many_members_take_no_more_rounds_than_one(tmp_path: Path) -> None:
    opened = Opened(tmp_path, [ZipEntry(f"{number}.so", AT_THE_END.data) for number in range(10)])
    found = opened.read()
    assert [item.mode for item in found] == [ReadMode.TAIL] * 10
    assert [item.member.name for item in found] == [f"{number}.so" for number in range(10)]
    assert opened.rounds <= 5
    assert sum(item.bytes_read for item in found) < sum(item.member.compressed_size for item in found) / 5


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (ZipEntry("a.so", b"INPUT(libreal.so)"), "e_ident starts with"),
        (ZipEntry("a.so", b""), "expected an ELF header"),
        (ZipEntry("a.so", SMALL, method=12), "is compressed by bzip2"),
        (ZipEntry("a.so", SMALL, flags=1), "is encrypted"),
        (ZipEntry("a.so", SMALL, payload=b"\xff" * 40), "not a valid deflate stream"),
        (ZipEntry("a.so", SMALL, directory={"compressed_size": 10**9}), "reaches into the central directory"),
        (ZipEntry("a.so", SMALL, directory={"header_offset": 10**9}), "a local header that is missing"),
        (ZipEntry("a.so", AT_THE_END.with_fields({"e_phnum": 60000})), "e_phnum is 60000"),
        (ZipEntry("a.so", AT_THE_END.with_fields({"DT_STRTAB": 2**60})), "DT_STRTAB"),
    ],
    ids=["a script", "empty", "bzip2", "encrypted", "no deflate", "runs over", "nowhere", "bad header", "bad tail"],
)
@pytest.mark.parametrize("stream", [0, 10**7])
def test_what_cannot_be_read_says_why(tmp_path: Path, entry: ZipEntry, sentence: str, stream: int) -> None:
    (found,) = Opened(tmp_path, [entry]).read(stream=stream)
    assert isinstance(found.facts, Unavailable)
    assert sentence in found.facts.reason


def test_strings_outside_of_the_file_are_told(tmp_path: Path) -> None:
    data = bytearray(table_at_the_end())
    (table,) = struct.unpack_from("<Q", data, 40)  # e_shoff
    for header in range(table, len(data) - 63, 64):
        if struct.unpack_from("<I", data, header + 4)[0] == 3:  # SHT_STRTAB
            struct.pack_into("<Q", data, header + 32, 2**40)  # sh_size
    found = read_one(tmp_path, bytes(data), effort=replace(THOROUGH, parts=100_000))
    assert isinstance(found.facts, Unavailable)
    assert "expected at most" in found.facts.reason


def test_a_bomb_costs_little_memory() -> None:
    data = bytes(90_000_000)
    member = read_zip(write_zip([ZipEntry("a.so", data)]))[1][0]
    packed = ZipEntry("a.so", data).compressed()
    tracemalloc.start()
    try:
        partial = PartialMember(member, 0)
        partial.extend_head(packed[:60_000])
        partial.extend_tail(packed[60_000:])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert partial.read(MAX_INFLATED - 10, 10) == bytes(10)
    with pytest.raises(BytesNeeded):
        partial.read(MAX_INFLATED, 10)
    assert peak < 6 * MAX_INFLATED < len(data)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), junk=st.binary(min_size=1, max_size=40), which=st.sampled_from((0, 1, 2)))
def test_damage_is_told_or_does_not_matter(tmp_path: Path, place: float, junk: bytes, which: int) -> None:
    """Wherever an archive is overwritten, reading ends, and no error escapes."""
    data = (SMALL, AT_THE_START, AT_THE_END.data)[which]
    whole = ZipEntry("a.so", data)
    packed = bytearray(whole.compressed())
    start = int(place * len(packed))
    packed[start : start + len(junk)] = junk[: len(packed) - start]
    (found,) = Opened(tmp_path, [replace(whole, payload=bytes(packed))]).read(stream=10**7)
    assert isinstance(found.facts, ElfFacts) or found.facts.reason


@pytest.mark.online
def test_the_libraries_of_a_real_wheel_from_afar_as_in_full() -> None:
    """Of NVIDIA's CUPTI: libraries of 0.2 to 7 MB, not patched, for some of which head and tail do not suffice."""
    pattern = r'href="([^"]*/nvidia_cuda_cupti-13\.0\.85-[^"#]*aarch64\.whl)[^"]*"'
    with HttpClient() as client:
        page = client.get_page(f"{configured_index()}/nvidia-cuda-cupti/", {"Accept": "text/html"})
        link = re.search(pattern, page.body.decode())
        assert link is not None
        source = client.open(urljoin(page.final_url, link[1]))
        size, tail = source.read_tail(65536)
        end = find_end_record(tail, size)
        members, _ = read_directory(source.read(end.directory_offset, end.directory_size), end)
        libraries = [member for member in members if ".so" in member.name]
        found = read_member_elfs(source, Archive(end, members, ()), libraries)
        cost = source.cost
        streamed = read_member_elfs(source, Archive(end, members, ()), libraries, stream=10**8)
        pieces = source.read_many([(m.header_offset, m.compressed_size + 4096) for m in libraries])
    for elf, all_of_it, piece in zip(found, streamed, pieces, strict=True):
        start = read_local_header(piece).header_size
        whole = truth(inflate(elf.member, piece[start : start + elf.member.compressed_size], 10**8))
        assert all_of_it.facts == whole
        assert whole.dynamic
        assert not isinstance(whole.dynamic, Missing)
        assert not elf.complete or elf.facts == whole
        if isinstance(elf.possible_names, tuple):
            assert {*whole.dynamic.needed, whole.dynamic.soname} <= {*elf.possible_names, None}
    assert sum(elf.complete for elf in found) >= 4
    assert cost.bytes_read < 2_500_000 < size
