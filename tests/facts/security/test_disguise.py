"""Native code under the names of data: seen in a local file at every depth, remotely where every byte is read."""

from __future__ import annotations

import zlib

import pytest

from tests.support.elf import X86_64, Elf
from tests.support.wheel_facts import facts_of
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.model import Unavailable

LIBRARY = Elf(machine=X86_64).build().data
NEEDED = 120  # such members are more than are named


def disguised(wheel: WheelBuilder, depth: Depth = Depth.QUICK, *, remote: bool = False) -> object:
    return facts_of(wheel, depth=depth, remote=remote).disguised


@pytest.mark.parametrize("depth", Depth)
def test_a_local_file_shows_it_at_every_depth(depth: Depth) -> None:
    wheel = WheelBuilder().add("demo/logo.png", LIBRARY + bytes(100_000)).add("demo/lib.so", LIBRARY)
    assert disguised(wheel, depth) == (("demo/logo.png", "ELF"),)


@pytest.mark.parametrize("depth", [Depth.QUICK, Depth.LINKS, Depth.GPU])
def test_from_afar_it_is_not_known_below_depth_full(depth: Depth) -> None:
    assert isinstance(disguised(WheelBuilder().add("demo/logo.png", LIBRARY), depth, remote=True), Unavailable)


def test_from_afar_every_byte_shows_it() -> None:
    wheel = WheelBuilder().add("demo/logo.png", LIBRARY)
    assert disguised(wheel, Depth.FULL, remote=True) == (("demo/logo.png", "ELF"),)


def test_shallow_and_full_count_alike() -> None:
    wheel = WheelBuilder()
    for number in range(NEEDED):
        wheel.add(f"demo/{number}.png", LIBRARY)
    assert disguised(wheel) == disguised(wheel, Depth.FULL)
    assert disguised(wheel)[-1][0] == ""  # type: ignore[index]  # a tuple, as the line before shows


def test_a_start_that_does_not_inflate_from_a_little_is_not_known() -> None:
    """Empty blocks of deflate, five bytes each, push the file's signature out of the bytes that depth quick reads."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    payload = b"\0\0\0\xff\xff" * 300 + packer.compress(LIBRARY) + packer.flush()
    wheel = WheelBuilder().add("demo/logo.png", LIBRARY, method=8, payload=payload)
    assert disguised(wheel) == (("demo/logo.png", ""),)
    assert disguised(wheel, Depth.FULL) == (("demo/logo.png", "ELF"),)


def test_empty_and_small_members_are_nothing() -> None:
    wheel = WheelBuilder().add("demo/py.typed", b"").add("demo/a.txt", b"\x7fELF").add("demo/b.txt", b"M" * 30)
    assert disguised(wheel) == ()
