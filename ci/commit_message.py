"""Check that the first line of a commit message is ``area: verb object``, as CONTRIBUTING demands.

A hook of .pre-commit-config.yaml: ``python3 ci/commit_message.py FILE``. The imperative is left to reviewers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST = 72
AREAS = (
    "verify", "stack", "release", "diff", "pins", "guard", "doctor", "explain", "smoke", "kernels", "matrix", "fleet",
    "rules", "report", "new", "mcp", "plugins", "cli", "api", "formats", "facts", "sources", "targets", "data",
    "docs", "tests", "ci", "benchmarks", "docker",
)  # fmt: skip
VAGUE = ("say", "let", "keep", "hold", "leave", "give")  # verbs that do not show what changed


def faults(message: str) -> list[str]:
    """The faults of a message's form; git's own messages (``Merge ...``, ``fixup! ...``) have none."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return []
    found = []
    if not subject.strip():
        found.append("the message has no subject")
    if len(subject) > MOST:
        found.append(f"the subject has {len(subject)} characters; the limit is {MOST}")
    area, colon, rest = subject.partition(": ")
    if colon and area not in AREAS:
        found.append(f"{area!r} is not an area; use one of {', '.join(AREAS)}")
    elif subject.strip() and not re.match(r"[a-z]", rest):
        found.append('write the subject as "area: verb object", the verb in lower case')
    if (verb := rest.partition(" ")[0]) in VAGUE:
        found.append(f"{verb!r} does not show what changed; use a verb such as add, fix, remove, move, read, report")
    if subject.endswith("."):
        found.append("the subject ends with a full stop")
    if len(lines) > 1 and lines[1].strip():
        found.append("a blank line must follow the subject")
    return found


def main() -> int:
    """Check the message in the file that git names; 1 when something is wrong."""
    found = faults(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for fault in found:
        print(fault, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
