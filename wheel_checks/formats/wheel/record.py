"""RECORD (recording installed projects specification): one row per member with hash and size."""

import csv
import hashlib
import io
import re
from dataclasses import dataclass

from wheel_checks.errors import FormatError

MAX_SIZE = 32 * 1024 * 1024
MAX_ROWS = 250_000  # as many as an archive may have members
MAX_FAULTS = 1_000

EMPTY_LINE = "the line is empty, on which pip fails"
_UNHASHED = (".dist-info/RECORD", ".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")
_WEAK = frozenset({"md5", "sha1", "sha224", "sha3_224"})
_BASE64_LENGTHS = {
    name: (hashlib.new(name).digest_size * 8 + 5) // 6
    for name in ("sha256", "sha384", "sha512", "sha3_256", "sha3_384", "sha3_512", "blake2b", "blake2s")
}
_URLSAFE_BASE64 = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One row. ``size`` is in bytes, None when absent or malformed; ``line`` counts from 1.

    ``algorithm`` and ``digest`` (urlsafe base64, no padding) are "" when absent or malformed.
    """

    path: str
    algorithm: str
    digest: str
    size: int | None
    line: int


@dataclass(frozen=True, slots=True)
class Record:
    """The rows that have a path, and ``(line number, sentence)`` for each row that is malformed in any way."""

    rows: tuple[RecordRow, ...]
    faults: tuple[tuple[int, str], ...]


def parse_record(data: bytes, *, may_have_gaps: bool = False) -> Record:
    """The rows of RECORD and what is wrong with them, one by one; duplicates and members are not compared here.

    An empty line is a fault, unless the file ``may_have_gaps``, as one from which rows were taken has.
    Every row but those of RECORD and its signatures needs a hash of sha256 or better. Raises FormatError when the
    file is too large, has too many rows, or more than ``MAX_FAULTS`` faults: then it is not a RECORD at all.
    """
    if len(data) > MAX_SIZE:
        raise FormatError(f"RECORD has {len(data)} bytes", expected=f"at most {MAX_SIZE}")
    faults: list[tuple[int, str]] = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        faults.append((data.count(b"\n", 0, error.start) + 1, "the line is not UTF-8"))
        text = data.decode("utf-8", "replace")
    rows: list[RecordRow] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        try:
            columns = next(reader)
        except StopIteration:
            return Record(tuple(rows), tuple(faults))
        except csv.Error as error:
            faults.append((reader.line_num, f"the line is not CSV ({error})"))
        else:
            row = _read_row(columns, reader.line_num, faults if columns or not may_have_gaps else [])
            rows += [] if row is None else [row]
        if len(rows) > MAX_ROWS:
            raise FormatError(f"RECORD has more than {MAX_ROWS} rows", expected="a row per file of the wheel")
        if len(faults) > MAX_FAULTS:
            line, first = faults[0]
            raise FormatError(
                f"RECORD has more than {MAX_FAULTS} faults, the first in line {line}: {first}",
                expected="lines of path,algorithm=digest,size",
            )


def _read_row(columns: list[str], line: int, faults: list[tuple[int, str]]) -> RecordRow | None:
    if not columns:
        faults.append((line, EMPTY_LINE))
        return None
    if len(columns) != 3:
        faults.append((line, f"the line has {len(columns)} columns; expected path, hash and size"))
        return None
    path, hash_text, size_text = columns
    if not path:
        faults.append((line, "the path is empty"))
        return None
    algorithm, equals, digest = hash_text.partition("=")
    if hash_text:
        fault = _hash_fault(algorithm, equals, digest)
    else:
        fault = "" if path.endswith(_UNHASHED) else "it has no hash"
    if fault:
        faults.append((line, f"{path!r}: {fault}"))
        algorithm = digest = ""
    size = None
    if size_text.isascii() and size_text.isdecimal() and len(size_text) < 20:
        size = int(size_text)
    elif size_text:
        faults.append((line, f"{path!r}: the size is {size_text[:80]!r}; expected a number of bytes"))
    return RecordRow(path, algorithm, digest, size, line)


def _hash_fault(algorithm: str, equals: str, digest: str) -> str:
    """What is wrong with ``algorithm=digest``, "" when nothing is."""
    length = _BASE64_LENGTHS.get(algorithm)
    if length is None:
        if algorithm in _WEAK and equals:
            return f"the hash algorithm {algorithm} is too weak; expected sha256 or better"
        return f"the hash {(algorithm + equals + digest)[:80]!r} has an unknown algorithm; expected sha256=..."
    if len(digest) != length or not _URLSAFE_BASE64.fullmatch(digest):
        expected = f"{length} characters of urlsafe base64 without padding"
        return f"the {algorithm} digest {digest[:80]!r} is malformed; expected {expected}"
    return ""
