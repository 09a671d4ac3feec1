"""A sample of ``ci/pins_kills.py``: runs killed at any call, from outside, several at once, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE

SCRIPT = Path(__file__).parents[3] / "ci" / "pins_kills.py"
SECONDS = "15"


def test_runs_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    bounds = ["--rounds", "100000", "--seconds", SECONDS, "--seed", "2"]  # of which the first round has a kill
    command = [sys.executable, str(SCRIPT), *bounds, "--folder", str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    figures = json.loads(child.stdout)

    assert (child.returncode, figures["lost"]) == (0, []), child.stderr
    assert figures["killed"]
    assert figures["runs"] == sum(figures["killed"].values()) + sum(figures["ended"].values())
    assert figures["calls_of_a_run"]["rewrite"] > 30
    assert figures["calls_of_a_run"]["restore"] > 30
