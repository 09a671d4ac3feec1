"""Our wheel and four packages of others, installed by uv from the configured index into a fresh environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.outside import FORMAT, PROBE, ROOT, RULES, Package, uv
from tests.support.patience import PATIENCE
from tests.support.wheels import WheelBuilder

PACKAGES = (
    Package("acme-rules", RULES, {"rules": 'acme = "acme_rules"'}),
    Package("acme-format", FORMAT, {"formats": 'acme = "acme_format:render"'}),
    Package("acme-probe", PROBE, {"probes": 'acme = "acme_probe"'}),
    Package("acme-kernels", "KERNELS = []", {"kernels": 'acme = "acme_kernels"'}),
)


@pytest.mark.online
def test_an_install_with_four_plugins(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "ours"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=PATIENCE)
    (ours,) = (tmp_path / "ours").glob("*.whl")
    theirs = [package.build(tmp_path) for package in PACKAGES]
    uv("venv", "--quiet", "--python", sys.executable, str(tmp_path / "env"))
    command = tmp_path / "env/bin/wheelproof"
    uv("pip", "install", "--quiet", "--python", str(tmp_path / "env/bin/python"), str(ours), *map(str, theirs))

    def run(*arguments: str) -> str:
        return subprocess.run(
            [str(command), *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE
        ).stdout

    WheelBuilder().write(tmp_path)
    wheel = ("verify", "demo-1.0-py3-none-any.whl", "--no-index")
    assert len(run("--version", "-v").splitlines()) == 6
    assert "does not start with acme" in run(*wheel, "--select", "ACME")
    assert run(*wheel, "--format", "acme").startswith("verify: pass\n")
    facts = json.loads(run("doctor", "--expect", "cpu", "--format", "json"))["subjects"][0]["facts"]
    assert facts["probes"]["acme"]["values"] == {"engine": "none", "racks": "3"}
    assert run("rules", "ACME001").startswith("ACME001: wheels have our prefix")
