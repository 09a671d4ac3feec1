"""Whose a container is, and when its owner has certainly gone."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

from wheelproof.matrix.executors.docker.ownership import OWNER_LABEL, Owner, is_gone, this_process


def label(owner: Owner) -> dict[str, str]:
    return {OWNER_LABEL: str(owner)}


def test_this_process_is_there() -> None:
    assert not is_gone(label(this_process()))


def test_a_process_that_has_ended() -> None:
    ask = "from wheelproof.matrix.executors.docker.ownership import this_process; print(this_process())"
    ended = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True).stdout.decode().strip()
    assert is_gone({OWNER_LABEL: ended})


def test_a_process_that_no_one_has_reaped_yet_has_gone() -> None:
    ask = "from wheelproof.matrix.executors.docker.ownership import this_process; print(this_process())"
    with subprocess.Popen([sys.executable, "-c", ask], stdout=subprocess.PIPE) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process.stdout is not None
        assert is_gone({OWNER_LABEL: process.stdout.read().decode().strip()})


def test_another_process_that_has_its_id_now() -> None:
    assert is_gone(label(dataclasses.replace(this_process(), start="1")))


def test_a_process_before_the_machine_was_started_again() -> None:
    assert is_gone(label(dataclasses.replace(this_process(), boot="00000000-0000-0000-0000-000000000000")))


def test_nothing_is_known_of_processes_in_another_container() -> None:
    assert not is_gone(label(dataclasses.replace(this_process(), namespace="1", process="1", start="1")))


def test_containers_that_are_not_ours() -> None:
    assert not is_gone({})
    assert not is_gone({OWNER_LABEL: "4711"})
