"""``wheelproof new``: its output builds, tests and runs, without a change."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.docs.blocks import read_blocks
from tests.plugins.outside import Outside, results_of, uv
from tests.support.patience import PATIENCE
from tests.support.wheels import WheelBuilder

PAGE = Path(__file__).parents[2] / "docs/how-to/own-rule.md"
KERNELS_PYTHON = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")  # read now, since a test sees no such variable


def run_in(outside: Outside, *arguments: str, cwd: str) -> subprocess.CompletedProcess[str]:
    command = [str(outside.python), *arguments]
    return subprocess.run(
        command, cwd=outside.folder / cwd, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


def test_a_package_of_rules(tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    assert outside.wheelproof("new", "rules", "acme-rules").returncode == 0

    tested = run_in(outside, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd="acme-rules")
    assert "2 passed" in tested.stdout, tested.stdout + tested.stderr

    uv("build", "--wheel", "--offline", "--quiet", "--out-dir", str(tmp_path / "dist"), str(tmp_path / "acme-rules"))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    uv("pip", "install", "--offline", "--quiet", "--no-deps", "--python", str(outside.python), str(wheel))
    assert outside.wheelproof("rules", "ACME001").stdout.startswith("ACME001: wheels state a license")
    WheelBuilder().write(tmp_path)
    report = outside.report("verify", "demo-1.0-py3-none-any.whl", "--no-index", "--select", "ACME")
    assert results_of(report, "ACME001") == [("fail", "demo states no license")]


def test_the_package_is_clean_for_ruff_and_mypy(tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    outside.wheelproof("new", "rules", "acme-rules")
    tools = Path(sys.executable).parent
    for tool in (
        ("ruff", "check", "--isolated"),
        ("ruff", "format", "--isolated", "--check"),
        ("mypy", "--strict", "src"),
    ):
        command = [str(tools / tool[0]), *tool[1:], *(["--line-length", "120", "."] if tool[0] == "ruff" else [])]
        done = subprocess.run(command, cwd=tmp_path / "acme-rules", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_package_of_kernels_builds(tmp_path: Path) -> None:
    outside = Outside(tmp_path)
    assert outside.wheelproof("new", "kernels", "acme-kernels").returncode == 0

    uv("build", "--wheel", "--offline", "--quiet", "--out-dir", str(tmp_path / "dist"), str(tmp_path / "acme-kernels"))
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    uv("pip", "install", "--offline", "--quiet", "--no-deps", "--python", str(outside.python), str(wheel))
    assert "kernels  acme_kernels = acme_kernels.smoke" in outside.wheelproof("--version", "-v").stdout


@pytest.mark.kernels
def test_a_package_of_kernels_runs(tmp_path: Path, wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wheelproof("new", "kernels", "acme-kernels", "--folder", str(tmp_path / "it")).status == 0
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "it/src"))

    options = (
        "--device",
        "interpret",
        "--kernels",
        "acme_kernels.smoke",
        "--only",
        "smoke",
        "--python",
        KERNELS_PYTHON,
    )
    run = wheelproof("smoke", *options)

    assert run.status == 0, run.out + run.err
    assert "acme_kernels_scaled_add" in run.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("Acme",), "'Acme' is not a valid package name; expected lower-case letters"),
        (("../up",), "'../up' is not a valid package name"),
        (("acme", "--prefix", "WHLX"), "'WHLX' is not a valid rule prefix"),
        (("whl-rules",), "'WHL' is not a valid rule prefix"),
    ],
)
def test_names_that_cannot_be(wheelproof: Wheelproof, arguments: tuple[str, ...], sentence: str) -> None:
    run = wheelproof("new", "rules", *arguments)
    assert run.status == 2
    assert sentence in run.err.replace("\n  expected: ", "; expected ")
    assert list(Path().iterdir()) == []


def test_nothing_is_overwritten(wheelproof: Wheelproof) -> None:
    Path("acme").mkdir()
    Path("acme/mine.txt").write_text("mine")
    run = wheelproof("new", "rules", "acme")
    assert run.status == 2
    assert "acme already exists, and is not an empty folder" in run.err
    assert [path.name for path in Path("acme").iterdir()] == ["mine.txt"]


def test_the_page_shows_these_commands() -> None:
    """The page's commands that change an environment equal those of the test above."""
    shown = [command.text for block in read_blocks(PAGE) for command in block.commands]
    assert [shlex.split(command)[:2] for command in shown] == [
        ["wheelproof", "new"],
        ["cd", "acme-rules"],
        ["pytest", "-q"],
        ["uv", "build"],
        ["uv", "pip"],
        ["wheelproof", "rules"],
        ["wheelproof", "verify"],
    ]
