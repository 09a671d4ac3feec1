"""Hold the first line of a commit message to CONTRIBUTING: at most 72 characters, no full stop, a blank line after it.

A hook of .pre-commit-config.yaml: ``python3 ci/commit_message.py FILE``. The imperative is left to reviewers.
"""

from __future__ import annotations

import sys
from pathlib import Path

MOST = 72


def faults(message: str) -> list[str]:
    """What is wrong with the form of a message; git's own (``Merge ...``, ``fixup! ...``) may have any."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return []
    found = []
    if not subject.strip():
        found.append("the message has no subject")
    if len(subject) > MOST:
        found.append(f"the subject has {len(subject)} characters; the limit is {MOST}")
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
