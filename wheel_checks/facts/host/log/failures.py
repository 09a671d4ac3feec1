"""The lines of a log that look like a failure, whatever its cause, by ``data/log_failures.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from wheel_checks.data import load
from wheel_checks.facts.host.log.facts import Log

_BEGIN = r"(?<![A-Za-z0-9_])(?=\S)"  # of every text; most of a log is skipped by it
TABLES = ("failure", "word", "innocent", "calm")
Line = tuple[int, str]
# The level that glog and TensorFlow write before a harmless text.
_GLOG = r"(?:(?:[EF]\d{4} [\d:.]{1,30} {1,8}\d{1,10}|[EF]) [\w./-]{1,200}:\d{1,6}\] )?"


def failures(log: Log, harmless: Sequence[str]) -> Iterator[Line]:
    """The number and the text of each line that looks like a failure, in order.

    Of a line with a text of ``harmless`` this text, with its level, and the words after it are no failure.
    """
    explained, suspect, start = _harmless(tuple(harmless)), _expression("failure", "word"), 0
    while match := suspect.search(log.text, start):
        number, line = log.line_at(match.start())
        if _is_failure(line, explained, _line_before(log.text, match.start())):
            yield number, line
        start = log.text.find("\n", match.start()) + 1 or len(log.text)  # \s may have matched line ends


def _line_before(text: str, position: int) -> str:
    end = max(text.rfind("\n", 0, position), 0)
    return text[text.rfind("\n", 0, end) + 1 : end]


def _is_failure(line: str, harmless: re.Pattern[str], before: str) -> bool:
    """Whether a line is one. Words that follow a warning ending in a colon in the line ``before`` belong to it."""
    rest = _blanked(harmless, _blanked(_expression("innocent"), line))
    if _expression("failure").search(rest):
        return True
    word, goes_on = _expression("word").search(rest), (_expression("calm").search(line), harmless.search(line))
    if word is None or any(one and one.start() <= word.start() for one in goes_on):
        return False
    return not (before.endswith(":") and _expression("calm").search(before))


def _blanked(pattern: re.Pattern[str], line: str) -> str:
    """The line with spaces in place of what the pattern matches, so that no words are joined and none moves."""
    return pattern.sub(lambda match: " " * len(match[0]), line)


@cache
def _expression(*tables: str) -> re.Pattern[str]:
    """All texts of these tables."""
    texts = "|".join(text for table in tables for row in load("log_failures")[table] for text in row["texts"])
    return re.compile(_BEGIN + f"(?:{texts})", re.MULTILINE)


@cache
def _harmless(texts: tuple[str, ...]) -> re.Pattern[str]:
    unnamed = (re.sub(r"[(][?]P<[a-z]+>", "(?:", text) for text in texts)
    return re.compile(f"{_GLOG}(?:{'|'.join(unnamed) or '(?!)'})")
