"""A file's bytes and text: decoded so that every edit of the text is an edit of the bytes, and nothing else changes."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from wheel_checks.errors import FormatError

LARGEST = 16 * 1024 * 1024  # bytes; a compiled requirements file with every hash has one or two MiB

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")  # PEP 263
_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Source:
    """A file: its ``data``, and its ``text`` without the byte order mark, which is ``mark``."""

    path: Path
    data: bytes
    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    _starts: list[int] = field(default_factory=list, repr=False, compare=False)

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column, from 1, of an offset in the text."""
        if not self._starts:
            self._starts.extend([0, *(match.end() for match in _NEWLINE.finditer(self.text))])
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def byte_offsets(self, offsets: Iterable[int]) -> dict[int, int]:
        """The offsets in the data of offsets in the text."""
        if self.text.isascii() and self.encoding == "utf-8":
            return {offset: offset + len(self.mark) for offset in offsets}
        found: dict[int, int] = {}
        done, position = 0, len(self.mark)
        for offset in sorted(set(offsets)):
            position += len(self.text[done:offset].encode(self.encoding))
            found[offset] = position
            done = offset
        return found


def decode(path: Path, data: bytes, *, declared: bool = True) -> Source:
    """The text of a file: by its byte order mark, else by its PEP 263 line (if ``declared`` ones count), else UTF-8.

    Raises FormatError, with the place, when the bytes are not in that encoding, or there are more than ``LARGEST``.
    """
    if len(data) > LARGEST:
        raise FormatError(f"{path} has {len(data):,} bytes", expected=f"at most {LARGEST:,}")
    mark, encoding = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), (b"", ""))
    encoding = encoding or (_declared(path, data) if declared else "") or "utf-8"
    body = data[len(mark) :]
    try:
        text = body.decode(encoding)
        if text.encode(encoding) == body:
            return Source(path, data, text, encoding, mark)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start + len(mark)) + 1
        hint = f"save it as UTF-8{', or name its encoding in its first line: # -*- coding: latin-1 -*-' * declared}"
        raise FormatError(f"{path} is not valid {encoding} (line {line}: {error.reason})", hint=hint) from None
    except UnicodeError:
        pass
    raise FormatError(f"{path} does not round-trip in its encoding, {encoding}", hint="save it as UTF-8")


def _declared(path: Path, data: bytes) -> str:
    """The encoding declared in one of the first two lines."""
    for line in data[:1000].splitlines()[:2]:
        if match := _CODING.match(line):
            name = match[1].decode("ascii")
            try:
                codec = codecs.lookup(name)
                known = codec.decode(b"torch\n")[0] == "torch\n"  # ASCII must be ASCII: no UTF-7, no rot13
            except (LookupError, ValueError, TypeError, AssertionError):
                known = False
            if not known or codec.name in {"utf-7", "utf-8-sig", "idna", "punycode"}:
                raise FormatError(
                    f"{path} declares the encoding {name[:40]}", expected="a known encoding based on ASCII"
                )
            return codec.name
        if not line.lstrip().startswith(b"#") and line.strip():
            break
    return ""
