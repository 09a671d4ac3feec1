"""The end of a deflate stream without its beginning: every byte that is called certain is the true one."""

from __future__ import annotations

import random
import re
import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.deflate_blocks import LARGEST_STORED_BLOCK, header_candidates
from wheel_checks.formats.zip.deflate_tail import Tail, inflate_tail

quick = settings(max_examples=100)

STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED)


def pack(data: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY, memory: int = 8) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, memory, strategy)
    return packer.compress(data) + packer.flush()


def program(seed: int, size: int) -> bytes:
    """Something like a library: words that recur near and far, runs of zeros, tables of numbers, noise."""
    chance = random.Random(seed)
    words = [chance.randbytes(chance.randint(2, 30)) for _ in range(200)]
    data = bytearray()
    while len(data) < size:
        kind = chance.random()
        if kind < 0.7:
            data += chance.choice(words)
        elif kind < 0.8:
            data += bytes(chance.randint(1, 300))
        elif kind < 0.9:
            data += b"".join(number.to_bytes(8, "little") for number in range(chance.randint(0, 9999), 10_005))
        else:
            data += chance.randbytes(chance.randint(1, 400))
    return bytes(data[:size])


def assert_sound(tail: Tail, truth: bytes) -> None:
    """Certain bytes are true, and their place is right."""
    assert tail.offset + len(tail.data) == len(truth)
    assert len(tail.unknown) == len(tail.data)
    for run in re.finditer(rb"\0+", tail.unknown):
        assert truth[tail.offset :][run.start() : run.end()] == tail.data[run.start() : run.end()]


LIBRARY = program(1, 1_400_000)
PACKED = pack(LIBRARY)


def test_the_last_bytes_of_a_member_without_its_beginning() -> None:
    tail = inflate_tail(PACKED[-150_000:], len(LIBRARY))
    assert_sound(tail, LIBRARY)
    assert tail.certain(len(LIBRARY) - 20_000, 20_000) == LIBRARY[-20_000:]
    assert 1 <= tail.attempts < 1000


def test_what_the_window_gave_is_not_certain() -> None:
    chance = random.Random(2)
    far, between, behind = (bytes(chance.choices(range(64), k=size)) for size in (200, 31_000, 9000))
    data = far + between + far + behind
    packed = pack(data, memory=6)
    second = len(far + between)
    # Cut so that the second copy is inflated and the first is not: it is known only by its distance from there.
    tail = inflate_tail(packed[len(packed) // 2 :], len(data), margin=0)
    assert 16 * 1024 + 200 < tail.offset < second
    assert_sound(tail, data)
    assert tail.unknown[second - tail.offset :][:200].count(0) < 50
    assert tail.certain(second, 200) is None
    assert tail.unknown.count(0) > len(tail.data) // 2


def test_outside_of_what_was_inflated_nothing_is_certain() -> None:
    tail = inflate_tail(PACKED[-150_000:], len(LIBRARY))
    assert tail.certain(tail.offset - 1, 1) is None
    assert tail.certain(len(LIBRARY) - 1, 2) is None
    assert tail.certain(len(LIBRARY), 0) == b""


@quick
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(30_000, 60_000),
    level=st.integers(0, 9),
    strategy=st.sampled_from(STRATEGIES),
    memory=st.integers(2, 5),
    cut=st.floats(0, 1),
    margin=st.sampled_from((0, 8, 500)),
)
def test_certain_bytes_are_true(
    seed: int, size: int, level: int, strategy: int, memory: int, cut: float, margin: int
) -> None:
    data = program(seed, size)
    packed = pack(data, level, strategy, memory)
    with suppress(FormatError):
        assert_sound(inflate_tail(packed[int(cut * len(packed)) :], size, margin=margin), data)
        return
    assert level == 0 or strategy == zlib.Z_FIXED or cut > 0.5, "there are dynamic blocks"


@quick
@given(data=st.binary(max_size=3000), repeated=st.integers(1, 9), level=st.integers(1, 9), cut=st.integers(0, 400))
def test_certain_bytes_of_any_data_are_true(data: bytes, repeated: int, level: int, cut: int) -> None:
    packed = pack(data * repeated, level, memory=1)
    with suppress(FormatError):
        assert_sound(inflate_tail(packed[cut:], len(data) * repeated, margin=0), data * repeated)


@quick
@given(st.integers(0, 10**6), st.sampled_from((zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_PARTIAL_FLUSH)))
def test_flushes_and_stored_blocks_within_the_tail(seed: int, flush: int) -> None:
    """Stored blocks begin at byte boundaries of the original stream, wherever the inflating starts."""
    chance = random.Random(seed)
    packer = zlib.compressobj(chance.randint(1, 9), zlib.DEFLATED, -zlib.MAX_WBITS, 4)
    data, packed, noise = b"", b"", []
    for number in range(8):
        piece = chance.randbytes(3000) if number % 3 == 2 else program(chance.randrange(10**6), 5000)
        if number % 3 == 2:
            noise.append(slice(len(data), len(data) + len(piece)))
        data += piece
        packed += packer.compress(piece) + packer.flush(flush)
    packed += packer.flush()
    tail = inflate_tail(packed[len(packed) // 3 :], len(data), margin=0)
    assert_sound(tail, data)
    behind = [slice(span.start - tail.offset, span.stop - tail.offset) for span in noise if span.start >= tail.offset]
    assume(behind)  # a tail may begin after all noise, when no block before it has its own tree
    for span in behind:
        assert tail.unknown[span].count(0) > 2850  # noise refers to earlier bytes by chance alone


def test_a_stream_inside_the_last_stored_block_is_not_taken_for_the_member() -> None:
    inner = pack(program(6, 120_000))[-60_000:]  # ends at the end of the outer stream
    outer = program(7, 300_000) + inner
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(outer[: -len(inner)]) + packer.flush(zlib.Z_SYNC_FLUSH)
    packed += b"\1" + len(inner).to_bytes(2, "little") + (len(inner) ^ 0xFFFF).to_bytes(2, "little") + inner
    assert zlib.decompress(packed, -15) == outer
    assert len(inflate_tail(packed[-50_000:], len(outer), margin=0).data) > 50_000  # this one is deceived
    with pytest.raises(FormatError):
        inflate_tail(packed[-50_000:], len(outer))
    assert_sound(inflate_tail(packed[-120_000:], len(outer)), outer)


def refusal(packed: bytes, size: int, limit: int = 1 << 20) -> str:
    with pytest.raises(FormatError) as error:
        inflate_tail(packed, size, limit=limit)
    return str(error.value)


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        PACKED[-LARGEST_STORED_BLOCK:],
        PACKED[-150_000:-1],
        PACKED[-150_000:] + b"\0",
        pack(LIBRARY, strategy=zlib.Z_FIXED)[-150_000:],
        pack(LIBRARY, level=0)[-150_000:],
    ],
    ids=["empty", "too short", "cut off", "too long", "fixed codes only", "stored only"],
)
def test_where_no_start_leads_to_the_end(packed: bytes) -> None:
    assert f"in the last {len(packed)} bytes of the member" in refusal(packed, len(LIBRARY))


@pytest.mark.parametrize("length", [255, 256, 257, 256 + 16 * 1024 - 1, 256 + 16 * 1024, 256 + 16 * 1024 + 1])
def test_bytes_behind_the_end_are_refused_wherever_it_lies(length: int) -> None:
    """The stream is inflated in pieces, 256 bytes and then 16 KiB each, and its end may be that of a piece."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = bytes(random.Random(10).choices(range(4), k=600))
    packed = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    stored = bytes(length + 1 - len(packed) - 5)
    packed += b"\1" + len(stored).to_bytes(2, "little") + (len(stored) ^ 0xFFFF).to_bytes(2, "little") + stored
    tail = inflate_tail(packed, len(data + stored), margin=0)
    assert (tail.inflated.start, tail.data) == (0, data + stored)
    with pytest.raises(FormatError):
        inflate_tail(packed + b"\0", len(data + stored), margin=length)


def test_what_the_last_bytes_give_may_be_more_than_comes_out_at_once() -> None:
    """At most 256 KiB do, and when all is read the rest of a copy may be yet to come."""
    beginning = program(11, 20_000)
    starts = set()
    for size in range(255_600, 255_760, 3):  # about 255,684 the rest of the last copy is held back
        data = beginning + bytes(size)
        tail = inflate_tail(pack(data, memory=3)[3000:], len(data), margin=0)
        assert_sound(tail, data)
        starts.add(tail.inflated.start)
    assert len(starts) == 1


def header(literals: int, distances: int, lengths: list[int]) -> int:
    """The bits of a dynamic block's header up to the code lengths (RFC 1951, 3.2.7), the first one lowest."""
    bits = 0b100 | literals << 3 | distances << 8 | (len(lengths) - 4) << 13
    for number, length in enumerate(lengths):
        bits |= length << (17 + 3 * number)
    return bits


def could_begin_a_block(bits: int) -> bool:
    """The same check as the module's, for one position."""
    count = (bits >> 13 & 15) + 4
    lengths = [bits >> (17 + 3 * number) & 7 for number in range(count)]
    complete = sum(128 >> length for length in lengths if length) == 128
    return bits >> 1 & 3 == 2 and bits >> 3 & 31 <= 29 and bits >> 8 & 31 <= 29 and complete


@quick
@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 255), st.just(8)),
            st.tuples(
                st.builds(
                    header,
                    st.integers(0, 31),
                    st.integers(0, 31),
                    st.lists(st.sampled_from((0, 1, 1, 2, 3, 4, 5, 6, 7)), min_size=4, max_size=19),
                ),
                st.integers(17, 90),
            ),
        ),
        max_size=30,
    )
)
def test_every_position_that_could_begin_a_block_is_tried(parts: list[tuple[int, int]]) -> None:
    stream, width = 0, 0
    for bits, size in parts:
        stream |= bits << width
        width += size
    data = stream.to_bytes(width // 8 + 12, "little")
    end = len(data) - 10
    expected = [position for position in range(8 * end) if could_begin_a_block(stream >> position)]
    assert list(header_candidates(data, end)) == expected


def test_positions_are_found_across_slices() -> None:
    complete = header(20, 20, [2, 2, 2, 2]).to_bytes(10, "little")
    for place in (16_373, 16_380, 16_383, 16_384):
        data = bytes(place) + complete + bytes(100)
        assert 8 * place in header_candidates(data, len(data) - 10)


def test_codes_that_overflow_are_not_complete() -> None:
    six_of_one_bit = header(20, 20, [1] * 6).to_bytes(10, "little")  # 6/2 of the code space, as 1 modulo 2
    assert 0 not in header_candidates(six_of_one_bit + bytes(20), 1)


def test_the_search_is_given_up_after_a_number_of_attempts() -> None:
    complete = header(20, 20, [2, 2, 2, 2]).to_bytes(10, "little")
    assert "(16384 tried)" in refusal(complete * 30_000, 10**9)


def test_a_member_smaller_than_its_tail_is_refused() -> None:
    assert "expected at most 1000" in refusal(PACKED[-150_000:], 1000)


def test_a_bomb_costs_no_more_memory_than_the_limit_allows() -> None:
    packed = pack(program(8, 50_000) + bytes(100_000_000) + program(9, 400), level=9)
    tracemalloc.start()
    try:
        assert "no start of a block" in refusal(packed[20_000:], 10**9, limit=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@quick
@given(st.binary(max_size=400), st.integers(0, 4))
def test_any_bytes_give_a_tail_or_a_refusal(noise: bytes, margin: int) -> None:
    with suppress(FormatError):
        assert len(inflate_tail(noise, 10**6, limit=10**5, margin=margin).data) <= 10**5


@settings(max_examples=15)
@given(st.binary(min_size=1, max_size=12))
def test_a_pattern_that_always_looks_like_a_header_ends_soon(pattern: bytes) -> None:
    with suppress(FormatError):
        inflate_tail(pattern * (80_000 // len(pattern)), 10**9)
