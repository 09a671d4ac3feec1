"""What a file of requirements makes an installer open."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from wheel_checks.errors import UsageError
from wheel_checks.sources.requirement_files import check_included


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
