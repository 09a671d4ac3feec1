"""The ready files in docs/adopting are what the command makes, and valid; what no schema checks is parsed."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]  # it comes without types
import pytest
import yaml

from ci import lanes, update_plans
from tests.support.patience import PATIENCE
from wheelproof.cli.matrix.group import SUBCOMMANDS
from wheelproof.cli.options import make_parser
from wheelproof.matrix.reading import read_matrix
from wheelproof.version import __version__

FOLDER = Path(__file__).parents[2] / "docs" / "adopting"


def test_the_files_are_what_the_command_makes() -> None:
    """`.venv/bin/python ci/update_plans.py` writes them."""
    assert {name: (FOLDER / name).read_text() for name in update_plans.FILES} == update_plans.contents()


def test_every_file_is_checked() -> None:
    by_schema = {path.name for path in lanes.READY.values()}
    assert {path.name for path in FOLDER.iterdir()} == {
        *by_schema,
        *("kubernetes.yaml", "slurm.sh", "cells.sh", "Jenkinsfile", "matrix.toml"),
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


def test_jenkins_calls_what_exists() -> None:
    """No schema describes a Jenkinsfile, and only a Jenkins compiles one."""
    text = (FOLDER / "Jenkinsfile").read_text()
    commands = re.findall(r"\$\{wheelproof\} matrix ([^\"]+)\"", text)
    assert [command.split()[0] for command in commands] == ["list", "run", "merge"]
    for command in commands:
        name, *arguments = shlex.split(command.replace("${cell.id}", "ID"))
        module, summary = SUBCOMMANDS[name]
        make_parser(f"matrix {name}", summary, importlib.import_module(module)).parse(arguments)
    assert f"wheelproof=={__version__}" in text
    assert all(text.count(left) == text.count(right) for left, right in ("()", "[]", "{}"))


def test_the_matrix_has_a_cell_of_each_kind() -> None:
    cells = read_matrix(FOLDER / "matrix.toml").cells
    assert {(cell.platform, cell.needs_gpu) for cell in cells} == {
        ("x86_64", False),
        ("aarch64", False),
        ("x86_64", True),
    }
