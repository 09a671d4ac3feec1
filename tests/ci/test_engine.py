"""``ci/engine.py``: an engine that is there is used and left alone; else one is started, and stopped at the end."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from ci.engine import answers, docker_engine


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_an_engine_that_answers_is_used_and_none_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "docker", "echo 20.10.24")
    put(tmp_path, "dockerd", f"touch {tmp_path}/started")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with docker_engine() as blocker:
        assert blocker == ""
    assert not (tmp_path / "started").exists()


def test_nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with docker_engine() as blocker:
        assert blocker == (
            "docker, dockerd, containerd not installed (on Debian and Ubuntu: apt-get install docker.io)"
        )


def test_only_root_can_start_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "docker", "exit 1")
    for name in ("dockerd", "containerd"):
        put(tmp_path, name, f"touch {tmp_path}/started")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    with docker_engine() as blocker:
        assert blocker == "no Docker engine answers, and only root can start one"
    assert not (tmp_path / "started").exists()


def test_an_engine_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "docker", "exit 1")
    put(tmp_path, "containerd", "exit 0")
    put(tmp_path, "dockerd", "echo one >&2; echo failed to mount: operation not permitted >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    with docker_engine() as blocker:
        assert blocker == "dockerd does not start: one failed to mount: operation not permitted"


@pytest.mark.docker
@pytest.mark.skipif(os.getuid() != 0, reason="docker lane: only root can start an engine")
def test_a_real_engine_is_started_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="wp-") as folder:  # not tmp_path: the path of a socket may not be long
        host = f"unix://{folder}/docker.sock"
        monkeypatch.setenv("DOCKER_HOST", host)
        places = {"data-root": "data", "exec-root": "run", "pidfile": "docker.pid"}
        options = [f"--host={host}", *(f"--{option}={folder}/{name}" for option, name in places.items())]
        with docker_engine(options) as blocker:
            assert blocker == ""
            assert answers()
            ask = ["docker", "info", "--format", "{{.DockerRootDir}}"]
            assert subprocess.run(ask, capture_output=True, check=True).stdout.decode().strip() == f"{folder}/data"
        assert not answers()
        assert not Path(folder, "docker.pid").exists()
