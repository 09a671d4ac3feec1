"""A log as lines: of any encoding, without colours, and without prefixes of containers and loggers."""

from __future__ import annotations

import codecs
import io
import json
import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

LARGEST = 16 << 20  # bytes; the rest is not read
LONGEST_LINE = 2000  # characters; a binary file has lines of megabytes
MOST_LINES = 1_000_000  # that are not blank; the rest is not read; 16 MiB of a log have 200,000

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-_])")
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = re.compile(
    rf"""(?: \[?{_STAMP}\]?                                    # 2026-11-20T15:00:00.123Z
      | [A-Z][a-z]{{2}} [ ]+\d+ [ ]\d\d:\d\d:\d\d [ ][\w.-]+ [ ][\w./@-]+(?:\[\d+\])?:   # syslog, journalctl
      | \[ [ ]*\d+\.\d+ \]                                     # dmesg
      | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?                       # the time alone
      | \[(?:rank|default)?\d+\]:                              # torchrun
      | [\w./-]+ [ ]* \| (?=[ ])                               # docker compose
      | \[pod/[\w./-]+\]                                       # kubectl logs --prefix
      | std(?:out|err) [ ] [FP] (?=[ ])                        # containerd
      | \((?:(?!pid=)[\w=, -])*pid=\d[\w=., -]*\)               # Ray
    ) [ ]*""",
    re.VERBOSE,
)
_MOST_PREFIXES = 4
_LINE = re.compile(rb"[^\s\0][^\n]*")  # without leading blanks
_MOST_BYTES = 4 * 4 * LONGEST_LINE  # of a line, with its prefixes and colours; a character has at most four


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """``text`` has the cleaned lines without empty ones. ``line_at`` finds their numbers.

    ``line_count`` is that of the log, blank lines included; ``cut`` is true when the log was longer than the part read.
    Two logs are never equal, so that results for one can be cached without comparing megabytes.
    """

    text: str
    line_count: int
    cut: bool = False
    _starts: array[int] = field(default_factory=lambda: array("Q"), repr=False)
    _numbers: array[int] = field(default_factory=lambda: array("Q"), repr=False)

    @property
    def is_empty(self) -> bool:
        """True when all lines are empty."""
        return not self.text

    def line_at(self, position: int) -> tuple[int, str]:
        """The number of the line, 1 for the first, that ``position`` in ``text`` belongs to, and the line."""
        index = bisect_right(self._starts, position) - 1
        start = self._starts[index]
        end = self.text.find("\n", start)
        return self._numbers[index], self.text[start : end if end >= 0 else len(self.text)]


def parse_log(data: bytes) -> Log:
    """The lines of a log; never raises. Lines end at a line feed alone: a carriage return is a progress bar's.

    Reads the first ``LARGEST`` bytes of ``data``, and of these ``MOST_LINES`` lines. Line by line, so that the memory
    is that of the bytes and of the cleaned text.
    """
    whole = _in_utf8(data[:LARGEST])
    count = whole.count(b"\n") + (not whole.endswith(b"\n"))
    text = io.StringIO()
    starts, numbers = array("Q"), array("Q")
    number, counted, length, cut = 1, 0, 0, len(data) > LARGEST
    for taken, match in enumerate(_LINE.finditer(whole)):
        if taken == MOST_LINES:
            cut = True
            break
        start, end = match.span()
        number += whole.count(b"\n", counted, start)
        counted = start
        line = _cleaned(whole[start : min(end, start + _MOST_BYTES)].decode(errors="replace"))
        if line:
            starts.append(length)
            numbers.append(number)
            length += text.write(line) + text.write("\n")
    return Log(text.getvalue(), count, cut, starts, numbers)


def _in_utf8(data: bytes) -> bytes:
    """From UTF-16 as PowerShell writes it; anything else as it is, without a byte order mark."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def _cleaned(line: str) -> str:
    line = _ESCAPES.sub("", line[: 4 * LONGEST_LINE])
    if line.startswith('{"'):
        line = _of_json(line)
    line = line.rstrip("\r \n").replace("\r", " ").replace("\0", "").strip()
    for _ in range(_MOST_PREFIXES):
        prefix = _PREFIXES.match(line)
        if not prefix:
            break
        line = line[prefix.end() :]
    return line[:LONGEST_LINE].strip()


def _of_json(line: str) -> str:
    """The message of a line of a JSON log (Docker's, and structured ones); else the line itself."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return line
    texts = [row.get(name) for name in ("log", "message", "msg", "MESSAGE")] if isinstance(row, dict) else []
    return next((" ".join(text.split("\n")) for text in texts if isinstance(text, str)), line)
