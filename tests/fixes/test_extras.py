"""The optional packages: the table equals pyproject.toml, and pip can run the command."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from wheel_checks.fixes.extras import REQUIREMENTS, how_to_install

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        name: tuple(f"{found.name}{found.specifier}" for found in map(Requirement, requirements))
        for name, requirements in project["optional-dependencies"].items()
        if name != "kernels"  # torch and triton: wheelproof smoke checks which build of them is installed
    }
    assert extras == dict(REQUIREMENTS)


@pytest.mark.parametrize("extra", REQUIREMENTS)
def test_the_command_runs_the_pip_of_this_python(extra: str) -> None:
    command = shlex.split(how_to_install(extra))
    assert command[0] == sys.executable
    empty = [*command, "--dry-run", "--no-index", "--ignore-installed", "--quiet"]
    answer = subprocess.run(empty, capture_output=True, text=True, check=False)
    # without an index it gets as far as looking for the first package: the command line itself is understood
    assert answer.returncode == 1
    assert f"No matching distribution found for {REQUIREMENTS[extra][0]}" in answer.stderr
