"""The first process of a container, here as any process: it always ends, with the right status."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.support.patience import PATIENCE
from wheelproof.matrix.executors.docker import first_process
from wheelproof.matrix.executors.docker.container import FIRST_PROCESS


def start(*command: str, seconds: float = PATIENCE) -> subprocess.Popen[bytes]:
    words: Sequence[str] = [sys.executable, "-I", "-S", str(FIRST_PROCESS), str(seconds), *command]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 128 + 11), ("kill -KILL $$", 128 + 9)]
)
def test_the_status_of_the_command(script: str, status: int) -> None:
    with start("sh", "-c", script) as process:
        assert process.wait(PATIENCE) == status


def test_the_command_reads_nothing_and_its_words_come_through() -> None:
    with start("sh", "-c", "cat; echo out; echo err >&2") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert (process.stdout.read(), process.stderr.read()) == (b"out\n", b"err\n")


def test_a_command_that_does_not_exist() -> None:
    with start("no-such-command") as process:
        assert process.wait(PATIENCE) == first_process.CANNOT_START
        assert process.stderr is not None
        assert process.stderr.read() == b"no-such-command: No such file or directory\n"


def test_an_orphan_that_ends_does_not_end_it() -> None:
    with start("sh", "-c", "(sleep 0.1 &) ; sleep 0.3; exit 5") as process:
        assert process.wait(PATIENCE) == 5


def test_the_deadline() -> None:
    with start("sleep", "1000", seconds=0.2) as process:
        assert process.wait(PATIENCE) == first_process.TOO_SLOW


def test_it_is_terminated() -> None:
    with start("sh", "-c", "echo started; exec sleep 1000") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.terminate()
        assert process.wait(PATIENCE) == 128 + 15


def test_who_waits_for_it_has_gone() -> None:
    with start("sh", "-c", "echo started; exec sleep 1000") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"started\n"
        process.stdin.close()
        assert process.wait(PATIENCE) == first_process.LEFT_ALONE
