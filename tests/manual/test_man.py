"""The manual page: true to the parsers, well-formed, and found by ``man`` after an install."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from wheelproof.cli.manual import read_manual
from wheelproof.manual import man
from wheelproof.manual.model import Argument, Command, Kind, Manual, Option, Values

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/wheelproof.1"


def shown(page: Path) -> str:
    """The page as people read it, without overstrikes."""
    text = subprocess.run(
        ["mandoc", "-T", "ascii", "-O", "width=200", page], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return subprocess.run(["col", "-bx"], input=text.stdout, capture_output=True, text=True, check=True).stdout


def test_the_page_is_what_the_parsers_say() -> None:
    check = [sys.executable, str(ROOT / "ci/update_manual.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.shells
def test_mandoc_finds_nothing_wrong() -> None:
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "style", PAGE], capture_output=True, check=False, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.shells
def test_every_command_and_option_is_in_the_page() -> None:
    text = shown(PAGE)
    for command in read_manual().commands:
        assert f"wheelproof {command.name} [OPTIONS]" in text
        for option in command.options:
            assert all(flag in text for flag in option.flags if flag not in {"-h", "--help"})


@pytest.mark.shells
def test_no_text_of_a_help_is_a_macro(tmp_path: Path) -> None:
    hostile = "the 'file'\n.so /etc/passwd -- \\fBbold\\fR `x` \"y\" .TH"
    command = Command(
        "judge",
        hostile,
        (Argument(".so", ".so /etc/passwd", Values()),),
        {
            "options": (Option(("--a-b",), "'br is not a macro", "N", Values()),),
            "output": (Option(("--format",), "how", "FORMAT", Values(Kind.WORD, ("text", "json"), closed=True)),),
            "run": (Option(("-q", "--quiet"), ""),),
            "sources": (Option(("--index-url",), "the index.", "URL", Values()),),
        },
    )
    page = tmp_path / "page.1"
    page.write_text(man.render(Manual("1.0", (command,)), "2026-11-22"))
    lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
    assert lint.stdout == ""
    text = shown(page)
    for expected in ("The 'file' .so /etc/passwd -- \\fBbold\\fR `x` \"y\" .TH.", "'br is not a macro.", "--a-b N"):
        assert expected in text
    assert "--format text|json" in text
    assert "The index." in text


@pytest.mark.shells
def test_the_wheel_installs_the_page(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=PATIENCE)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("share/man/man1/wheelproof.1")]
        assert archive.read(name) == PAGE.read_bytes()
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=PATIENCE)
    install = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--offline", "--python"]
    subprocess.run([*install, str(environment), str(wheel)], check=True, capture_output=True, timeout=PATIENCE)
    assert (environment / "share/man/man1/wheelproof.1").read_bytes() == PAGE.read_bytes()
    active = {"PATH": f"{environment}/bin:/usr/bin:/bin"}
    found = subprocess.run(["man", "--path", "wheelproof"], env=active, capture_output=True, text=True, check=False)
    assert Path(found.stdout.strip()) == environment / "share/man/man1/wheelproof.1"
