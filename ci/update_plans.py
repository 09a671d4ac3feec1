#!/usr/bin/env python3
"""Write the ready files in docs/adopting: the output of `wheelproof matrix plan` for the matrix next to them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "adopting"
# file: the arguments of `matrix plan`
FILES = {
    "github.yml": ("--to", "github"),
    "gitlab.yml": ("--to", "gitlab"),
    "slurm.sh": ("--to", "slurm", "--runner", "gpu=partition=gpu"),
    "kubernetes.yaml": ("--to", "kubernetes"),
    "cells.sh": ("--to", "shell"),
}


def contents() -> dict[str, str]:
    """The files, as they are to be; the matrix is ci/matrix.toml there."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "ci").mkdir()
        (project / "ci" / "matrix.toml").write_text((FOLDER / "matrix.toml").read_text(encoding="utf-8"))
        return {name: _plan(project, *arguments) for name, arguments in FILES.items()}


def _plan(project: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "wheelproof", "matrix", "plan", *arguments]
    return subprocess.run(command, cwd=project, env=os.environ, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    """Write the files that differ."""
    for name, text in contents().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{path.name} was written")


if __name__ == "__main__":
    main()
