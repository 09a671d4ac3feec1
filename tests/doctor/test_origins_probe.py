"""Which file sets a variable, read from a fake root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wheelproof.doctor.probes.installation.origins import read_origins

NAME = "CUDA_VISIBLE_DEVICES"
HOME = {"HOME": "/home/user", NAME: ""}


def write(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def origin(root: Path, environment: dict[str, str] = HOME, **where: str) -> str:
    return read_origins([NAME], environment, root=str(root), **where).get(NAME, "")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/environment", 'PATH="/usr/bin"\nCUDA_VISIBLE_DEVICES=""\n'),
        ("/etc/profile.d/gpu.sh", "# no GPU here\nexport CUDA_VISIBLE_DEVICES=\n"),
        ("/etc/security/pam_env.conf", "\nCUDA_VISIBLE_DEVICES DEFAULT=-1\n"),
        ("/home/user/.bashrc", "if true; then\n  export CUDA_VISIBLE_DEVICES=-1\nfi\n"),
        ("/home/user/.config/fish/config.fish", "\nset -gx CUDA_VISIBLE_DEVICES ''\n"),
        ("/home/user/.zshenv", "\ntypeset -x CUDA_VISIBLE_DEVICES=''\n"),
        ("/opt/env/etc/conda/activate.d/gpu.sh", "\nexport CUDA_VISIBLE_DEVICES=''\n"),
        ("/opt/env/bin/activate", "\nexport CUDA_VISIBLE_DEVICES=''\n"),
        ("/project/.envrc", "\nexport CUDA_VISIBLE_DEVICES=''\n"),
    ],
)
def test_a_line_that_sets_it(tmp_path: Path, path: str, text: str) -> None:
    write(tmp_path, path, text)

    assert origin(tmp_path, prefix="/opt/env", folder="/project") == f"{path}:2"


@pytest.mark.parametrize(
    "text", ["# export CUDA_VISIBLE_DEVICES=\n", "echo $CUDA_VISIBLE_DEVICES\n", "export MY_CUDA_VISIBLE_DEVICES=\n"]
)
def test_a_line_that_does_not(tmp_path: Path, text: str) -> None:
    write(tmp_path, "/home/user/.bashrc", text)

    assert origin(tmp_path) == ""


def test_the_last_one_that_sets_it_wins(tmp_path: Path) -> None:
    write(tmp_path, "/etc/environment", "CUDA_VISIBLE_DEVICES=0\n")
    write(tmp_path, "/home/user/.bashrc", "export CUDA_VISIBLE_DEVICES=0\n\nexport CUDA_VISIBLE_DEVICES=\n")

    assert origin(tmp_path) == "/home/user/.bashrc:3"


def test_a_container_was_started_with_it(tmp_path: Path) -> None:
    write(tmp_path, "/proc/1/environ", "PATH=/usr/bin\0CUDA_VISIBLE_DEVICES=\0HOME=/root\0")

    assert origin(tmp_path) == "/proc/1/environ"
    assert origin(tmp_path, {**HOME, NAME: "0"}) == ""  # someone has changed it since


def test_a_variable_that_is_not_set_has_no_origin(tmp_path: Path) -> None:
    write(tmp_path, "/etc/environment", "CUDA_VISIBLE_DEVICES=0\n")

    assert origin(tmp_path, {"HOME": "/home/user"}) == ""


def test_files_that_are_none(tmp_path: Path) -> None:
    home = tmp_path / "home" / "user"
    (home / ".bashrc").mkdir(parents=True)
    os.mkfifo(home / ".profile")
    (home / ".zshrc").write_bytes(b"\xff\xfe\0" * 100)
    (home / ".bash_profile").symlink_to(home / ".bash_profile")

    assert origin(tmp_path) == ""


def test_this_machine_answers_without_an_exception() -> None:
    assert set(read_origins([NAME, "PATH"], os.environ)) <= {NAME, "PATH"}
