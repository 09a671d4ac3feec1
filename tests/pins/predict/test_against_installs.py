"""A sample of ``ci/predict_against_installs.py``: predictions equal the results of the real pip and uv."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE

SCRIPT = Path(__file__).parents[3] / "ci" / "predict_against_installs.py"
SAMPLE = "torch==2.8.0,torchvision"  # one replaces or shadows torch, one keeps the version that the installer sees


def test_predictions_come_true(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    environments = [part for name in ("plain", "pth", "aarch64") for part in ("--environment", name)]
    command = [sys.executable, str(SCRIPT), "--only", SAMPLE, *environments, "--results", str(results)]
    child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)

    assert child.returncode == 0, child.stdout + child.stderr
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    found = {(package, environment, installer): predicted for package, environment, installer, predicted, *_ in rows}
    assert len(found) == 2 * 5
    assert found["torch==2.8.0", "plain", "uv"] == found["torch==2.8.0", "pth", "pip"] == "fail"
    assert found["torchvision", "plain", "uv"] == found["torchvision", "pth", "pip"] == "pass"
    assert found["torchvision", "pth", "uv"] == "fail"  # uv does not see folders in a .pth file
