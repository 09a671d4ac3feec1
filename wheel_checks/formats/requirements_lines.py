"""The logical lines of a requirements file (pip's reference: "Requirements File Format").

Physical lines end where ``str.splitlines`` ends them, a backslash joins a line to the next, a comment line ends what
was joined, and a comment begins at a # after white space.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LEAD = re.compile(r"[ \t\r\n\v\f]*(?:\\(?=[\r\n])[ \t\r\n\v\f]*)*")
_VIA = re.compile(r"[ \t]*# via\b(.*)")
_VIA_MORE = re.compile(r"[ \t]*#   +\S")
_SETTING = re.compile(r"(--?[A-Za-z][A-Za-z-]*)(?:\s*=\s*|\s+|(?<=^-[rcefi]))(\S.*)?$")
COMMENT = re.compile(r"(?:^|(?<=\s))#")
OPTION = re.compile(r"\s-{1,2}[A-Za-z]")


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """A logical line: its ``text``, joined and without comment; its span, with all that goes when it is removed."""

    text: str
    start: int
    end: int
    at: int  # where the text begins in the file
    number: int


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """The logical lines that hold something, with the "# via" block under each."""
    physical = text.splitlines(keepends=True)
    offset, index = 0, 0
    while index < len(physical):
        start, first, parts = offset, index, list[str]()
        joined = True
        while joined and index < len(physical):
            body = physical[index].rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
            comment = body.lstrip().startswith("#")
            if comment and parts:
                break  # it ends what was joined, and stays
            joined = body.endswith("\\") and not comment
            parts.append(body.strip("\\") if joined else body)
            offset += len(physical[index])
            index += 1
        content = _uncommented("".join(parts))
        if not content:
            continue
        lead = _LEAD.match(text, start)
        number, at = first + 1, lead.end() if lead else start
        while index < len(physical) and (via := _VIA.match(physical[index])):
            more = not via[1].strip()
            offset += len(physical[index])
            index += 1
            while more and index < len(physical) and _VIA_MORE.match(physical[index]):
                offset += len(physical[index])
                index += 1
        yield LogicalLine(content, start, offset, at, number)


def _uncommented(line: str) -> str:
    match = COMMENT.search(line) if "#" in line else None
    return (line[: match.start()] if match else line).strip()


def setting(text: str) -> tuple[str, str]:
    """The option of a line that starts with a dash, and its value, "" when it has none."""
    match = _SETTING.match(text)
    return (match[1], (match[2] or "").strip().strip("\"'")) if match else (text.split(maxsplit=1)[0], "")


def split_options(text: str) -> tuple[str, str]:
    """A requirement, and the options after it."""
    match = OPTION.search(text) if "-" in text else None
    return (text[: match.start()].rstrip(), text[match.start() :]) if match else (text, "")
