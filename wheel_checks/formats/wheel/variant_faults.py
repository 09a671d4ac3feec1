"""What is wrong with a document of variant metadata, collected while it is read."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from wheel_checks.data import load
from wheel_checks.errors import FormatError
from wheel_checks.phrases import abbreviated

MOST_FAULTS = 50  # said of one document; the others are counted


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, as a sentence.

    ``kind`` is "schema", "shape", "duplicate", "label", "name", "null", "order", "priorities" or "provider".
    """

    kind: str
    message: str


class Faults:
    """The faults of one document. ``strict`` is False when its revision is unknown: names of keys are then free."""

    def __init__(self) -> None:
        self.strict = True
        self._found: list[Fault] = []
        self._more = 0

    @property
    def found(self) -> tuple[Fault, ...]:
        """The faults in their order; the last one counts those beyond ``MOST_FAULTS``."""
        more = [Fault("shape", f"and {self._more:,} more faults")] if self._more else []
        return (*self._found, *more)

    def add(self, kind: str, message: str) -> None:
        """Note a fault."""
        if len(self._found) < MOST_FAULTS:
            self._found.append(Fault(kind, message))
        else:
            self._more += 1

    def name(self, kind: str, text: str, where: str) -> None:
        """Note a fault when ``text`` is not a name of this kind: label, namespace, feature or value.

        Raises FormatError when it is longer than our bound: versions and other numbers are read of names.
        """
        longest = load("variants")["bounds"]["text"]
        if len(text) > longest:
            what = f"{where} has a {kind} of {len(text):,} characters"
            raise FormatError(what, expected=f"at most {longest:,}")
        pattern = name_pattern(kind)
        if not pattern.fullmatch(text):
            fault = "label" if kind == "label" else "name"
            self.add(fault, f"{where}: the {kind} {shown(text)} does not match {pattern.pattern}")

    def unknown_keys(self, where: str, table: Mapping[str, Any], allowed: Container[str]) -> None:
        """Note keys that the revision does not know; reference tools refuse the document for one."""
        unknown = [key for key in table if key not in allowed]
        if unknown and self.strict:
            self.add("shape", f"{where} has {shown(', '.join(unknown))}, which its revision does not define")


@cache
def name_pattern(kind: str) -> re.Pattern[str]:
    """What a label, a namespace, a feature or a value must match as a whole."""
    return re.compile(load("variants")["names"][kind], re.ASCII)


def mapping_of(
    value: object, where: str, faults: Faults, *, required: bool = False, nonempty: bool = False
) -> Mapping[str, Any]:
    """``value`` when it is a JSON object, else an empty one and a fault."""
    if value is None and required:
        faults.add("shape", f"{where} is missing")
        return {}
    if not isinstance(value, dict):
        faults.add("shape", f"{where} is {shown(value)}; expected an object")
        return {}
    if nonempty and not value:
        faults.add("shape", f"{where} is empty")
    return value


def texts_of(value: object, where: str, kind: str, faults: Faults, *, may_be_empty: bool = False) -> tuple[str, ...]:
    """``value`` when it is a list of names of this kind, each once; what it holds else is a fault and is omitted."""
    if not isinstance(value, list):
        faults.add("shape", f"{where} is {shown(value)}; expected a list of strings")
        return ()
    texts = tuple(text for text in value if isinstance(text, str))
    if len(texts) != len(value):
        faults.add("shape", f"{where} contains values that are not strings")
    if not value and not may_be_empty:
        faults.add("shape", f"{where} is empty")
    for text in texts:
        faults.name(kind, text, where)
    unique = tuple(dict.fromkeys(texts))
    if len(unique) != len(texts):
        faults.add("duplicate", f"{where} has a {kind} more than once")
    return unique


def shown(value: object) -> str:
    """A value for a message: quoted, at most 100 characters; what is not a string by its JSON type."""
    if isinstance(value, str):
        return repr(abbreviated(value, 100))
    return {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}.get(type(value), "a number")
