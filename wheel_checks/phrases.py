"""Counts, lists, sizes and durations in words, as every message, headline and report writes them."""

from collections.abc import Collection, Sequence
from itertools import islice

LONGEST = 2000
"""The longest single string, in characters, that a format with a size limit repeats."""


def plural(count: int, noun: str, *, grouping: str = ",") -> str:
    """``1 wheel``, ``2 wheels``, ``12,345 members``; ``grouping`` "" leaves the digits together."""
    return f"{count:{grouping}} {noun}" + ("" if count == 1 else "s")


def joined(words: Collection[str]) -> str:
    """``3.11``, ``3.11 and 3.12``, ``3.11, 3.12 and 3.13t``; "" for no words."""
    *head, last = words or [""]
    return f"{', '.join(head)} and {last}" if head else last


def summarised(words: Collection[str], most: int, *, separator: str = ", ", grouping: str = ",") -> str:
    """The first ``most`` words, and how many are omitted: ``a, b and 3 more``."""
    return separator.join(islice(words, most)) + and_more(len(words) - most, grouping=grouping)


def and_more(count: int, *, before: str = " ", grouping: str = ",") -> str:
    """What follows a list from which ``count`` words are omitted: `` and 3 more``; "" when none are."""
    return f"{before}and {count:{grouping}} more" if count > 0 else ""


def and_so_on(words: Sequence[str], most: int) -> str:
    """The first ``most`` words, and dots when there are others: ``a, b, ...``."""
    return ", ".join([*words[:most], *["..."] * (len(words) > most)])


def shortened(text: str, limit: int = LONGEST) -> str:
    """``text``, or its first ``limit`` characters and how many were omitted."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit} more characters]"


def abbreviated(text: str, limit: int = 80) -> str:
    """``text``, or its first ``limit`` characters and dots."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def human_bytes(count: int) -> str:
    """A size in decimal units, as package indexes print it: 0 bytes, 999 bytes, 1.2 MB, 419.7 MB, 2.1 GB."""
    if count < 1000:
        return plural(count, "byte")
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:,.1f} TB"


def human_seconds(seconds: float) -> str:
    """A duration with as many digits as are of use: 0.04 s, 3.2 s, 75 s."""
    digits = 2 if seconds < 1 else 1 if seconds < 60 else 0
    return f"{seconds:.{digits}f} s"


def human_left(seconds: float) -> str:
    """An estimate of a duration, no finer than it is known: 5 s, 40 s, 3 min."""
    return f"{max(-(-seconds // 5), 1) * 5:.0f} s" if seconds <= 90 else f"{seconds / 60:.0f} min"
