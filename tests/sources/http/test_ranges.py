"""Joining ranges, whatever they are."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from wheel_checks.sources.http.ranges import cut_out, join_ranges, parse_content_range

FILE = bytes(range(256)) * 1000
RANGES = st.lists(
    st.tuples(st.integers(0, len(FILE)), st.integers(0, 3000)).map(lambda r: (r[0], min(r[1], len(FILE) - r[0]))),
    max_size=30,
)


@given(RANGES)
def test_every_range_can_be_cut_out_of_the_joined_ones(ranges: list[tuple[int, int]]) -> None:
    joined = join_ranges(ranges)
    pieces = [((offset, length), FILE[offset : offset + length]) for offset, length in joined]
    for offset, length in ranges:
        assert cut_out(pieces, offset, length) == FILE[offset : offset + length]
    for (start, size), (following, _) in pairwise(joined):
        assert following - (start + size) >= 16384


@given(st.text())
def test_no_content_range_header_is_too_strange(text: str) -> None:
    parsed = parse_content_range(text)
    assert parsed is None or text.strip().startswith("bytes ")
