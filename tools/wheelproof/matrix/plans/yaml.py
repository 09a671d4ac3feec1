"""Write plain data as readable YAML, in a subset that every reader parses in the same way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Printable ASCII; a colon before a space and a # mean more, and commas and brackets do in a list of one line
_PLAIN = re.compile(r"[A-Za-z_./$](?:[ -\"$-9;-~]|:(?! |$))*(?<! )")
_IN_LIST = re.compile(r"[^\[\]{},]*")
_SHORT = 40  # characters of a value that is with others in one line
# Text that YAML 1.1 or 1.2 does not read as a string
_MEANS_MORE = re.compile(r"(?i)(y|n|yes|no|on|off|true|false|null|~|[.]inf|[.]nan|[-+.0-9][0-9_.e:x-]*)")


class Commented(str):
    """Text with a comment after it: ``Commented("value", "comment")``."""

    __slots__ = ("comment",)
    comment: str

    def __new__(cls, value: str, comment: str) -> Commented:
        """The text with its comment."""
        made = super().__new__(cls, value)
        made.comment = comment
        return made


def to_yaml(value: Any) -> str:
    """``value``, a mapping or a list, as a YAML document. Text of several lines is a literal block."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entry(f"{_scalar(key)}:", item)
    else:
        for item in value:
            if isinstance(item, Mapping) and item:
                first, *others = _lines(item)
                yield f"- {first}"
                yield from (f"  {line}" for line in others)
            else:
                yield from _entry("-", item)


def _entry(head: str, item: Any) -> Iterator[str]:
    if isinstance(item, str) and "\n" in item:
        yield f"{head} |{'' if item.endswith(chr(10)) else '-'}"
        yield from (f"  {line}" if line else "" for line in item.rstrip("\n").split("\n"))
    elif (isinstance(item, Mapping) and item) or (_is_list(item) and not all(map(_is_short, item))):
        yield head
        yield from (f"  {line}" for line in _lines(item))
    elif _is_list(item):
        yield f"{head} [{', '.join(_scalar(each, in_list=True) for each in item)}]"
    else:
        comment = f" # {item.comment}" if isinstance(item, Commented) else ""
        yield f"{head} {_scalar(item)}{comment}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_short(value: Any) -> bool:
    """Whether it fits into one line with others: text of several lines is longer."""
    return (
        not isinstance(value, Mapping) and not _is_list(value) and len(str(value)) <= _SHORT and "\n" not in str(value)
    )


def _scalar(value: Any, *, in_list: bool = False) -> str:
    if not isinstance(value, str):
        return "{}" if isinstance(value, Mapping) else json.dumps(value)
    plain = _PLAIN.fullmatch(value) and not _MEANS_MORE.fullmatch(value)
    if plain and not (in_list and not _IN_LIST.fullmatch(value)):
        return value
    if '"' in value and "'" not in value and value.isascii() and value.isprintable():
        return f"'{value}'"
    return json.dumps(value)
