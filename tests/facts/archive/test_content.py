"""Depth full: the faults that only reading every byte finds, in bounded memory."""

from __future__ import annotations

import hashlib
import tracemalloc
import zlib
from collections.abc import Iterator

from tests.support.wheel_facts import MemorySource, archive_of, facts_of, findings, judged, listed
from tests.support.wheels import WheelBuilder, torch_like
from tests.support.zips import ZipEntry, write_zip
from wheel_checks.facts.archive.content import verify_content
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.formats.zip.directory import EndRecord, Member
from wheel_checks.model import Unavailable


class TestDepthFull:
    def test_a_sound_wheel(self) -> None:
        wheel = torch_like("cuda", "2.11.0")
        data = wheel.build()

        facts = facts_of(data, wheel.file_name, depth=Depth.FULL)

        assert facts.hash_faults == ()
        assert facts.content_sha256 == hashlib.sha256(data).hexdigest()
        assert archive_of(facts).local_headers_read == len(archive_of(facts).members)
        assert archive_of(facts).faults == ()

    def test_a_flipped_byte(self) -> None:
        data = (
            WheelBuilder().add("demo/data.bin", b"0123456789", method=0).build().replace(b"0123456789", b"0123456780")
        )

        assert facts_of(data, depth=Depth.QUICK).accelerator == facts_of(data, depth=Depth.FULL).accelerator
        (finding,) = findings("WHL124", facts_of(data, depth=Depth.FULL))
        assert finding.message == (
            f"'demo/data.bin' has CRC-32 {zlib.crc32(b'0123456780'):08x}; expected {zlib.crc32(b'0123456789'):08x}"
        )
        assert finding.location
        assert finding.location.member == "demo/data.bin"

    def test_a_file_that_is_not_the_one_that_the_index_lists(self) -> None:
        on_index = listed(hashes={"sha256": hashlib.sha256(b"another").hexdigest()})

        assert findings("WHL008", facts_of(WheelBuilder(), listing=on_index, depth=Depth.FULL))
        assert [r.message for r in judged("WHL008", facts_of(WheelBuilder(), listing=on_index))] == [
            "not all of the file was read (--depth full reads every byte)"
        ]

    def test_a_local_header_that_quick_does_not_read(self) -> None:
        wheel = WheelBuilder().add("demo/a.py", b"x = 1\n", local={"name": b"demo/b.py"})

        assert findings("WHL004", facts_of(wheel, remote=True)) == []
        for facts in (facts_of(wheel), facts_of(wheel, remote=True, depth=Depth.FULL)):
            assert [result.message for result in findings("WHL004", facts)] == [
                "the local header of demo/a.py contradicts the central directory: name 'demo/b.py', but the "
                "directory says 'demo/a.py'"
            ]

    def test_a_header_that_both_depths_read_is_told_once(self) -> None:
        wheel = WheelBuilder().add("demo/version.py", b"x = 1\n", local={"name": b"demo/evasion.py"})

        assert len(findings("WHL004", facts_of(wheel, depth=Depth.FULL))) == 1

    def test_a_member_hidden_behind_an_extra_field_that_no_directory_knows(self) -> None:
        entry = ZipEntry("demo/b.py", b"x = 1\n", method=0)
        hidden = write_zip([entry])[:45]
        swallowing = ZipEntry(
            "demo/a.py", b"", method=0, extra=b"\x99\x99" + len(hidden).to_bytes(2, "little") + hidden
        )
        data = write_zip([swallowing, ZipEntry("demo/b.py", b"x = 1\n", method=0, directory={"header_offset": 43})])

        (finding,) = findings("WHL124", facts_of(data, depth=Depth.FULL))

        assert finding.message == "'demo/b.py' starts within an earlier member: its content cannot be compared"

    def test_an_unreadable_member_does_not_hide_the_next(self) -> None:
        wheel = (
            WheelBuilder().add("demo/a.bin", b"x", method=93).add("demo/b.bin", b"right", payload=b"wrong", method=0)
        )

        messages = [result.message for result in findings("WHL124", facts_of(wheel, depth=Depth.FULL))]

        assert [message.partition(" ")[0] for message in messages] == ["'demo/a.bin'", "'demo/b.bin'"]


class Zeros(MemorySource):
    """A wheel of one stored member of zeros, made while it is read."""

    def __init__(self, header: bytes, size: int) -> None:
        super().__init__(header)
        self.size = size

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        yield self.data
        for _ in range(0, self.size, 1 << 20):
            yield bytes(1 << 20)


def test_memory_does_not_grow_with_the_member() -> None:
    size = 304 << 20
    crc32 = 0
    for _ in range(0, size, 1 << 20):
        crc32 = zlib.crc32(bytes(1 << 20), crc32)
    said = {"crc32": crc32, "compressed_size": size, "size": size}
    header = write_zip([ZipEntry("demo/zeros", method=0, local=said)])[:40]
    end = EndRecord(len(header) + size, 0, 1, zip64=False, comment_size=0)
    member = Member("demo/zeros", b"demo/zeros", 0, 0, crc32, size, size, 0, 0, 3)

    tracemalloc.start()
    content = verify_content(Zeros(header, size), len(header) + size, Archive(end, (member,), ()), Unavailable("none"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (content.hash_faults, content.faults, content.headers_read) == ((), (), 1)
    assert peak < 8 << 20
