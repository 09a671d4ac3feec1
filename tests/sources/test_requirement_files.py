"""What a file of requirements makes an installer open."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.sources.requirement_files import check_included, refuse_builds


@pytest.mark.parametrize(
    "line",
    [
        "-r pipe",
        "-rpipe",
        "  -r   pipe  # a comment",
        "--requirement pipe",
        "--requirement=pipe",
        "-c pipe",
        "-cpipe",
        "--constraint=pipe",
        '-r "pipe"',
        "-r below/other.txt",
        "-e project",
        "--editable=project[extra]",
        "./project",
    ],
)
def test_a_pipe_is_found_wherever_a_line_leads(tmp_path: Path, line: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "below").mkdir()
    (tmp_path / "below/other.txt").write_text("-c ../pipe\n")
    (tmp_path / "project").mkdir()
    os.mkfifo(tmp_path / "project/pyproject.toml")
    file = tmp_path / "requirements.txt"
    file.write_text(f"six\n{line}\n")
    with pytest.raises(UsageError, match="it is a pipe, not a regular file"):
        check_included([file])


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.11.0 --hash=sha256:00\n",
        "# -r pipe\n",
        "-r https://example.org/requirements.txt\n",
        "-r ${FOLDER}/requirements.txt\n",
        "--index-url https://example.org/simple\n--require-hashes\n",
        "-r requirements.txt\n",  # itself
        "--requirement-free pipe\n",
        "pipe\n",
    ],
)
def test_what_leads_to_no_pipe_is_silent(tmp_path: Path, text: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = tmp_path / "requirements.txt"
    file.write_text(text)
    check_included([file])


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    names = [f"{number}.txt" for number in range(1001)]
    for name in names:
        (tmp_path / name).write_text("")
    (tmp_path / "all.txt").write_text("".join(f"-r {name}\n" for name in names))
    with pytest.raises(UsageError, match="too many files"):
        check_included([tmp_path / "all.txt"])


def test_blank_lines_cost_no_more_than_others(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        file = tmp_path / "requirements.txt"
        file.write_text(" \n" * count)
        start = time.process_time()
        check_included([file])
        return time.process_time() - start

    assert seconds(400_000) < 8 * seconds(100_000) + 0.5


# What would be built

BUILDS = [  # each was seen to run code in November 2026, with pip or with uv
    "-e .",
    "-e./project",
    "-e git+https://example.org/x.git",
    "--editable=.",
    "--edit .",
    "--pre -e .",
    '--pre "-e" .',
    "--pre \\-e .",
    "-\\\ne .",
    "six \\\n# a comment\n-e .",
    "six --hash=sha256:00 '--no-binary' six",
    "six --hash=sha256:00 \\\n'--no-binary' six",
    "--no-binary :all:",
    "--no-binary=six",
    "--no-bin six",
    "six --no-binary six",
    "--only-binary :none:",
    "--only-binary=six,:none:",
    "--prefer-binary -r other.txt",
    "--req other.txt",
    "-r https://example.org/requirements.txt",
    "-r ${HOME}/requirements.txt",
    "-r editable.txt",
    "-c editable.txt",
    "-r script.py",
    "# -*- coding: utf-7 -*-\n+AC0-e .",
    "\x0c-e .",
]
PIP_BUILDS = [
    ".",
    "./project",
    "./project[extra]",
    "project/",
    "file:///x/project",
    "git+https://example.org/x.git",
    "https://example.org/six-1.0.tar.gz",
    "six @ file:///x/project",
    "six @ git+https://example.org/x.git ; python_version > '3'",
    "six @ https://example.org/six-1.0.zip#sha256=00",
    "-c url.txt",
]
HARMLESS = [
    "six",
    "six==1.0 ; python_version > '3'  # a comment",
    "six==1.0 --hash=sha256:00 --hash sha256:11",
    "six==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11",
    "-r below/other.txt",
    '-r "below/other.txt"',
    "--requirement=below/other.txt",
    "-c below/other.txt",
    "-i https://example.org/simple",
    "--index-url https://me:secret@example.org/simple",
    "--extra-index-url=https://example.org/simple",
    "--find-links wheels",
    "-f wheels",
    "--trusted-host example.org",
    "--only-binary :all:",
    "--pre\n--prefer-binary\n--no-index\n--require-hashes",
    "./wheels/six-1.0-py3-none-any.whl",
    "file:///x/six-1.0-py3-none-any.whl",
    "six @ https://example.org/six-1.0-py3-none-any.whl#sha256=00",
    "# -*- coding: utf-8 -*-\nsix",
    "",
]


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/other.txt").write_text("six\n")
    (tmp_path / "editable.txt").write_text("-e .\n")
    (tmp_path / "url.txt").write_text("six @ file:///x/project\n")
    (tmp_path / "script.py").write_text("# /// script\n# dependencies = ['six']\n# ///\n")
    return tmp_path / "requirements.txt"


@pytest.mark.parametrize("line", BUILDS)
def test_what_any_installer_may_build_is_refused(requirements: Path, line: str) -> None:
    requirements.write_text(f"six\n{line}\n" if not line.startswith("# -*-") else f"{line}\n")
    for pip in (True, False):
        with pytest.raises(SourceError, match="may have the installer build, which runs code"):
            refuse_builds([requirements], pip=pip)


@pytest.mark.parametrize("line", PIP_BUILDS)
def test_what_pip_alone_builds_is_refused_for_pip(requirements: Path, line: str) -> None:
    requirements.write_text(f"six\n{line}\n")
    refuse_builds([requirements])
    with pytest.raises(SourceError, match="may have the installer build"):
        refuse_builds([requirements], pip=True)


@pytest.mark.parametrize("line", HARMLESS)
def test_what_nobody_builds_is_silent(requirements: Path, line: str) -> None:
    requirements.write_text(f"{line}\n")
    refuse_builds([requirements], pip=True)


@pytest.mark.parametrize("content", ["-e .\n".encode("utf-16"), b"six\xff\n"])
def test_bytes_that_installers_read_in_two_ways_are_refused(requirements: Path, content: bytes) -> None:
    requirements.write_bytes(content)
    with pytest.raises(SourceError, match="it is no UTF-8"):
        refuse_builds([requirements])
