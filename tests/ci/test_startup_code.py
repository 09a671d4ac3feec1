"""Every row of startup_code.toml that names a wheel is compared with that wheel, on the configured index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "ci" / "check_startup_code.py"


@pytest.mark.online
def test_the_table_is_what_the_wheels_say() -> None:
    run = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " rows, 0 wrong, 0 not read" in run.stdout
