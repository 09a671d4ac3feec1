"""``wheelproof pins``: rewrite, restore, check, and the summary."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.patience import PATIENCE
from tests.support.trees import journals

PIN = "six\ntorch==2.8.0\n"


@pytest.fixture
def project(wheelproof: Wheelproof) -> Path:
    """The current folder, with one pin in it."""
    path = Path.cwd() / "requirements.txt"
    path.write_text(PIN)
    return path.parent


@pytest.mark.parametrize("command", [("pins", "rewrite"), ("use-existing-torch",)])
def test_rewrite_and_restore(command: tuple[str, ...], wheelproof: Wheelproof, project: Path) -> None:
    run = wheelproof(*command)
    assert run.status == 0
    assert run.out == (
        "1 file read, 2 requirements found: 1 removed in 1 file\n"
        "requirements.txt\n"
        "  line 2: torch==2.8.0 removed\n"
        f"`wheelproof pins restore` gives it back (journal: {journals()[0]})\n"
    )
    assert [path.name for path in project.iterdir()] == ["requirements.txt"]
    assert (project / "requirements.txt").read_text() == "six\n"

    again = wheelproof(*command)
    assert (again.status, again.out) == (0, "1 file read, 1 requirement found: nothing to change\n")

    restored = wheelproof("pins", "restore")
    assert (restored.status, restored.out) == (0, f"restored {project / 'requirements.txt'}\n")
    assert (project / "requirements.txt").read_text() == PIN


def test_a_dry_run_shows_the_diff_and_writes_nothing(wheelproof: Wheelproof, project: Path) -> None:
    run = wheelproof("pins", "rewrite", "--dry-run")

    assert run.out == (
        "1 file read, 2 requirements found: 1 would be removed in 1 file\n"
        "--- requirements.txt\n+++ requirements.txt\n@@ -1,2 +1 @@\n six\n-torch==2.8.0\n"
    )
    assert [path.name for path in project.iterdir()] == ["requirements.txt"]


def test_the_diff_in_color(wheelproof: Wheelproof, project: Path) -> None:
    assert "\x1b[31m-torch==2.8.0\x1b[0m\n" in wheelproof("pins", "rewrite", "--dry-run", "--color").out


def test_plain_pins_says_what_would_happen(wheelproof: Wheelproof, project: Path) -> None:
    run = wheelproof("pins")

    assert run.out.startswith("1 file read, 2 requirements found: 1 would be removed in 1 file\nrequirements.txt\n")
    assert (project / "requirements.txt").read_text() == PIN


def test_help_lists_the_commands(wheelproof: Wheelproof) -> None:
    out = wheelproof("pins", "--help").out
    for name in ("rewrite", "restore", "check", "explain", "guard", "predict"):
        assert f"\n  {name}" in out
    assert wheelproof("pins", "check", "--help").out.startswith("usage: wheelproof pins check ")


def test_the_plan_as_json(wheelproof: Wheelproof, project: Path) -> None:
    document = json.loads(wheelproof("pins", "rewrite", "--json", "--dry-run").out)

    (file,) = document["files"]
    assert (document["schema"], document["written"], file["path"]) == (
        "wheelproof.pins-plan/1",
        False,
        "requirements.txt",
    )
    assert file["edits"] == [{"start": 4, "end": 17, "replacement": ""}]
    assert file["changes"][0] | {"role": "", "section": ""} == {
        "name": "torch",
        "text": "torch==2.8.0",
        "line": 2,
        "column": 1,
        "section": "",
        "role": "",
        "replacement": None,
    }


def test_pinning_to_what_is_installed(wheelproof: Wheelproof, project: Path) -> None:
    (project / "requirements.txt").write_text("torch>=2\ntorchvision\ntorchcodec\n")
    site = project / "env/lib/python3.12/site-packages"
    for name in ("torch-2.7.1+cu128.dist-info", "torchcodec-0.5.dist-info"):
        (site / name).mkdir(parents=True)
    (project / "env/pyvenv.cfg").touch()
    wheelproof("pins", "rewrite", "--mode", "pin-installed", "--python", "env", "--set", "wide", "requirements.txt")

    assert (project / "requirements.txt").read_text() == (
        "torch==2.7.1+cu128\ntorchvision==0.22.1+cu128\ntorchcodec==0.5\n"
    )


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("pyproject.toml", b"[project\n", "pyproject.toml is not valid TOML"),
        ("dev-requirements.txt", b"\xff\n", "dev-requirements.txt is not valid utf-8 (line 1: invalid start byte)"),
    ],
)
def test_one_broken_file_and_nothing_is_written(
    name: str, data: bytes, message: str, wheelproof: Wheelproof, project: Path
) -> None:
    (project / name).write_bytes(data)
    run = wheelproof("pins", "rewrite")

    assert (run.status, run.out) == (3, "")
    assert run.err.startswith(f"wheelproof: error: {message}")
    assert (project / "requirements.txt").read_text() == PIN
    assert len(list(project.iterdir())) == 2


def test_restore_without_a_journal(wheelproof: Wheelproof, project: Path) -> None:
    run = wheelproof("pins", "restore")
    assert run.status == 3
    assert f"there is no journal of {project} or a folder above it" in run.err


def test_restore_refuses_what_changed(wheelproof: Wheelproof, project: Path) -> None:
    wheelproof("pins", "rewrite")
    (project / "requirements.txt").write_text("jax\nsix\n")

    assert wheelproof("pins", "restore").status == 1
    assert wheelproof("pins", "restore", "--force").out == f"merged {project / 'requirements.txt'}\n"
    assert (project / "requirements.txt").read_text() == f"jax\n{PIN}"


def test_check_fails_with_file_line_and_column(wheelproof: Wheelproof, project: Path) -> None:
    run = wheelproof("pins", "check", "--installed", "2.7.0+cu128", "--format", "github")

    assert run.status == 1
    assert run.out.startswith("::error file=requirements.txt,line=2,col=1,title=PIN101 ")
    assert "torch==2.8.0 could replace the installed torch: 2.7.0+cu128 does not satisfy ==2.8.0" in run.out


def test_check_in_sarif(wheelproof: Wheelproof, project: Path) -> None:
    document = json.loads(wheelproof("pins", "check", "--installed", "none", "--format", "sarif").out)

    (result,) = document["runs"][0]["results"]
    assert result["ruleId"] == "PIN101"
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "requirements.txt"},
        "region": {"startLine": 2, "startColumn": 1},
    }


@pytest.mark.parametrize("text", ["six\n", "torch\n", "torch>=2.7\ntorchmetrics==1\n", "torch==2.7.0\n"])
def test_check_is_content_with_what_keeps_the_installed_torch(text: str, wheelproof: Wheelproof, project: Path) -> None:
    (project / "requirements.txt").write_text(text)
    assert wheelproof("pins", "check", "--installed", "torch==2.7.0+cu128").status == 0


@pytest.mark.parametrize(("value", "status"), [("^2.6", 0), ("~2.7", 0), ("2.8.0", 1), ("^2.8", 1), (">=2,<2.7", 1)])
def test_check_reads_versions_of_poetry(value: str, status: int, wheelproof: Wheelproof, project: Path) -> None:
    (project / "pyproject.toml").write_text(f"[tool.poetry.dependencies]\ntorch = '{value}'\n")
    assert wheelproof("pins", "check", "pyproject.toml", "--installed", "2.7.0+cu128").status == status


def test_check_reads_on_past_a_broken_file(wheelproof: Wheelproof, project: Path) -> None:
    (project / "pyproject.toml").write_text("[")
    run = wheelproof("pins", "check", "--installed", "2.8.0", "--format", "json")

    document = json.loads(run.out)
    assert run.status == 3
    assert {s["id"]: s["results"][0]["outcome"] for s in document["subjects"]} == {
        "pyproject.toml": "error",
        "requirements.txt": "pass",
    }


def test_check_without_any_file(wheelproof: Wheelproof) -> None:
    run = wheelproof("pins", "check")
    assert run.status == 3
    assert "no requirements file found in ." in run.err


def test_check_is_configured_in_its_own_table(wheelproof: Wheelproof, project: Path) -> None:
    Path("wheelproof.toml").write_text("[pins.check]\ninstalled = ['2.8.0+cu128']\n")
    assert wheelproof("pins", "check").status == 0


def test_a_command_below_a_command_starts_fast() -> None:
    code = (
        "import sys; from wheelproof.cli.main import main; main(['pins', 'rewrite', '--help']);"
        "print([name for name in ('rich', 'urllib3', 'tomlkit', 'packaging') if name in sys.modules])"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert child.stdout.endswith("\n[]\n")
