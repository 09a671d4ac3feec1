"""A file's bytes and text: decoded so that every edit of the text is an edit of the bytes, and nothing else changes."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from wheel_checks.errors import FormatError
from wheelproof.pins.model import Source

LARGEST = 16 * 1024 * 1024  # bytes; a compiled requirements file with every hash has one or two MiB

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")  # PEP 263


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
