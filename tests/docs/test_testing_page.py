"""What the page on testing rules shows: its test passes, and each builder of its table makes what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import read_blocks
from tests.plugins.outside import RULES
from tests.support.patience import PATIENCE
from wheelproof import testing

PAGE = Path(__file__).parents[2] / "docs/testing.md"


def test_the_test_of_a_rule_passes_and_is_ten_lines(tmp_path: Path) -> None:
    (block,) = [block for block in read_blocks(PAGE) if block.title]
    (tmp_path / block.title).write_text(block.text)
    (tmp_path / "acme_rules.py").write_text(RULES)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), block.title]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE)

    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert len(block.text.strip().splitlines()) <= 10


def test_each_row_of_the_table_is_python_that_runs(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE)
    names = {**vars(testing), "folder": tmp_path / "driver", "wheel": testing.WheelBuilder(), "data": b"x"}

    calls = [call.replace(", ...", "") for row in rows for call in re.findall(r"`([^`]+)`", row)]
    for call in calls:
        assert eval(call, dict(names)) is not None, call  # our own page

    assert len(calls) == 10
