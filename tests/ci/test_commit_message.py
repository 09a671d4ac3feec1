"""``ci/commit_message.py``: the form of a commit message, as CONTRIBUTING demands it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci.commit_message import faults

SCRIPT = Path(__file__).parents[2] / "ci" / "commit_message.py"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Read the accelerator from DT_NEEDED\n\nNames lie.\n", []),
        ("# a comment of git\nRead it\n", []),
        ("x" * 72, []),
        ("Merge branch 'a' into a branch whose name is far longer than anybody would like to read it here", []),
        ("x" * 73, ["the subject has 73 characters; the limit is 72"]),
        ("Read it.", ["the subject ends with a full stop"]),
        ("Read it\nat once", ["a blank line must follow the subject"]),
        ("\n\nbody", ["the message has no subject"]),
    ],
)
def test_a_subject_and_what_is_wrong_with_it(message: str, expected: list[str]) -> None:
    assert faults(message) == expected


def test_a_message_with_a_fault_stops_the_commit(tmp_path: Path) -> None:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text("Read it.\n")
    done = subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "the subject ends with a full stop\n")
