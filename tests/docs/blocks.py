"""The fenced blocks of a page, the commands in them, and whether an output equals the shown one.

A block of language ``console`` is run: lines that start with ``$ `` are commands, ``> `` continues one, and the rest is
the output. In it ``...`` stands for any text within a line, and alone on a line for any number of lines; seconds, and
bytes read from the network, may differ. A comment before the block says more:

    <!-- lane: online -->             it runs where the tests of that marker run (``tests/conftest.py``)
    <!-- not run: needs a GPU -->     it is not run, and why

A block with a title is a file, which is present when the commands of its page run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r'(?P<fence>`{3,})\s*(?P<language>[\w-]*)(?:\s+title="(?P<title>[^"]+)")?\s*$')
NOTE = re.compile(r"<!-- (?P<kind>lane|not run): (?P<text>.+) -->$")
COMMANDS = {"console", "sh", "bash", "shell", "fish", "zsh"}  # languages in which a reader finds something to type
VARYING = [
    (re.compile(r"\d+(?:\\\.\d+)?\\ s\b"), r"[\\d.]+ s"),
    (
        re.compile(r"\d+(?:\\\.\d+)?\\ [kMG]?B\\ read\\ in\\ \d+\\ requests?"),
        r"[\\d.]+ [kMG]?B read in [\\d,]+ requests?",
    ),
]


@dataclass(frozen=True)
class Command:
    """A typed command, and the shown output; ``expected`` is empty without one."""

    text: str
    expected: str


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``lane`` is "" without requirements, ``reason`` says why it is not run."""

    line: int
    language: str
    title: str
    text: str
    lane: str = ""
    reason: str = ""

    @property
    def commands(self) -> list[Command]:
        """The commands of a console block, in order."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)
        return [_command(part) for part in parts[1:]]


def _command(text: str) -> Command:
    first, *rest = text.splitlines()
    typed = [first]
    while rest and rest[0].startswith("> "):
        typed.append(rest.pop(0)[2:])
    return Command("\n".join(typed), "\n".join(rest).strip("\n"))


def read_blocks(path: Path) -> list[Block]:
    """The fenced blocks of a Markdown page. Raises ValueError for an unclosed block."""
    blocks = []
    lines = path.read_text(encoding="utf-8").splitlines()
    note, number = "", 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if opening is None:
            note = lines[number] or note
            number += 1
            continue
        end = lines.index(opening["fence"], number + 1)
        says = NOTE.match(note)
        lane, reason = (says["text"] if says and says["kind"] == kind else "" for kind in ("lane", "not run"))
        text = "\n".join(lines[number + 1 : end]) + "\n"
        blocks.append(Block(number + 1, opening["language"], opening["title"] or "", text, lane, reason))
        note, number = "", end + 1
    return blocks


def is_shown(expected: str, output: str) -> bool:
    """Whether a page that shows ``expected`` is true of ``output``."""
    pattern = ""
    for line in expected.splitlines():
        pattern += r"(?:.*\n)*?" if line.strip() == "..." else f"{_line_pattern(line.rstrip())}[ ]*\\n"
    return re.fullmatch(pattern, f"{output.strip(chr(10))}\n") is not None


def _line_pattern(line: str) -> str:
    pattern = r".*".join(map(re.escape, line.split("...")))
    for varying, any_value in VARYING:
        pattern = varying.sub(any_value, pattern)
    return pattern
