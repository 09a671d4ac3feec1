"""The ready files in docs/adopting equal the command's output, and are valid; files without a schema are parsed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]  # it comes without types
import pytest
import yaml

from ci import lanes, update_plans
from tests.support.patience import PATIENCE
from wheelproof.matrix.definition.reading import read_matrix

FOLDER = Path(__file__).parents[2] / "docs" / "adopting"


def test_the_files_are_what_the_command_makes() -> None:
    """`.venv/bin/python ci/update_plans.py` writes them."""
    assert {name: (FOLDER / name).read_text() for name in update_plans.FILES} == update_plans.contents()


def test_every_file_is_checked() -> None:
    by_schema = {path.name for path in lanes.READY.values()}
    assert {path.name for path in FOLDER.iterdir()} == {
        *by_schema,
        *("kubernetes.yaml", "slurm.sh", "cells.sh", "matrix.toml"),
    }


def test_the_schemas_hold() -> None:
    assert lanes.check_ready_files()


def test_kubernetes_knows_every_field() -> None:
    for document in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", ["slurm.sh", "cells.sh"])
def test_a_shell_reads_the_scripts(name: str) -> None:
    shells = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
    for shell in shells:
        command = [shell, *(["sh"] if shell == "busybox" else []), "-n", str(FOLDER / name)]
        subprocess.run(command, check=True, timeout=PATIENCE)


def test_the_matrix_has_a_cell_of_each_kind() -> None:
    cells = read_matrix(FOLDER / "matrix.toml").cells
    assert {(cell.platform, cell.needs_gpu) for cell in cells} == {
        ("x86_64", False),
        ("aarch64", False),
        ("x86_64", True),
    }
