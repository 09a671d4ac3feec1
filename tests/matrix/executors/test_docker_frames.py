"""The output of an attached container, and its kept part."""

from __future__ import annotations

import io
import struct

from hypothesis import given
from hypothesis import strategies as st

from wheelproof.matrix.executors.commands import Kept
from wheelproof.matrix.executors.docker.container import frames

STREAMS = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8)


def framed(stream: int, payload: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(payload)) + payload


@given(STREAMS, st.integers(1, 17))
def test_frames_are_put_together_however_they_are_cut(written: list[tuple[int, bytes]], size: int) -> None:
    sent = b"".join(framed(stream, payload) for stream, payload in written)
    read: dict[int, bytes] = {1: b"", 2: b""}
    for stream, piece in frames(sent[at : at + size] for at in range(0, len(sent), size)):
        read[stream] += piece
    assert read == {stream: b"".join(p for s, p in written if s == stream) for stream in (1, 2)}


def test_a_connection_that_is_cut_gives_what_has_come() -> None:
    assert b"".join(piece for _, piece in frames([framed(1, b"whole"), framed(1, b"cut")[:-1]])) == b"wholecu"


def test_of_an_endless_stream_the_beginning_is_kept_and_that_is_reported() -> None:
    file = io.BytesIO()
    kept = Kept(file, limit=5)
    for piece in (b"abc", b"de", b"f", b"g", b"hij"):
        kept.write(piece)
    assert file.getvalue() == b"abcde\n(more than 5 bytes: the rest is dropped)\n"


def test_a_stream_that_just_fits_is_kept_whole() -> None:
    file = io.BytesIO()
    Kept(file, limit=3).write(b"abc")
    assert file.getvalue() == b"abc"
