"""No engine, a refusing one, another program, one without a cell's requirements: each gets a sentence."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.docker_engine import HERE, NATIVE
from wheel_checks.model import Unavailable
from wheelproof.matrix.executors.docker import engine
from wheelproof.matrix.executors.docker.engine import EngineError, connect
from wheelproof.matrix.executors.docker.executor import DockerExecutor
from wheelproof.matrix.executors.venv import VenvExecutor
from wheelproof.matrix.model import Cell, Smoke


@contextlib.contextmanager
def fake_engine(path: Path, answers: Mapping[str, tuple[int, object]]) -> Iterator[dict[str, str]]:
    """A server at the socket ``path``: to a request whose path ends so it gives the status and the JSON; else 404."""

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError), connection.makefile("rwb") as stream:
                request = stream.readline().decode().split()
                while stream.readline() not in {b"\r\n", b""}:
                    pass
                if not request:
                    continue
                ends = (found for end, found in answers.items() if request[1].partition("?")[0].endswith(end))
                status, content = next(ends, (404, {"message": "page not found"}))
                body = json.dumps(content).encode()
                stream.write(b"HTTP/1.1 %d Any\r\nContent-Type: application/json\r\n" % status)
                stream.write(b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, args=[listener])
        thread.start()
        try:
            yield {"DOCKER_HOST": f"unix://{path}"}
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


VERSION = {"/version": (200, {"ApiVersion": "1.41", "Version": "20.10.24"})}


def test_without_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(EngineError, match=r"SDK for Python is not installed \(.* -m pip install 'docker>=7'\)"):
        connect({})


def test_no_socket(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"no Docker engine is running: .*/none.sock does not exist .*docker.io"):
        connect({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})


def test_a_socket_at_which_no_one_listens(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    with pytest.raises(EngineError, match=r"no Docker engine answers at .*: Connection refused \(on Debian"):
        connect({"DOCKER_HOST": f"unix://{tmp_path}/left.sock"})


def test_a_socket_that_this_user_may_not_use(tmp_path: Path) -> None:
    """Asked by a child that is no one when the tests run as root, whom nothing is forbidden."""
    with fake_engine(tmp_path / "docker.sock", VERSION) as environ:
        (tmp_path / "docker.sock").chmod(0)
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == os.getuid() and folder.name.startswith(("pytest-", tmp_path.name)):
                folder.chmod(0o755)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setuid(65534)
                try:
                    engine._knock(environ["DOCKER_HOST"])
                except EngineError as error:
                    os.write(writing, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as told:
            assert "may not use the Docker engine at" in (said := told.read())
            assert 'sudo usermod -aG docker "$USER"' in said


@pytest.mark.parametrize("host", ["tcp://192.0.2.1:2375", "ssh://someone@elsewhere"])
def test_an_engine_of_another_machine(host: str) -> None:
    with pytest.raises(EngineError, match=r"DOCKER_HOST is .*; expected unix:// and the path of a socket"):
        connect({"DOCKER_HOST": host})


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/version": (200, ["not", "an", "engine"])},
        {"/version": (200, {"Version": "without an API"})},
        {"/version": (500, {"message": "broken"})},
        {"/version": (200, {"ApiVersion": "one"})},
    ],
)
def test_a_server_that_is_no_engine(tmp_path: Path, answers: dict[str, tuple[int, object]]) -> None:
    with (
        fake_engine(tmp_path / "docker.sock", answers) as environ,
        pytest.raises(EngineError, match="is not that of a Docker engine"),
    ):
        connect(environ)


def test_an_engine_that_is_too_old(tmp_path: Path) -> None:
    with (
        fake_engine(tmp_path / "docker.sock", {"/version": (200, {"ApiVersion": "1.40"})}) as environ,
        pytest.raises(EngineError, match=r"too old; expected version 20\.10 or later"),
    ):
        connect(environ)


def test_a_server_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TIMEOUT", 1)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "docker.sock"))
        listener.listen()
        with pytest.raises(EngineError, match="is not that of a Docker engine"):
            connect({"DOCKER_HOST": f"unix://{tmp_path}/docker.sock"})


def blocker(tmp_path: Path, answers: Mapping[str, tuple[int, object]], cell: Cell) -> Unavailable | None:
    with fake_engine(tmp_path / "docker.sock", VERSION | dict(answers)) as environ:
        return DockerExecutor(environ=environ, binfmt=tmp_path / "binfmt_misc").blocker(cell)


def test_no_image_of_ours_and_the_command_that_makes_it(tmp_path: Path) -> None:
    found = blocker(tmp_path, {"/json": (404, {"message": "No such image"})}, NATIVE)
    assert found is not None
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[HERE]
    assert found.reason == f"the Docker engine has no image wheelproof/debian:bookworm-{architecture}"
    assert found.hint == f"wheelproof matrix image --platform {HERE} --python 3.11"


def test_no_image_with_the_packages_of_a_cell(tmp_path: Path) -> None:
    cell = replace(NATIVE, system_packages=("libgl1", "jq"))
    found = blocker(tmp_path, {"/json": (404, {"message": "No such image"})}, cell)
    assert found is not None
    assert found.hint == (
        f"wheelproof matrix image --platform {HERE} --python 3.11 --system-package libgl1 --system-package jq"
    )
    here = VenvExecutor().blocker(replace(cell, platform=HERE))
    assert here is not None
    assert here.reason == "the cell needs Debian packages, libgl1 and jq, which are not installed into this host"


@pytest.mark.parametrize("python", ["3.12", "3.13t"])
def test_a_python_that_no_release_of_debian_has(tmp_path: Path, python: str) -> None:
    found = blocker(tmp_path, {}, Cell("other", HERE, python, "2.11.0"))
    assert found is not None
    assert found.reason == f"no Debian release has Python {python}to build an image from"
    assert found.hint == "Debian has 3.11, 3.13 and 3.14; or set the key image of the cell to an image that has it"


def test_no_image_of_somebody_else(tmp_path: Path) -> None:
    cell = Cell("other", HERE, "3.12", "2.11.0", image="python:3.12-slim")
    found = blocker(tmp_path, {"/json": (404, {"message": "No such image"})}, cell)
    assert found is not None
    assert found.hint.startswith("docker pull --platform linux/")


def test_an_image_for_another_machine(tmp_path: Path) -> None:
    found = blocker(tmp_path, {"/json": (200, {"Architecture": "s390x"})}, NATIVE)
    assert found is not None
    assert "is for s390x, not " in found.reason


def test_no_emulator(tmp_path: Path) -> None:
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[HERE]
    found = blocker(tmp_path, {}, Cell("emulated", other, "3.11", "2.11.0"))
    assert found is not None
    assert "no emulator is registered" in found.reason


@pytest.mark.parametrize(("runtimes", "offered"), [({"runc": {}}, False), ({"runc": {}, "nvidia": {}}, True)])
def test_a_gpu_is_there_when_the_engine_offers_one(tmp_path: Path, runtimes: dict[str, object], offered: bool) -> None:
    cell = Cell("gpu", HERE, "3.11", "2.11.0", smoke=(Smoke.CUDA,))
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[HERE]
    answers = {"/json": (200, {"Architecture": architecture}), "/info": (200, {"Runtimes": runtimes})}
    found = blocker(tmp_path, answers, cell)
    assert (found is None) == offered
    assert found is None or "NVIDIA Container Toolkit" in found.hint


def test_a_blocker_is_what_a_place_fails_with(tmp_path: Path) -> None:
    executor = DockerExecutor(environ={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    with pytest.raises(EngineError, match="native cannot run in a container: no Docker engine is running"):
        executor.place(NATIVE, []).__enter__()


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("mkdir /var/lib/docker/overlay2/1: no space left on device", "the disk of the Docker engine is full"),
        ('could not select device driver "" with capabilities: [[gpu]]', "cannot pass a GPU to a container"),
        ("invalid mount config: bind source path does not exist: /x", "cannot find a folder"),
        ("something new", "the Docker engine failed"),
    ],
)
def test_what_an_engine_refuses_has_a_meaning(tmp_path: Path, said: str, meaning: str) -> None:
    answers = {
        "/json": (200, {"Architecture": {"x86_64": "amd64", "aarch64": "arm64"}[HERE]}),
        "/containers/create": (500, {"message": said}),
    }
    with fake_engine(tmp_path / "docker.sock", VERSION | answers) as environ:
        executor = DockerExecutor(environ=environ)
        with executor.place(NATIVE, []) as place, pytest.raises(EngineError, match=meaning):
            place.run(["true"], environ={}, output=tmp_path / "out", log=tmp_path / "log", deadline=60)
