"""The unpacked data of one archive is bounded by its size, whatever its directory claims."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.growth import assert_at_most_doubles
from tests.support.wheel_facts import MemorySource, archive_of, facts_of, findings
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.archive.content import verify_content
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.elf.native_members import read_native_members
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.formats.zip import directory
from wheel_checks.formats.zip.directory import Member, apart
from wheel_checks.model import Unavailable

MIB = 1 << 20
ELF = b"\x7fELF\x02\x01\x01" + bytes(57)


def member(name: str, offset: int, packed: int, size: int) -> Member:
    return Member(name, name.encode(), 8, 0, 0, packed, size, offset, 0, 3)


def bombs(count: int, size: int) -> WheelBuilder:
    """A wheel with members of zeros, which inflate a thousandfold."""
    wheel = WheelBuilder()
    for number in range(count):
        wheel.add(f"demo/lib{number}.so", bytes(size))
    return wheel


class Counting(MemorySource):
    """A source that counts the bytes that are read from it."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.count = 0

    def read_many(self, ranges: object) -> list[bytes]:
        pieces = super().read_many(ranges)  # type: ignore[arg-type]  # passed through
        self.count += sum(map(len, pieces))
        return pieces

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        for piece in super().stream(offset, length):
            self.count += len(piece)
            yield piece


def test_members_apart_share_no_byte_with_one_before() -> None:
    first, inside, after = member("a", 0, 100, 100), member("b", 50, 10, 10), member("c", 131, 5, 5)
    assert apart([after, first, inside]) == [after, first]
    assert apart([inside, after]) == [inside, after]
    assert apart([first, first]) == [first]


def test_bombs_are_not_unpacked_and_the_others_are() -> None:
    plain, zeros = member("a", 0, 1000, 3000), [member("z", 10**6 * n, 70_000, 64 * MIB) for n in range(1, 6)]
    assert unpackable([plain, *zeros]) == [plain]
    assert unpackable([plain, *zeros[:4]]) == [plain, *zeros[:4]]
    assert unpackable([plain, member("z", 5000, 1000, 65 * MIB)]) == [plain]


@pytest.mark.parametrize("depth", [Depth.LINKS, Depth.GPU, Depth.FULL])
def test_a_wheel_of_bombs_fails_without_being_unpacked(depth: Depth, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheel_checks.facts.archive.inflation.TOGETHER_SIZE", 3 * MIB)
    wheel = bombs(4, MIB)
    facts = facts_of(wheel, depth=depth)
    assert [result.message.partition(" inflate")[0] for result in findings("WHL007", facts)] == ["4 members"]
    assert not isinstance(facts.elfs, Unavailable)
    assert {elf.facts for elf in facts.elfs} == {
        Unavailable("its compression ratio is extreme, or it shares bytes with another member")
    }
    if depth is Depth.FULL:
        assert len(findings("WHL124", facts)) == 4
        assert "its content was not compared" in findings("WHL124", facts)[0].message


def test_unpacking_costs_no_more_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheel_checks.facts.archive.inflation.TOGETHER_SIZE", MIB)
    inflated = 0

    def count(*arguments: object) -> Iterator[bytes]:
        nonlocal inflated
        from wheel_checks.formats.zip.member_data import inflate_stream

        for piece in inflate_stream(*arguments):  # type: ignore[arg-type]  # passed through
            inflated += len(piece)
            yield piece

    monkeypatch.setattr("wheel_checks.facts.archive.content.inflate_stream", count)
    data = bombs(40, MIB).build()
    facts = facts_of(data)
    verify_content(MemorySource(data), len(data), archive_of(facts), facts.record)
    assert inflated < 100 * len(data)


def test_members_on_top_of_each_other_are_read_once() -> None:
    """A thousand libraries at one place would be a thousand times the work."""
    wheel = WheelBuilder().add("demo/lib.so", ELF + bytes(range(256)) * 2000, method=0)
    for number in range(1000):
        wheel.add(
            f"demo/lib{number}.so", b"x", directory={"header_offset": 0, "compressed_size": 500_000, "crc32": number}
        )
    source = Counting(data := wheel.build())
    read_native_members(source, archive_of(facts_of(data)), whole=True)
    assert source.count < 8 * len(data)


def test_faults_without_end_are_counted() -> None:
    wheel = WheelBuilder()
    for number in range(300):
        wheel.add(f"demo/{number}.bin", b"four", method=0, directory={"size": 5, "header_offset": 0})
    facts = facts_of(wheel, depth=Depth.FULL)
    for rule in ("WHL002", "WHL003", "WHL124"):
        found = findings(rule, facts)
        assert len(found) == directory.MOST_FAULTS + 1, rule
        assert found[-1].message.startswith("and "), rule


def test_a_directory_is_read_in_linear_time() -> None:
    def make(count: int) -> bytes:
        wheel = WheelBuilder()
        for number in range(count):
            wheel.add(f"demo/{number}.py", b"")
        return wheel.build()

    assert_at_most_doubles(make, facts_of, 300)
