"""``ci/next_rule_id.py``: ids are never reused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci.next_rule_id import next_id
from wheel_checks.catalogue import all_rules
from wheel_checks.registry import RETIRED

SCRIPT = Path(__file__).parents[2] / "ci/next_rule_id.py"


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        (["KRN101", "KRN102"], "KRN103"),
        (["KRN101", "KRN102", "KRN199", "KRN203"], "KRN103"),  # 199 is set apart, as the last of its group
        (["KRN101", "KRN104"], "KRN105"),  # 102 and 103 may have been removed rules
        ([], "KRN101"),
    ],
)
def test_the_next_id_is_after_the_last(taken: list[str], expected: str) -> None:
    assert next_id("KRN1", taken) == expected


def test_it_prints_an_id_that_no_rule_has_or_had() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "REL3", "DOC9"], capture_output=True, text=True, check=True)
    ids = [line.split()[0] for line in done.stdout.splitlines()]
    assert [rule_id[:4] for rule_id in ids] == ["DOC9", "REL3"]
    assert not {rule.id for rule in all_rules()} & {*ids}
    assert not RETIRED.keys() & {*ids}


def test_an_unknown_group_is_an_error() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "XYZ"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "rule_subjects.toml" in done.stderr
