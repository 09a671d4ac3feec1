"""The manual page: true to the parsers, well-formed, and found by ``man`` after an install."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ci.command_line import read_commands
from tests.support.patience import PATIENCE

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
        ["mandoc", "-T", "lint", "-W", "warning", PAGE], capture_output=True, check=False, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.shells
def test_every_command_and_option_is_in_the_page() -> None:
    text = shown(PAGE)
    for command in read_commands():
        assert f"usage: wheelproof {command.name} " in text
        for option in command.options:
            assert all(flag in text for flag in option.option_strings if flag not in {"-h", "--help"})


@pytest.mark.shells
def test_the_wheel_installs_the_page(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=PATIENCE)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("share/man/man1/wheelproof.1")]
        assert archive.read(name) == PAGE.read_bytes()
        assert archive.read("wheelproof/cli/completion/wheelproof.fish").startswith(b"# ")
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=PATIENCE)
    install = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--offline", "--python"]
    subprocess.run([*install, str(environment), str(wheel)], check=True, capture_output=True, timeout=PATIENCE)
    assert (environment / "share/man/man1/wheelproof.1").read_bytes() == PAGE.read_bytes()
    active = {"PATH": f"{environment}/bin:/usr/bin:/bin"}
    found = subprocess.run(["man", "--path", "wheelproof"], env=active, capture_output=True, text=True, check=False)
    assert Path(found.stdout.strip()) == environment / "share/man/man1/wheelproof.1"
