"""Compare the frequency of our habits of wording with that in well-kept packages.

usage: python ci/plain_english.py [--lines]

Counts each habit of ``ci/plain_english.toml`` in 100,000 words of text for people: documentation, and the docstrings,
comments and messages of the code and its tests. ``--lines`` names each place. Code in backticks and between the braces
of an f-string does not count. A habit with ``explained = true`` is counted in docstrings and comments of code alone.
``identifiers`` lists words that no name in the product contains.
The exit code is 1 when a habit is more than ``TIMES`` as frequent as in the packages of the table, or a name contains
such a word, else 0.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".toml")
TIMES = 3
RARE = 0.2  # rate of a word that the packages do not have
FOLDERS = (
    "tools",
    "wheel_checks",
    "kernels_smoke",
    "docs",
    "tests",
    "ci",
    "benchmarks",
    "docker",
    "README.md",
    "CHANGELOG.md",
)
# Words of others: logs, requirements, and the texts that a table finds in them; and this table of habits.
FOREIGN = (
    "tests/data",
    "wheel_checks/data/log_failures",
    "wheel_checks/data/log_texts",
    "ci/plain_english",
    "ci/kernel_faults",
    "tests/ci/test_plain_english.py",
)
PRODUCT = ("tools", "wheel_checks", "kernels_smoke")
_PART = re.compile(r"[a-z]+")
_CODE = re.compile(r"``[^`]*``|`[^`\n]*`")
_FORMATTED = re.compile(r"^[rRbBuU]*[fF]")
_WORD = re.compile(r"[A-Za-z][A-Za-z']*")
Line = tuple[str, int, str, bool]  # the last: of a docstring or a comment of code


def main() -> int:
    """Count, print a table, and compare."""
    parser = argparse.ArgumentParser(description="Count the habits of ci/plain_english.toml in our text.")
    parser.add_argument("--lines", action="store_true", help="name each place")
    arguments = parser.parse_args()
    everything = list(text())
    explained = [line for line in everything if line[3]]
    words = {id(lines): sum(len(_WORD.findall(line)) for _, _, line, _ in lines) for lines in (everything, explained)}
    print(
        f"{words[id(everything)]:,} words, {words[id(explained)]:,} of docstrings and comments; occurrences in 100,000"
    )
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    named = list(identifiers(frozenset(table["identifiers"]["words"]), table["identifiers"]["kept"]))
    print("".join(f"  {place}: rename it\n" for place in named), end="")
    failed = len(named)
    for habit in table["habit"]:
        pattern = re.compile(habit["pattern"])  # case counts: None is a value of Python
        lines = explained if habit.get("explained") else everything
        found = [(path, number, line) for path, number, line, _ in lines if pattern.search(line)]
        rate, limit = (
            100_000 * sum(len(pattern.findall(line)) for *_, line in found) / words[id(lines)],
            most(habit["peers"]),
        )
        failed += rate > limit
        verdict = "" if rate <= limit else f"   too many; write: {habit['write']}"
        print(f"  {habit['name']:<12} {rate:6.1f}   at most {limit:4.1f}, peers {habit['peers']:.1f}{verdict}")
        if arguments.lines:
            print("".join(f"    {path}:{number}: {line.strip()}\n" for path, number, line in found), end="")
    return int(failed > 0)


def most(peers: float) -> float:
    """The allowed rate, from the rate of the peers."""
    return TIMES * max(peers, RARE)


def identifiers(words: frozenset[str], kept: Mapping[str, str]) -> Iterator[str]:
    """The places in the product that give something a name with one of ``words``; ``kept`` are names of reports."""
    for path in sorted(path for package in PRODUCT for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node, "name", None) or getattr(node, "arg", None)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if isinstance(name, str) and name not in kept and not words.isdisjoint(_PART.findall(name.lower())):
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {name}"


def text() -> Iterator[Line]:
    """The lines that people read: file, number, and the line without code."""
    for name in FOLDERS:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            inside = path.relative_to(ROOT).as_posix()
            if path.suffix not in (".md", ".py", ".toml") or inside.startswith(FOREIGN) or "/." in inside:
                continue
            written = path.read_text(encoding="utf-8")
            plain = ((number, line, False) for number, line in enumerate(written.splitlines(), 1))
            for number, line, explained in prose(written) if path.suffix == ".py" else plain:
                yield inside, number, _CODE.sub("", line), explained


def prose(source: str) -> Iterator[tuple[int, str, bool]]:
    """The lines of the strings and comments of Python code: number, line, and True in a docstring or a comment."""
    middle = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)  # since Python 3.12 an f-string is several tokens
    first = True  # in a statement
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT, middle):
            string = token.string
            if _FORMATTED.match(string) and token.type == tokenize.STRING:
                string = _without_expressions(string)
            explained = first or token.type == tokenize.COMMENT
            yield from ((number, line, explained) for number, line in enumerate(string.splitlines(), token.start[0]))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            first = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def _without_expressions(string: str) -> str:
    """An f-string without the expressions between its braces, except their line ends."""
    depth, kept = 0, []
    for character in string.replace("{{", "").replace("}}", ""):
        depth += character == "{"
        kept.append(character if depth == 0 or character == "\n" else "")
        depth -= character == "}" and depth > 0
    return "".join(kept)


if __name__ == "__main__":
    sys.exit(main())
