"""Lists of installed packages in a log: of ``pip list``, ``pip freeze``, ``uv pip list``, ``conda list``, collect_env.

Only a list that has torch is read, and of it only what the rules ask for. A requirements file is not a list.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from wheel_checks.facts.host.log.facts import Log

MOST_LISTS = 20  # of more the last ones count
MOST_ROWS = 2000  # of a list, on each side of torch
_SORTED_ROWS = 10  # from which on rows in the order of the alphabet are the output of a command

KNOWN = frozenset({"torch", "pytorch", "torchvision", "torchaudio", "numpy"})
_TORCH = re.compile(
    r"""^(?:\[(?:pip3?|conda)\]\ )?(?:
        (?:torch|pytorch)(?:\ +|==)\d[\w.+!]{0,40}(?:\ +[\w.:/+-]{1,80}){0,3}$
      | (?:torch|pytorch)(?:\.__version__)?\ ?[:=]\ ?\d[\w.+!]{0,40}$
    )""",
    re.MULTILINE | re.VERBOSE,
)
_SHOW = re.compile(r"^Name: torch\nVersion: (?P<version>\d[\w.+!]{0,40})$", re.MULTILINE)  # pip show
_ROW = re.compile(
    r"""(?P<of>\[(?:pip3?|conda)\]\ )?(?P<name>[A-Za-z0-9_][\w.-]{0,80})
    (?P<between>\ +|==|\.__version__\ ?=\ ?|\ ?[:=]\ ?)
    (?P<version>\d[\w.+!]{0,40})(?:\ +(?P<build>[\w.+-]{1,60}))?(?:\ +[\w.:/+-]{1,80}){0,2}""",
    re.VERBOSE,
)
_COMMANDS = re.compile(r"\bpip3? +(?:list|freeze|show)\b|\buv pip +(?:list|freeze)\b|\bconda +list\b|^Package +Version")
_FILES = re.compile(r"\b(?:cat|COPY|ADD)\b|requirements\S*\.txt|\.lock\b|pyproject|constraint|\+\+\+ |--hash|# via")


@dataclass(frozen=True, slots=True)
class PackageList:
    """``packages`` maps a name to its version and to the position of its row in the text of the log; ``start`` is the
    position of the first row. ``conda`` has the build string of conda's pytorch.
    """

    start: int
    packages: Mapping[str, tuple[str, int]]
    conda: Mapping[str, str]


def package_lists(log: Log) -> list[PackageList]:
    """The lists with a torch, in the order of the log."""
    found: dict[int, PackageList] = {}
    for match in deque(_SHOW.finditer(log.text), maxlen=MOST_LISTS):
        found[match.start()] = PackageList(match.start(), {"torch": (match["version"], match.start("version"))}, {})
    positions = deque((match.start() for match in _TORCH.finditer(log.text)), maxlen=MOST_LISTS)
    for position in positions:
        one = _list_around(log.text, position)
        if one is not None:
            found[one.start] = one
    return sorted(found.values(), key=lambda one: one.start)


def _list_around(text: str, position: int) -> PackageList | None:
    """The rows of one kind before and after this one; None for what may be a requirements file."""
    own = _row(text, position)
    if own is None:
        return None
    rows = [(position, own)]
    start = position
    while start > 0 and len(rows) < MOST_ROWS:
        before = text.rfind("\n", 0, start - 1) + 1
        row = _row(text, before)
        if row is None or _kind(row) != _kind(own):
            break
        rows.insert(0, (before, row))
        start = before
    end = text.find("\n", position) + 1
    while 0 < end < len(text) and len(rows) < 2 * MOST_ROWS:
        row = _row(text, end)
        if row is None or _kind(row) != _kind(own):
            break
        rows.append((end, row))
        end = text.find("\n", end) + 1
    if _kind(own) == "==" and not _was_printed(text, start, [row["name"] for _, row in rows]):
        return None
    packages = {row["name"].lower(): (row["version"], where) for where, row in rows if row["name"].lower() in KNOWN}
    conda = {
        row["name"]: row["build"]
        for _, row in rows
        if row["name"] == "pytorch" and row["build"] and re.search(r"_h?[0-9a-f]{5,}|_\d+$|^py\d", row["build"])
    }
    return PackageList(start, packages, conda)


def _row(text: str, start: int) -> re.Match[str] | None:
    end = text.find("\n", start)
    return _ROW.fullmatch(text, start, end if end >= 0 else len(text))


def _kind(row: re.Match[str]) -> str:
    """Rows of one list have the same mark, and the same between name and version."""
    return row["of"] or row["between"].strip()[:2] or " "


def _was_printed(text: str, start: int, names: list[str]) -> bool:
    """Whether rows with == are the output of a command, and not a file of what is to be installed."""
    before = text[max(0, start - 600) : start].splitlines()[-3:]
    if any(_FILES.search(line) for line in before):
        return False
    if any(_COMMANDS.search(line) for line in before):
        return True
    lower = [name.lower().replace("_", "-") for name in names]
    return len(names) >= _SORTED_ROWS and lower == sorted(lower)
