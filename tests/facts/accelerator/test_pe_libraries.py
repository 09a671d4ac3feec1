"""The needs of Windows libraries in a wheel, from few bytes of them."""

from __future__ import annotations

import random
import re

import pytest

from tests.support.pe import Pe
from tests.support.wheel_facts import MemorySource
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.accelerator.pe_libraries import MemberPe, may_be_pe, read_member_pes
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.model import Unavailable


def filling(size: int, seed: int = 1) -> bytes:
    """Bytes that deflate to about two thirds, in dynamic blocks."""
    return bytes(random.Random(seed).choices(range(40), k=size))


SMALL = Pe(imports=("KERNEL32.dll",), delay_imports=("nvcuda.dll",)).build().data
AT_THE_END = Pe(imports=("KERNEL32.dll", "a.dll"), code=filling(3_000_000), behind=filling(60_000, 2)).build().data
AT_THE_START = Pe(imports=("KERNEL32.dll", "a.dll"), behind=filling(3_000_000)).build().data


def pes_of(members: dict[str, bytes], *, method: int = 8, **options: object) -> list[MemberPe]:
    """The facts of these members."""
    wheel = WheelBuilder("demo", "1.0", "py3-none-win_amd64")
    for name, data in members.items():
        wheel.add(name, data, method=method)
    source = MemorySource(wheel.build())
    archive = read_archive(source)
    return read_member_pes(source, archive, [m for m in archive.members if may_be_pe(m)], **options)  # type: ignore[arg-type]  # bounds


@pytest.mark.parametrize(
    ("data", "imports", "most"),
    [
        (SMALL, ("KERNEL32.dll", "nvcuda.dll"), 4_000),
        (AT_THE_START, ("KERNEL32.dll", "a.dll"), 10_000),
        (AT_THE_END, ("KERNEL32.dll", "a.dll"), 250_000),
    ],
    ids=["small", "tables at the start", "tables at the end"],
)
def test_imports_come_from_head_or_tail(data: bytes, imports: tuple[str, ...], most: int) -> None:
    (pe,) = pes_of({"demo/_C.pyd": data})

    assert pe.imports == imports
    assert pe.bytes_read < most


def test_of_a_stored_member_the_tables_are_read() -> None:
    (pe,) = pes_of({"demo/_C.pyd": AT_THE_END}, method=0)

    assert pe.imports == ("KERNEL32.dll", "a.dll")
    assert pe.bytes_read < 20_000


def test_what_is_out_of_reach_is_streamed_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheel_checks.facts.accelerator.pe_libraries.EFFORT", 100_000)
    middle = Pe(imports=("KERNEL32.dll", "a.dll"), code=filling(1_000_000), behind=filling(1_500_000, 2)).build().data

    (pe,) = pes_of({"demo/_C.pyd": middle})
    assert isinstance(pe.imports, Unavailable)
    assert re.fullmatch(
        r"the names of its imports are beyond its first 0\.\d MB \(--depth full reads up to --max-read\)",
        pe.imports.reason,
    )
    assert pe.bytes_read <= 110_000

    (pe,) = pes_of({"demo/_C.pyd": middle}, stream=10_000_000)
    assert pe.imports == ("KERNEL32.dll", "a.dll")


def test_of_a_member_with_gpu_code_less_is_read() -> None:
    far = Pe(imports=("a.dll",), code=filling(2_000_000), behind=filling(2_000_000, 2)).build().data

    (thrifty,) = pes_of({"demo/_C.pyd": far}, has_code=lambda header: bool(header.sections))
    (thorough,) = pes_of({"demo/_C.pyd": far})

    assert isinstance(thrifty.imports, Unavailable)
    assert thorough.imports == ("a.dll",)
    assert thrifty.bytes_read < thorough.bytes_read


def test_a_file_of_another_kind_has_no_header() -> None:
    (pe,) = pes_of({"demo/a.dll": b"version https://git-lfs.github.com/spec/v1\n" * 3})

    assert pe.header is None


def test_a_corrupt_file_says_what_is_wrong() -> None:
    (pe,) = pes_of({"demo/a.dll": b"MZ" + bytes(200)})

    assert isinstance(pe.header, Unavailable)
    assert "it cannot be read as a PE file: bytes 0x0 on are not the signature PE" in pe.header.reason
