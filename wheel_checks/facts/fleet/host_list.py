"""Sets of hosts as Slurm and ClusterShell write them: ``rack[017-018]-tray[00-17],login1``.

Slurm: "Hostlist expressions" of slurm.conf(5); ClusterShell: nodeset(1). Their libraries were considered: both include
more than is needed (groups, set operations, YAML), and neither bounds the size of an expansion.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from wheel_checks.errors import UsageError
from wheel_checks.phrases import and_more, summarised

MOST_HOSTS = 100_000
_LONGEST = 1_000_000  # characters of an expression
_FEW = 2  # that are named one by one
_LONGEST_SHOWN = 300  # characters of a set of hosts in a sentence
_MOST_NUMBERS = 6  # in one name that are folded; the others stay as they are
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")  # of a host, as RFC 1123 limits it, with the underscore
_RUN = re.compile(r"([0-9]{1,18})(?![0-9])")  # a longer number is text
_RANGE = re.compile(r"(?P<first>[0-9]{1,18})(?:-(?P<last>[0-9]{1,18})(?:/(?P<step>[1-9][0-9]{0,5}))?)?")
_EXPECTED = "names or ranges, such as rack[01-18]-tray[00-17],login1"
_OTHER_SYNTAX = {
    "@": "groups are not expanded; `nodeset -e @GROUP` does so",
    "!": "a difference of sets is not computed; `nodeset -e` does so",
    "&": "an intersection of sets is not computed; `nodeset -e` does so",
    "^": "a symmetric difference is not computed; `nodeset -e` does so",
    "%": "wildcards are not expanded",
    "*": "wildcards are not expanded",
}


def expand(expression: str) -> list[str]:
    """The names of an expression, without duplicates. Raises UsageError if invalid, or for over ``MOST_HOSTS``."""
    shown = f"{expression[:80]!r}{'...' * (len(expression) > 80)}"
    if len(expression) > _LONGEST:
        raise UsageError(f"{shown} has more than {_LONGEST:,} characters", expected=_EXPECTED)
    names: dict[str, None] = {}
    for word in split(expression):
        names.update(dict.fromkeys(_names(word, MOST_HOSTS - len(names), shown)))
    return list(names)


def split(expression: str) -> list[str]:
    """The parts between commas and white space outside of brackets. Raises UsageError if empty or unbalanced."""
    parts, start, depth = [], 0, 0
    for position, character in enumerate(expression):
        if character in "[]":
            depth += 1 if character == "[" else -1
            if depth not in {0, 1}:
                break
        elif depth == 0 and character in ", \t\n":
            parts.append((expression[start:position], character))
            start = position + 1
    if depth:
        raise UsageError(f"{expression[:80]!r} has unbalanced brackets", expected=_EXPECTED)
    parts.append((expression[start:], ","))
    if not expression.strip() or any(not part and end == "," for part, end in parts):
        raise UsageError(f"{expression[:80]!r} contains an empty value", expected=_EXPECTED)
    return [part for part, _ in parts if part]


def folded(names: Collection[str], most: int) -> str:
    """As :func:`fold`, but at most ``most`` parts and a line or two: ``rack[01-02]-tray7, node1 and 12 more``."""
    if len(names) <= _FEW:
        return ", ".join(names)
    every = parts_of(names)
    shown: list[str] = []
    for part in every[:most]:
        if shown and len(", ".join((*shown, part))) > _LONGEST_SHOWN:
            break
        shown.append(part)
    if len(shown) == 1 and len(shown[0]) > _LONGEST_SHOWN:  # one product of many small ranges
        return summarised(list(dict.fromkeys(names)), most)
    left = len(set(names)) - sum(map(_count, shown)) if len(shown) < len(every) else 0
    return ", ".join(shown) + and_more(left)


def parts_of(names: Iterable[str]) -> list[str]:
    """The parts of :func:`fold`, each a name or one with ranges, in order of their first names."""
    shapes: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for name in dict.fromkeys(names):
        text = _RUN.split(name)
        if len(text) > 2 * _MOST_NUMBERS + 1 or not _NAME.fullmatch(name):
            text = [name]
        shapes[tuple(text[::2])].append(tuple(text[1::2]))
    return [part for literals, found in shapes.items() for part in _folded(literals, found)]


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """A key that sorts node-2 before node-10."""
    return tuple((text, int(number or -1)) for text, number in re.findall(r"([^0-9]*)([0-9]{0,18})", name))


def _folded(literals: Sequence[str], numbers: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The parts for names with these texts between their numbers."""
    dimensions = len(literals) - 1
    places = range(dimensions)
    boxes = min((_boxes(numbers, order) for order in (places[::-1], places)), key=len)
    for box in boxes:
        pieces = [text for pair in itertools.zip_longest(literals, map(_ranges, box), fillvalue="") for text in pair]
        yield "".join(pieces)


def _boxes(numbers: Sequence[tuple[str, ...]], order: Sequence[int]) -> list[list[tuple[str, ...]]]:
    """Products of sets that make up these tuples: tuples that differ in one place are merged, place by place."""
    boxes: list[tuple[tuple[str, ...], ...]] = [tuple((text,) for text in one) for one in numbers]
    for place in order:
        groups: dict[tuple[tuple[str, ...], ...], dict[str, None]] = defaultdict(dict)
        for box in boxes:
            groups[(*box[:place], *box[place + 1 :])].update(dict.fromkeys(box[place]))
        boxes = [
            (*others[:place], tuple(sorted(found, key=lambda text: (int(text), text))), *others[place:])
            for others, found in groups.items()
        ]
    return [list(box) for box in boxes]


def _ranges(numbers: Sequence[str]) -> str:
    """``[00-17,20]`` for sorted numbers; one alone without brackets."""
    if len(numbers) == 1:
        return numbers[0]
    runs: list[list[str]] = []
    for text in numbers:
        # A range is printed with the width of its first number
        if runs and int(runs[-1][-1]) + 1 == int(text) and f"{int(text):0{len(runs[-1][0])}d}" == text:
            runs[-1].append(text)
        else:
            runs.append([text])
    return f"[{','.join(run[0] if len(run) == 1 else f'{run[0]}-{run[-1]}' for run in runs)}]"


def _count(part: str) -> int:
    """The number of names in a part of :func:`parts_of`."""
    if not re.fullmatch(r"[A-Za-z0-9._\[\],-]+", part):
        return 1
    count = 1
    for inside in re.findall(r"\[([0-9,-]+)\]", part):
        ends = (piece.partition("-") for piece in inside.split(","))
        count *= sum(int(last) - int(first) + 1 if dash else 1 for first, dash, last in ends)
    return count


def _names(word: str, left: int, shown: str) -> Iterator[str]:
    """The names of one part of an expression."""
    pieces = re.split(r"\[([^\]]*)\]", word)
    dimensions = [list(_numbers(inside, left, shown)) for inside in pieces[1::2]]
    count = 1
    for numbers in dimensions:
        count *= len(numbers)
    if count > left:
        raise UsageError(f"{shown} names more than {MOST_HOSTS:,} hosts", expected=f"at most {MOST_HOSTS:,}")
    for chosen in itertools.product(*dimensions):
        name = "".join(text for pair in itertools.zip_longest(pieces[::2], chosen, fillvalue="") for text in pair)
        if not _NAME.fullmatch(name):
            why = next((hint for sign, hint in _OTHER_SYNTAX.items() if sign in word), "")
            raise UsageError(f"{name[:80]!r} is not a host name", expected=_EXPECTED, hint=why)
        yield name


def _numbers(inside: str, left: int, shown: str) -> Iterator[str]:
    """The numbers of ``00-17,20``, with leading zeros if the first has them."""
    count = 0
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece.strip())
        if not match:
            raise UsageError(f"[{inside[:80]}] in {shown} is not a range", expected="one such as [00-17] or [1,4-8]")
        first, last = match["first"], match["last"] or match["first"]
        if int(last) < int(first):
            raise UsageError(f"the range {piece.strip()} in {shown} ends before it begins", expected=_EXPECTED)
        numbers = range(int(first), int(last) + 1, int(match["step"] or 1))
        count += len(numbers)
        if count > left:
            raise UsageError(f"{shown} names more than {MOST_HOSTS:,} hosts", expected=f"at most {MOST_HOSTS:,}")
        yield from (f"{number:0{len(first)}d}" for number in numbers)
