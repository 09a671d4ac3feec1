"""A window into a deflate stream: what is certain of it occurs in the truth, once."""

from __future__ import annotations

import random
import re
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.zip.test_deflate_tail import pack, program
from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.deflate_blocks import Inflated
from wheel_checks.formats.zip.deflate_window import inflate_window

LIBRARY = program(1, 1_400_000)
PACKED = pack(LIBRARY)


def assert_sound(window: Inflated, truth: bytes) -> None:
    """There is a place in the truth where all certain bytes fit."""
    at = window.unknown.rindex(bytes(64))
    run = re.compile(b"(?=" + re.escape(window.data[at : at + 64]) + b")")
    starts = [match.start() - at for match in run.finditer(truth) if match.start() >= at]
    known = window.partly_known(0, len(window.data))
    assert any(
        start + len(known) <= len(truth)
        and all(byte is None or byte == true for byte, true in zip(known, truth[start:], strict=False))
        for start in starts
    )


@pytest.mark.parametrize("start", [0, 40_000, 80_000])
def test_the_middle_of_a_stream(start: int) -> None:
    window = inflate_window(PACKED[start : start + 150_000], limit=10**6)
    assert_sound(window, LIBRARY)
    assert window.unknown.count(0) > len(window.data) // 2


def test_stored_blocks_are_starts_too() -> None:
    """What no compressor shortens is stored, and has no other header."""
    noise = random.Random(1).randbytes(2_000_000)
    window = inflate_window(pack(noise)[700_000:900_000], limit=10**6)
    assert window.data in noise
    assert len(window.data) > 100_000
    assert not any(window.unknown)


def test_a_stream_within_a_stored_block_is_not_taken() -> None:
    inner = pack(program(6, 200_000))[:60_000]
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(program(7, 300_000)) + packer.flush(zlib.Z_SYNC_FLUSH)
    packed += b"\0" + len(inner).to_bytes(2, "little") + (len(inner) ^ 0xFFFF).to_bytes(2, "little") + inner
    with pytest.raises(FormatError):
        inflate_window(packed[-59_000:], limit=10**6)


def test_no_more_than_the_limit() -> None:
    assert len(inflate_window(PACKED[:150_000], limit=70_000, margin=1000).data) == 70_000


def test_what_is_learnt_makes_its_copies_known() -> None:
    chance = random.Random(2)
    far, between, behind = (bytes(chance.choices(range(64), k=size)) for size in (200, 31_000, 90_000))
    data = far + between + far + behind
    packed = pack(data, memory=6)
    window = inflate_window(packed[len(packed) // 8 :], limit=10**6, margin=0)
    start = len(data) - len(window.data)
    second = len(far + between) - start
    assert window.known(second, second + 200) is None
    assert window.learn(second, far)
    assert window.known(second, second + 200) == far
    assert not window.learn(second, bytes(200))


@settings(max_examples=60)
@given(st.binary(max_size=4000), st.integers(1, 5000))
def test_any_bytes_are_inflated_or_refused(data: bytes, limit: int) -> None:
    try:
        window = inflate_window(data, limit=limit, margin=8)
    except FormatError:
        return
    assert len(window.data) <= limit


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), level=st.integers(1, 9), memory=st.integers(3, 9), cut=st.floats(0, 0.5))
@example(seed=4, level=5, memory=5, cut=0.5)  # two bytes followed by their complement: no stored block begins there
def test_certain_bytes_are_true(seed: int, level: int, memory: int, cut: float) -> None:
    data = program(seed, 100_000)
    packed = pack(data, level, memory=memory)
    first = int(cut * len(packed))
    try:
        window = inflate_window(packed[first : first + 40_000], limit=10**6, margin=1000)
    except FormatError:
        return
    if bytes(64) in window.unknown:
        assert_sound(window, data)
