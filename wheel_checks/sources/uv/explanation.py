"""Reads what uv says when it finds no solution: the essential sentences, which package requires what, which files do
not fit.

uv derives its explanation with PubGrub: "Because A and B, we can conclude that C. And because C and D, ...". The
premises are facts about packages, the conclusions only logic: premises are kept. The frame around it changed with uv's
versions (a box drawn around wrapped lines up to 0.9, "cause:" since); both are read.
"""

import re
from dataclasses import dataclass

from wheel_checks.phrases import and_more

_FRAME = re.compile(
    r"^[\s\u00d7\u2570\u2500\u25b6\u2502\u251c\u252c]*(?:error:|cause:)?\s*"
)  # a cross and box drawing characters
_NO_SOLUTION = re.compile(r"No solution found when resolving [^:]{0,80}:\s*")
_BECAUSE = re.compile(r"(?<!\S)(?:And because|Because) ")
_CONCLUSION = ", we can conclude that "
_PACKAGE = r"[\w.\[\],<>=!~*+-]+"
_DEMAND = re.compile(rf"(?<!\S)(?P<by>{_PACKAGE}|all versions of [\w.-]+) depends? on (?P<what>{_PACKAGE})")
_ASKED = re.compile(rf"\byou require (?P<what>{_PACKAGE})")
_UNUSABLE = re.compile(
    r"(?<!\S)(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:[\[<>=!~]\S*)? "
    r"(?:(?:has|have) no (?:usable wheels|wheels with a matching)|was not found in the package registry)"
)
_LONGEST = 50_000  # characters of an explanation that are read
_MOST_SENTENCES = 12


@dataclass(frozen=True, slots=True)
class Demand:
    """Who demands what: ``vllm==0.19.0`` and ``torch==2.10.0``; ``by`` is "" for what the user requested."""

    by: str
    what: str

    def __str__(self) -> str:
        return f"{self.by} depends on {self.what}" if self.by else f"you require {self.what}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why there is no solution.

    ``sentences`` are the premises of uv's derivation, ``hints`` what uv adds. ``unusable`` are the names of packages of
    which no file fits the target, or that no index knows.
    """

    sentences: tuple[str, ...]
    demands: tuple[Demand, ...] = ()
    unusable: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join(self.sentences)


def unwrapped(words: str) -> tuple[str, tuple[str, ...]]:
    """What uv said as one line, and its hints, each as one line; frames, wrapping and indentation are removed."""
    body: list[str] = []
    hints: list[list[str]] = []
    into: list[str] = body
    for line in words[:_LONGEST].splitlines():
        text = _FRAME.sub("", line).strip()
        if body and "cause:" in line and not body[-1].endswith(":"):
            body[-1] += ":"
        if text.startswith("hint:"):
            text = text.removeprefix("hint:").strip()
            into = []
            hints.append(into)
        if text.startswith("warning:"):
            continue
        if text:
            into.append(text)
    return " ".join(body), tuple(" ".join(parts) for parts in hints)


def explain(words: str) -> Explanation | None:
    """The explanation in uv's standard error, None when it says something else than that there is no solution."""
    text, hints = unwrapped(words)
    found = _NO_SOLUTION.search(text)
    if found is None:
        return None
    told = text[found.end() :]
    sentences = [part.partition(_CONCLUSION)[0].strip() for part in _BECAUSE.split(told) if part.strip()]
    facts = " ; ".join(sentences)
    demands = [Demand(m["by"], m["what"].rstrip(",.")) for m in _DEMAND.finditer(facts)]
    asked = [Demand("", m["what"].rstrip(",.")) for m in _ASKED.finditer(facts)]
    if more := and_more(len(sentences) - _MOST_SENTENCES, before="", grouping=""):
        sentences = [*sentences[:_MOST_SENTENCES], more]
    return Explanation(
        tuple(sentences),
        tuple(dict.fromkeys([*asked, *demands])),
        tuple(dict.fromkeys(m["name"] for m in _UNUSABLE.finditer(facts))),
        hints,
    )
