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
    rf"""(?: \[?{_STAMP}\]?:?                                  # 2026-11-20T15:00:00.123Z
      | [A-Z][a-z]{{2}} [ ]+\d+ [ ]\d\d:\d\d:\d\d [ ][\w.-]+ [ ][\w./@-]+(?:\[\d+\])?:   # syslog, journalctl
      | \[ [ ]*\d+\.\d+ \]                                     # dmesg
      | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?                       # the time alone
      | \[(?:rank|default)?\d+\]:                              # torchrun
      | [\w./-]+ [ ]* \| (?=[ ])                               # docker compose
      | \[pod/[\w./-]+\]                                       # kubectl logs --prefix
      | std(?:out|err) [ ] [FP] (?=[ ])                        # containerd
      | \#\d+ [ ] \d+\.\d+ (?=[ ])                             # docker build
      | \((?:(?!pid=)[\w=, -])*pid=\d[\w=., -]*\)               # Ray
    ) [ ]*""",
    re.VERBOSE,
)
_MOST_PREFIXES = 4
# Names in JSON logs of Docker, Python's structlog and python-json-logger, zap, zerolog, slog, logrus, bunyan, journald.
_MESSAGES = ("log", "message", "msg", "event", "MESSAGE")
_LEVELS = ("level", "levelname", "severity", "lvl")
_FAILURES = ("error", "err", "exception", "exc_info", "stack", "stacktrace", "stack_trace")
_LINE = re.compile(rb"[^\s\0][^\n\r]{0,%d}" % (4 * LONGEST_LINE))  # with prefixes and colours, without leading blanks
_OVERLAP = 200  # characters of a part of a long line that the next part has, too


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
    """The lines of a log; never raises. Line feeds alone are counted: a carriage return is a progress bar's.

    What is between two carriage returns, and each part of a long line, is a line of ``text`` with the same number.
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
        start = match.start()
        number += whole.count(b"\n", counted, start)
        counted = start
        line = _cleaned(match[0].decode(errors="replace"))
        for part in range(0, max(len(line) - _OVERLAP, 1) if line else 0, LONGEST_LINE - _OVERLAP):
            starts.append(length)
            numbers.append(number)
            length += text.write(line[part : part + LONGEST_LINE]) + text.write("\n")
    return Log(text.getvalue(), count, cut, starts, numbers)


def _in_utf8(data: bytes) -> bytes:
    """From UTF-16 as PowerShell writes it; anything else as it is, without a byte order mark."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def _cleaned(line: str) -> str:
    line = _ESCAPES.sub("", line)
    if line.startswith('{"'):
        line = _of_json(line)
    line = line.replace("\r", " ").replace("\0", "").strip()
    for _ in range(_MOST_PREFIXES):
        prefix = _PREFIXES.match(line)
        if not prefix:
            break
        line = line[prefix.end() :]
    return line.strip()


def _of_json(line: str) -> str:
    """The message of a line of a JSON log (Docker's, and structured ones) with its level and error; or the line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(row, dict):
        return line
    text = next((row[name] for name in _MESSAGES if isinstance(row.get(name), str)), None)
    if text is None:
        return line
    level = next((f"level={row[name]} " for name in _LEVELS if isinstance(row.get(name), str)), "")
    failures = (f" {name}={row[name]}" for name in _FAILURES if row.get(name))
    return " ".join(f"{level}{text}{''.join(failures)}".split("\n"))
