"""The install commands of real repositories: labelled ones are found, and no others."""

from __future__ import annotations

import json

from ci.install_commands_score import GOAL, LABELS, score

ENTRIES = json.loads(LABELS.read_text(encoding="utf-8"))


def test_recall_and_precision() -> None:
    right, labelled, found, wrong = score(ENTRIES)
    assert min(right / labelled, right / found) >= GOAL, wrong
    assert len({entry["repository"] for entry in ENTRIES}) >= 20


def test_commands_that_name_torch() -> None:
    right, labelled, found, wrong = score(ENTRIES, torch=True)
    assert labelled > 40
    assert min(right / labelled, right / found) >= GOAL, wrong


def test_the_score_notices_what_is_missed() -> None:
    entry = {"repository": "a/b", "path": "x.sh", "lines": {"2": "pip install torch"}, "commands": [[3, ["torch"]]]}
    assert score([entry])[:3] == (0, 1, 1)
