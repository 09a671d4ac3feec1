"""JSON documents one after another in one stream: on a line each, or as ``cat *.json`` gives them."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from wheel_checks.errors import FormatError

CHUNK = 1 << 20  # bytes
LARGEST = (
    64 << 20
)  # characters of one document; the report of a host has about 30,000, a merged one of 10,000 hosts 30 M
_START = re.compile(r'\{\s*"schema"\s*:')  # of a report: inside a string the quotes would be escaped
_SPACE = re.compile(r"[\s\x1e]*")  # RFC 7464 puts a record separator before each document
_DECODER = json.JSONDecoder()


def read_documents(stream: BinaryIO, *, chunk: int = CHUNK) -> Iterator[Any]:
    """Every document of ``stream``, and in place of anything else a FormatError that says why.

    Behind a fault reading continues where the next report begins. Of the stream no more is held than the document that
    is being read, and at most as much again.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
    text, position, ended = "", 0, False
    while True:
        position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty string, too
        if position < len(text) or ended:
            if position == len(text):
                return
            try:
                document, position = _DECODER.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                length = len(text) - position
                if ended or _is_final(error, len(text)) or length > LARGEST:
                    too_long = length > LARGEST and not ended
                    yield FormatError(f"a document has more than {LARGEST >> 20} MiB" if too_long else _reason(error))
                    following = _START.search(text, position + 1)
                    position = following.start() if following else len(text)
                    continue
            else:
                yield document
                continue
        wanted = max(chunk, len(text) - position)  # doubled, so that a large document is not parsed again and again
        more = stream.read(wanted)
        ended = not more
        text, position = text[position:] + decode(more, final=ended), 0


def _is_final(error: Exception, length: int) -> bool:
    """Whether more text could not fix it: it is not near the end, where a document is merely cut off."""
    if not isinstance(error, json.JSONDecodeError):
        return True
    return not error.msg.startswith("Unterminated string") and error.pos < length - 16


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        cut_off = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
        return "it ends in the middle of a document" if cut_off else f"it is not JSON: {error.msg}"
    return "it is not readable JSON: it is nested too deeply" if isinstance(error, RecursionError) else str(error)
