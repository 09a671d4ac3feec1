"""What a .gitignore says of a path (gitignore(5)): patterns with *, **, ?, [...], !, slashes anywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

LONGEST = 1 << 20  # bytes of a .gitignore


@dataclass(frozen=True, slots=True)
class Ignored:
    """The patterns of one file, last first; ``base`` is its folder, "" or with a slash at the end."""

    base: str
    patterns: tuple[tuple[re.Pattern[str], bool, bool], ...]  # what matches, whether negated, whether only folders

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
        with path.open("rb") as file:
            text = file.read(LONGEST).decode("utf-8", "replace")
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
        return re.compile(expression + _translated(line)), negated, only_folders
    except re.error:  # such as [z-a], which git does not match with anything either
        return None


def _translated(glob: str) -> str:
    found = ""
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at):
            found, at = found + r"(?:.*/)?", at + 3
        elif glob.startswith("**", at):
            found, at = found + r".*", at + 2
        elif glob[at] == "*":
            found, at = found + r"[^/]*", at + 1
        elif glob[at] == "?":
            found, at = found + r"[^/]", at + 1
        elif glob[at] == "[" and (end := glob.find("]", at + 2)) > 0:
            inner = glob[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            inner = "^" + inner[1:] if inner[:1] == "!" else inner
            found, at = found + f"[{inner}]", end + 1
        elif glob[at] == "\\" and at + 1 < len(glob):
            found, at = found + re.escape(glob[at + 1]), at + 2
        else:
            found, at = found + re.escape(glob[at]), at + 1
    return found
