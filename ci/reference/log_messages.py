"""The messages in logs that a rule of the doctor explains, from the regular expressions that find them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _parser as parser  # type: ignore[attr-defined]  # private: a script of ours, whose result is compared in CI
from typing import Any

from wheel_checks.data import load
from wheel_checks.rules.host.cause import rule_id

ANY = "..."  # parts that differ from log to log


def messages_of(rule: str) -> list[str]:
    """The messages of which this rule is a likely cause, each as one example of its expression."""
    entries = load("log_texts")["entry"]
    mine = [entry for entry in entries if rule in {entry.get("rule"), *map(rule_id, entry.get("catalogue", ()))}]
    found = (_example(text) for entry in mine for text in entry["texts"])
    return sorted({message for message in found if re.search(r"\w{4}", message)}, key=str.casefold)


def _example(expression: str) -> str:
    text = "".join(_parts(parser.parse(expression)))
    return re.sub(r"(?:\s*\.\.\.)+\s*", f" {ANY} ", re.sub(r"\s+", " ", text)).strip()


def _parts(tree: Iterable[Any]) -> Iterable[str]:
    """An example of a match: first alternatives, and ANY for open parts of an expression."""
    for operator, value in tree:
        match str(operator), value:
            case "LITERAL", code:
                yield chr(code)
            case "SUBPATTERN", (_, _, _, inner):
                yield from _parts(inner)
            case "ATOMIC_GROUP", inner:
                yield from _parts(inner)
            case "BRANCH", (_, (first, *_)):
                yield from _parts(first)
            case (("MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT"), (least, most, inner)):
                if most > 1:
                    yield ANY
                elif least:
                    yield from _parts(inner)
            case (("IN" | "ANY" | "NOT_LITERAL" | "CATEGORY"), _):
                yield ANY
            case _:  # places and conditions: no text
                pass
