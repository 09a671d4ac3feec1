"""Print the next free id of groups of rules, which are the prefixes of ``ci/reference/rule_subjects.toml``.

usage: .venv/bin/python ci/next_rule_id.py [PREFIX ...]      # WHL2, or WHL for all groups of wheels; default: all
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.reference.rules import subjects  # noqa: E402  # found by the line above
from wheel_checks.catalogue import all_rules  # noqa: E402  # as above
from wheel_checks.registry import RETIRED  # noqa: E402  # as above


def next_id(prefix: str, taken: Collection[str]) -> str:
    """The id after the last one; gaps may be ids of removed rules and stay free."""
    ids = [f"{prefix}{number:02}" for number in range(100)]
    last = max((number for number in range(99) if ids[number] in taken and ids[number + 1] not in taken), default=0)
    return ids[last + 1]


def main() -> int:
    """Print a line for each group; 1 if no group has such a prefix."""
    chosen = [subject for subject in subjects() if subject.prefix.startswith(tuple(sys.argv[1:] or [""]))]
    taken = {rule.id for rule in all_rules()} | RETIRED.keys()
    for subject in chosen:
        print(f"{next_id(subject.prefix, taken)}  {subject.heading}")
    if not chosen:
        print("no such group of rules: see ci/reference/rule_subjects.toml", file=sys.stderr)
    return int(not chosen)


if __name__ == "__main__":
    sys.exit(main())
