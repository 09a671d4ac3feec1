"""Byte ranges (RFC 9110, 14): the headers of requests and answers, and joining what is near."""

import re
from collections.abc import Mapping, Sequence

from wheel_checks.sources.http.cache import FileIdentity

_GAP = 16384  # bytes between two ranges that are cheaper to transfer than another request
_LONGEST_JOINED = 8 << 20  # bytes; longer joins would give up parallel transfer


def join_ranges(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Few ``(offset, length)``, in order, that cover all ranges: what overlaps or has a gap under 16 KiB is one."""
    joined: list[tuple[int, int]] = []
    for offset, length in sorted(ranges):
        if joined:
            start, size = joined[-1]
            whole = max(start + size, offset + length) - start
            if whole == size or (offset - (start + size) < _GAP and whole <= _LONGEST_JOINED):
                joined[-1] = (start, whole)
                continue
        joined.append((offset, length))
    return joined


def cut_out(pieces: Sequence[tuple[tuple[int, int], bytes]], offset: int, length: int) -> bytes:
    """The bytes at ``offset`` from the piece, given with its ``(offset, length)``, that holds them all."""
    for (start, size), data in pieces:
        if start <= offset and offset + length <= start + size:
            return data[offset - start : offset - start + length]
    raise ValueError(f"no piece contains bytes {offset} to {offset + length}")


def range_headers(identity: FileIdentity, offset: int, length: int) -> dict[str, str]:
    """The headers of a request for these bytes of this state of a file, with If-Range where an ETag allows it."""
    headers = {"Range": f"bytes={offset}-{offset + length - 1}", "Accept-Encoding": "identity"}
    if identity.strong_etag:
        headers["If-Range"] = identity.strong_etag
    return headers


def parse_content_range(text: str) -> tuple[int, int, int | None] | None:
    """First byte, last byte and size (None for ``*``) of a Content-Range header, None when it is no such header."""
    match = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", text.strip())
    return None if match is None else (int(match[1]), int(match[2]), None if match[3] == "*" else int(match[3]))


def identity_of(headers: Mapping[str, str], size: int) -> FileIdentity:
    """The state of the file that an answer is about."""
    return FileIdentity(size, headers.get("ETag", ""), headers.get("Last-Modified", ""))


def is_encoded(headers: Mapping[str, str]) -> bool:
    """True when the body is compressed, so that its bytes are not those of the file."""
    return headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", "")


def content_length(headers: Mapping[str, str]) -> int:
    """The length of a body that is not encoded, -1 when it is unknown."""
    length = headers.get("Content-Length", "").strip()
    return int(length) if re.fullmatch(r"\d{1,18}", length) and not is_encoded(headers) else -1
