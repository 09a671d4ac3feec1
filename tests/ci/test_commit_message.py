"""``ci/commit_message.py``: the form of a commit message, as CONTRIBUTING demands it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci.commit_message import AREAS, faults

SCRIPT = Path(__file__).parents[2] / "ci" / "commit_message.py"
FORM = 'write the subject as "area: verb object", the verb in lower case'


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("verify: read the accelerator from DT_NEEDED\n\nNames lie.\n", []),
        ("# a comment of git\nverify: read it\n", []),
        ("ci: add " + "x" * 64, []),
        ("Merge branch 'a' into a branch whose name is far longer than anybody would like to read it here", []),
        ("ci: add " + "x" * 65, ["the subject has 73 characters; the limit is 72"]),
        ("ci: add it.", ["the subject ends with a full stop"]),
        ("ci: add it\nat once", ["a blank line must follow the subject"]),
        ("\n\nbody", ["the message has no subject"]),
        ("Read the accelerator from DT_NEEDED", [FORM]),
        ("verify: Read it", [FORM]),
        ("verify: ", [FORM]),
        ("wheels: read it", [f"'wheels' is not an area; use one of {', '.join(AREAS)}"]),
        ("docs: say it", ["'say' does not show what changed; use a verb such as add, fix, remove, move, read, report"]),
        ("docs: holder of names", []),
    ],
)
def test_a_subject_and_what_is_wrong_with_it(message: str, expected: list[str]) -> None:
    assert faults(message) == expected


def test_a_message_with_a_fault_stops_the_commit(tmp_path: Path) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text("ci: add it.\n")
    done = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "the subject ends with a full stop\n")
