"""Trees with pipes, sockets and devices where files are expected: every command ends, with a sentence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from wheel_checks.process.child import run

NOT_A_FILE = "not a regular file"
COMMANDS = {
    "pins check pipe.txt": NOT_A_FILE,
    "pins check includes-pipe.txt": NOT_A_FILE,
    "pins check constrained-by-zero.txt": NOT_A_FILE,
    "pins check pylock.toml": NOT_A_FILE,
    "pins check .": "no requirements file found",
    "pins rewrite pipe.txt": NOT_A_FILE,
    "pins restore --journal pipe": NOT_A_FILE,
    "pins predict --installed 2.11.0 -r includes-pipe.txt": NOT_A_FILE,
    "pins predict --installed 2.11.0 -r constrained-by-zero.txt": "which leads out of the tree",
    "explain pipe": NOT_A_FILE,
    "explain to-pipe": NOT_A_FILE,
    "explain to-zero": NOT_A_FILE,
    "explain to-nothing": "No such file",
    "explain loop": "Too many levels of symbolic links",
    "explain folder": "Is a directory",
    "verify --config /dev/null pipe.whl": NOT_A_FILE,
    "verify pipe.whl": NOT_A_FILE,
    "verify folder": NOT_A_FILE,
    "verify to-zero": NOT_A_FILE,
    "verify --config pipe demo.whl": NOT_A_FILE,
    "verify --installed --python ./pipe": "there is no",
    "release folder --expect pipe": NOT_A_FILE,
    "release folder --expect to-zero": NOT_A_FILE,
    "stack -r pipe.txt --offline": NOT_A_FILE,
    "stack -r includes-pipe.txt --offline": NOT_A_FILE,
    "stack -r constrained-by-zero.txt --offline": "which leads out of the tree",
    "stack -r editable.txt --offline": NOT_A_FILE,
    "stack pyproject.toml --offline": NOT_A_FILE,
    "matrix list --matrix pipe": NOT_A_FILE,
    "doctor --facts pipe": NOT_A_FILE,
    "doctor --facts to-zero": NOT_A_FILE,
    "report merge pipe": NOT_A_FILE,
    "report merge to-zero": NOT_A_FILE,
    "report merge folder": "no report in the folder",
    "smoke --python ./pipe": "cannot be run",
    "diff pipe.whl other.whl": NOT_A_FILE,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    for name in (
        "pipe",
        "pipe.txt",
        "pipe.whl",
        "other.whl",
        "pylock.toml",
        "setup.py",
        "pyproject.toml",
        ".gitignore",
    ):
        os.mkfifo(tmp_path / name)
    for name in ("demo-1.0-py3-none-any.whl", "report.json", "demo-1.0-variants.json"):
        os.mkfifo(tmp_path / "folder" / name)
    links = {"to-pipe": "pipe", "to-zero": "/dev/zero", "to-nothing": "missing", "loop": "loop"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "includes-pipe.txt").write_text("six\n-r pipe.txt\n")
    (tmp_path / "constrained-by-zero.txt").write_text("six\n-c /dev/zero\n")
    (tmp_path / "editable.txt").write_text("-e .\n")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_with_a_sentence(tree: Path, command: str) -> None:
    program = [sys.executable, "-m", "wheelproof", *command.split()]
    ended = run(program, deadline=PATIENCE, cwd=str(tree), environment={**os.environ, "HOME": str(tree / "folder")})
    words = (ended.output + ended.errors).decode()
    assert not ended.timed_out
    assert COMMANDS[command] in " ".join(words.split())
    assert "Traceback" not in words
    assert ended.status in {2, 3}
