"""Match paths against a .gitignore (gitignore(5)): patterns with *, **, ?, [...], !, and slashes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.sources.regular_file import read_start

LONGEST = 1 << 20  # bytes of a .gitignore
_PART = re.compile(
    r"(?P<folders>(?:^|(?<=/))\*\*/)|(?P<all>(?:^|(?<=/))\*\*$)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\[:\w+:\]|\\.|[^]\\])*)\]|\\?(?P<plain>.)"
)
_WILD = {"folders": "(?:.*/)?", "all": ".*", "stars": "[^/]*", "one": "[^/]"}
_MEMBER = re.compile(r"\[:(\w+):\]|\\(.)|[\[^&~|]")  # of a set: characters with another meaning in re
_CLASSES = {"alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "digit": "0-9", "lower": "a-z", "space": r"\s", "upper": "A-Z"}


@dataclass(frozen=True, slots=True)
class Ignored:
    """The patterns of one file, last first; ``base`` is its folder, "" or with a slash at the end."""

    base: str
    patterns: tuple[tuple[re.Pattern[str], bool, bool], ...]  # pattern, negated, folders only

    def opinion(self, path: str, *, is_folder: bool) -> bool | None:
        """True when ignored, False when not after all (!), None when no pattern matches."""
        inside = path[len(self.base) :]
        for pattern, negated, only_folders in self.patterns:
            if (is_folder or not only_folders) and pattern.fullmatch(inside):
                return not negated
        return None


def read_ignored(path: Path, base: str) -> Ignored:
    """The patterns of a .gitignore; none when it cannot be read."""
    try:
        text = read_start(path, LONGEST).decode("utf-8", "replace")
    except OSError:
        return Ignored(base, ())
    patterns = [pattern for line in text.splitlines() if (pattern := _pattern(line))]
    return Ignored(base, tuple(reversed(patterns)))


def _pattern(line: str) -> tuple[re.Pattern[str], bool, bool] | None:
    line = re.sub(r"(?<!\\)[ \t]+$", "", line)
    if not line or line.startswith("#"):
        return None
    negated = line.startswith("!")
    line = line[1:] if negated else line
    only_folders = line.endswith("/")
    line = line.rstrip("/")
    if not line:
        return None
    anchored = "/" in line
    line = line.lstrip("/")
    expression = "" if anchored else r"(?:.*/)?"
    try:
        return re.compile(expression + _PART.sub(_translated, line)), negated, only_folders
    except re.error:  # such as [z-a], which git does not match with anything either
        return None


def _translated(part: re.Match[str]) -> str:
    if part.lastgroup in _WILD:
        return _WILD[part.lastgroup]
    if part.lastgroup == "plain":
        return re.escape(part["plain"])
    members = _MEMBER.sub(lambda m: _CLASSES.get(m[1], "") if m[1] else re.escape(m[2] or m[0]), part["set"])
    return f"(?!/)[{'^' * bool(part['not'])}{members}]"
