"""The cost of a log for ``explain``: time and memory grow linearly with its size, for any content."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # how Python itself reads an expression
from typing import Any

import pytest

from wheel_checks.data import load
from wheel_checks.facts.host.log.facts import LONGEST_LINE, MOST_LINES, parse_log
from wheel_checks.facts.host.log.failures import TABLES, failures
from wheel_checks.rules.host.log_texts import recognise

TEXTS = dict.fromkeys(
    text
    for rows in (load("log_texts")["entry"], *(load("log_failures")[name] for name in TABLES))
    for row in rows
    for kind in ("texts", "with", "without")
    for text in row.get(kind, [])
)
TOTAL = 1 << 14  # characters that are searched
SLACK = 0.02  # seconds


def matching(items: Any) -> str:
    """A short text that a parsed expression matches, as far as its branches and repetitions go."""
    found = ""
    for operation, argument in items:
        if operation is _constants.LITERAL:
            found += chr(argument)
        elif operation in (_constants.NOT_LITERAL, _constants.ANY):
            found += "~"
        elif operation is _constants.IN:
            found += next((char for char in "1a x._-/'\"=:,+A~(" if re.match(_class(argument), char)), "")
        elif operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            found += matching(argument[2]) * max(argument[0], 0)
        elif operation is _constants.SUBPATTERN:
            found += matching(argument[3])
        elif operation is _constants.BRANCH:
            found += matching(argument[1][0])
    return found


def _class(members: Any) -> str:
    """The text of a set of characters, from its parsed form."""
    categories = {"CATEGORY_WORD": r"\w", "CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s"}
    categories |= {name.replace("_", "_NOT_", 1): short.upper() for name, short in categories.items()}
    text = ""
    for operation, argument in members:
        if operation is _constants.NEGATE:
            text += "^"
        elif operation is _constants.LITERAL:
            text += re.escape(chr(argument))
        elif operation is _constants.RANGE:
            text += f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
        else:
            text += categories[str(argument)]
    return f"[{text}]"


def near_misses(text: str) -> Iterator[str]:
    """Text that an attacker repeats: each beginning of a recognised text, and each of its words."""
    parsed = list(_parser.parse(text))
    beginnings = {matching(parsed[:end]) for end in range(1, len(parsed) + 1)}
    whole = matching(parsed)
    words = set(re.findall(r"[\w./-]+", whole))
    first = re.findall(r"[\w./-]+", whole)[:1]
    yield from beginnings - {""}
    yield from (whole[:-1] + " ", "/a", "/" + "".join(first))
    yield from words
    yield from (one + other for one in beginnings if len(one) > 3 for other in words if one != other)


def seconds(pattern: re.Pattern[str], unit: str, width: int) -> float:
    line = (unit * (width // len(unit) + 1))[:width] + "\n"
    log = line * (TOTAL // len(line) + 1)

    def once() -> float:
        start = time.process_time()
        pattern.search(log)
        return time.process_time() - start

    return min(once() for _ in range(2))


@pytest.mark.parametrize("text", TEXTS)
def test_no_text_takes_longer_in_long_lines(text: str) -> None:
    """The longest line that is kept is eight times as long as the other: quadratic time is eight times as long for as
    many characters.
    """
    pattern = re.compile(text, re.MULTILINE)
    for unit in dict.fromkeys(near_misses(text)):
        if not pattern.search(unit * 3):
            short, long = seconds(pattern, unit, LONGEST_LINE // 8), seconds(pattern, unit, LONGEST_LINE)
            assert long < 4 * short + SLACK, unit


LOGS = {
    "blank lines": b"\n",
    "short lines": b"a\n",
    "spaces": b" ",
    "lines of spaces": b"   \n",
    "lines of unicode spaces": b"\xc2\xa0\n",
    "one line": b"a",
    "colours": b"\x1b[31m",
    "unfinished titles": b"\x1b]",
    "unfinished colours": b"\x1b[1;",
    "a progress bar": b"50%|####\r",
    "null characters": b"\0",
    "binary": bytes(range(256)),
    "tracebacks": b"Traceback (most recent call last):\n",
    "JSON that ends early": b'{"log":"' + b"[" * 500 + b"\n",
    "deep JSON": b'{"a":' + b"[" * 2000 + b"\n",
    "time stamps": b"2026-11-20T15:00:00.123Z " * 4 + b"x\n",
    "names of containers": b"a/" * 3000 + b"\n",
    "workers of Ray": b"(" + b"pid=1" * 1500 + b"\n",
    "unfinished workers of Ray": b"(" + b"a" * 7000 + b"\n",
    "UTF-16": b"\xff\xfe" + "GPU is lost\n".encode("utf-16-le"),
    "an emoji in each line": "\N{FIRE} loss 0.1\n".encode(),
    "a gzip file": b"\x1f\x8b\x08\x00" + bytes(range(1, 250)),
}


@pytest.mark.parametrize("unit", LOGS.values(), ids=LOGS)
def test_time_and_memory_grow_with_the_log(unit: bytes) -> None:
    def log(size: int) -> bytes:
        return (unit * (size // len(unit) + 1))[:size]

    def cost(data: bytes) -> tuple[float, int]:
        start = time.process_time()
        parsed = parse_log(data)
        recognise(parsed)
        list(failures(parsed, ()))
        spent = time.process_time() - start
        tracemalloc.start()
        parse_log(data[: 1 << 17])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return spent, peak

    spent, peak = cost(log(1 << 18))
    twice, _ = cost(log(1 << 19))
    assert twice < 4 * spent + 0.2
    assert peak < 20 * (1 << 17)


def test_lines_are_bounded_and_the_rest_is_reported_as_missing() -> None:
    log = parse_log(b"a\n" * MOST_LINES + b"GPU is lost.\n")
    assert log.cut
    assert recognise(log) == ()
    assert not parse_log(b"a\n" * MOST_LINES).cut


def test_what_follows_blank_lines_is_found_with_its_number() -> None:
    (found,) = recognise(parse_log(b"\n" * 3_000_000 + b" \0\r\n\tGPU is lost.\n"))
    assert (found.line, found.quote) == (3_000_002, "GPU is lost.")
