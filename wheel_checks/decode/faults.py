"""What is wrong with a document: each fault with its place, and the error that says them."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.phrases import abbreviated

MOST_FAULTS = 20  # of one document
LARGEST_NUMBER = 1 << 64  # beyond the counters and sizes of any host
_BARE = re.compile(r"[\w-]{1,80}")

Path = tuple[str | int, ...]


class Fault(NamedTuple):
    """One fault: where it is, what is there, what was expected."""

    path: Path
    what: str
    expected: str = ""


def place_of(path: Path) -> str:
    """A path for people: ``cells[3].python``; keys that need it are quoted."""
    parts = (f"[{p}]" if isinstance(p, int) else f".{p if _BARE.fullmatch(p) else _text_shown(p)}" for p in path)
    return "".join(parts).removeprefix(".")


class DecodeError(FormatError):
    """A document has other values than the dataclasses allow; ``faults`` are the first of them."""

    def __init__(self, faults: Iterable[Fault], source: str = "", place: Callable[[Path], str] = place_of) -> None:
        self.faults = tuple(faults)[:MOST_FAULTS]
        prefix = f"{source}: " if source else ""
        said = [f"{place(f.path)} {f.what}" if f.path else f.what for f in self.faults]
        if len(said) == 1:
            root = "" if self.faults[0].path else f"{source or 'the document'} "
            super().__init__(f"{root or prefix}{said[0]}", expected=self.faults[0].expected)
            return
        listed = "; ".join(
            f"{text}; expected {f.expected}" if f.expected else text for f, text in zip(self.faults, said, strict=True)
        )
        count = f"the first {MOST_FAULTS}" if len(said) == MOST_FAULTS else str(len(said))
        super().__init__(f"{prefix}{count} faults: {listed}")

    def under(self, key: str | int) -> Iterable[Fault]:
        """The faults, for the object or list that has the value under ``key``."""
        return (Fault((key, *fault.path), fault.what, fault.expected) for fault in self.faults)


def wrong(value: Any, expected: str, an_object: str) -> DecodeError:
    """The error about a value that is something else than ``expected``; ``an_object`` is what the format calls one."""
    return refused(f"is {_shown(value, an_object)}", expected)


def refused(what: str, expected: str) -> DecodeError:
    """The error about one value."""
    return DecodeError([Fault((), what, expected)])


def _shown(value: Any, an_object: str) -> str:
    """A value as the document has it, at most 80 characters."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return _text_shown(value)
    if isinstance(value, dict | list) and value:
        return an_object if isinstance(value, dict) else "a list"
    too_long = isinstance(value, int) and not -LARGEST_NUMBER < value < LARGEST_NUMBER
    return "a number with many digits" if too_long else str(value)


def _text_shown(text: str) -> str:
    return repr(abbreviated(text))
