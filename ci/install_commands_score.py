"""Print recall and precision of the install commands that `pins check` finds in files of real repositories.

tests/data/install-commands/labels.json has the relevant lines of these files: each install command, similar lines that
install nothing, and their context (variables, fences, keys of YAML); all other lines are empty, so that line numbers
match the repository at the named commit. Each command was labelled by hand: its line, and the projects that it names. A
command counts as found if one is reported at its line with these names. Exits 1 below 98 % of either.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

from wheelproof.pins.documents.reading import kind_of, read_source
from wheelproof.pins.model import Source

LABELS = Path(__file__).resolve().parents[1] / "tests" / "data" / "install-commands" / "labels.json"
GOAL = 0.98


def text_of(entry: dict[str, Any]) -> str:
    """The text of a file as the labels have it: a text, or lines by number."""
    if "text" in entry:
        return str(entry["text"])
    lines = {int(number): line for number, line in entry["lines"].items()}
    return "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1)) + "\n"


def found_in(entry: dict[str, Any]) -> list[tuple[int, tuple[str, ...]]]:
    """Line and names of each command that is found in a file."""
    path = Path(PurePosixPath(entry["path"]))
    text = text_of(entry)
    kind = kind_of(path, named=False)
    document = read_source(Source(path, text.encode(), text), "pipeline" if kind == "yaml" else kind)
    return [(command.place.line, tuple(sorted(command.names))) for command in document.commands]


def score(entries: list[dict[str, Any]], *, torch: bool = False) -> tuple[int, int, int, list[str]]:
    """The numbers of right, labelled and found commands, and the errors; with ``torch`` only for commands that name
    torch.
    """
    right = labelled = found = 0
    wrong: list[str] = []
    for entry in entries:
        wanted = Counter((line, tuple(sorted(names))) for line, names in entry["commands"])
        actual = Counter(found_in(entry))
        if torch:
            wanted, actual = (Counter({k: n for k, n in c.items() if "torch" in k[1]}) for c in (wanted, actual))
        right += (wanted & actual).total()
        labelled += wanted.total()
        found += actual.total()
        place = f"{entry['repository']} {entry['path']}"
        wrong += [f"{place}:{line}: missed {', '.join(names) or 'a command'}" for line, names in wanted - actual]
        wrong += [f"{place}:{line}: not labelled {', '.join(names) or 'a command'}" for line, names in actual - wanted]
    return right, labelled, found, wrong


def main() -> int:
    """Print both scores, and each difference."""
    entries = json.loads(LABELS.read_text(encoding="utf-8"))
    status = 0
    for title, torch in (("all commands", False), ("commands that name torch", True)):
        right, labelled, found, wrong = score(entries, torch=torch)
        recall, precision = right / labelled, right / found
        print(f"{title}: {right} right of {labelled} labelled and {found} found: ", end="")
        print(f"recall {recall:.1%}, precision {precision:.1%}")
        for line in wrong:
            print(f"  {line}")
        status = status or int(min(recall, precision) < GOAL)
    repositories = {entry["repository"] for entry in entries}
    print(f"{len(entries)} files of {len(repositories)} repositories")
    return status


if __name__ == "__main__":
    sys.exit(main())
