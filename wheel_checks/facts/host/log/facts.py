"""A log as lines: of any encoding, without colours, and without what containers and loggers put before each line."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass

LARGEST = 16 << 20  # bytes: what comes behind them is not read
LONGEST_LINE = 2000  # characters; a binary file has lines of megabytes

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
      | \([\w=, -]*pid=\d+[\w=., -]*\)                         # Ray
    ) [ ]*""",
    re.VERBOSE,
)
_MOST_PREFIXES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """``lines`` are cleaned: the first is line 1. ``cut`` tells whether the log was longer than what was read.

    Two logs are never equal, so that what was found in one can be remembered without comparing megabytes.
    """

    lines: tuple[str, ...]
    cut: bool = False

    @property
    def is_empty(self) -> bool:
        """True when no line holds anything."""
        return not any(self.lines)


def parse_log(data: bytes) -> Log:
    """The lines of a log; never raises. Lines end at a line feed alone: a carriage return is a progress bar's."""
    text = _decoded(data[:LARGEST])
    lines = text.removesuffix("\n").split("\n")
    return Log(tuple(_cleaned(line) for line in lines), len(data) > LARGEST)


def _decoded(data: bytes) -> str:
    """UTF-16 as PowerShell writes it, else UTF-8, what is none replaced."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


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
    """The message of a line of a JSON log (Docker's, and structured ones); the line itself when it has none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return line
    texts = [row.get(name) for name in ("log", "message", "msg", "MESSAGE")] if isinstance(row, dict) else []
    return next((" ".join(text.split("\n")) for text in texts if isinstance(text, str)), line)
