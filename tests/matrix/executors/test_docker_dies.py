"""An engine that goes away while a command runs: it is reported, and the container ends anyway."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.docker_engine import NATIVE
from tests.support.patience import PATIENCE, wait_until
from wheelproof.matrix.executors.docker.engine import DEFAULT_HOST, EngineError, connect
from wheelproof.matrix.executors.docker.executor import DockerExecutor
from wheelproof.matrix.executors.docker.ownership import RUN_LABEL

pytestmark = pytest.mark.docker


class Relay:
    """A socket that hands everything to the real engine and back, until it is cut."""

    def __init__(self, path: Path) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.ends: list[socket.socket] = []
        self.threads = [threading.Thread(target=self._accept)]
        self.threads[0].start()

    def _accept(self) -> None:
        engine = os.environ.get("DOCKER_HOST", DEFAULT_HOST).removeprefix("unix://")
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(engine)
            self.ends += [here, there]
            for source, target in ((here, there), (there, here)):
                self.threads.append(threading.Thread(target=self._pass_on, args=[source, target]))
                self.threads[-1].start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def _shut(self, end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self._shut(self.listener)
        self.threads[0].join()  # so that no connection is added any more
        for end in self.ends:
            self._shut(end)
        for thread in self.threads:
            thread.join()
        for end in (self.listener, *self.ends):
            end.close()


@contextlib.contextmanager
def relay(path: Path) -> Iterator[Relay]:
    made = Relay(path)
    try:
        yield made
    finally:
        made.cut()


def states(label: str) -> list[str]:
    client = connect()
    with contextlib.closing(client):
        return [found["State"] for found in client.containers(all=True, filters={"label": label})]


# The SDK leaves a socket open that could not be connected; it is collected before the test ends.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_engine_that_goes_away_while_a_command_runs(tmp_path: Path) -> None:
    said: list[str] = []
    with relay(tmp_path / "docker.sock") as engine:
        executor = DockerExecutor(environ={"DOCKER_HOST": f"unix://{tmp_path}/docker.sock"})
        label = f"{RUN_LABEL}={executor.run_id}"

        def run() -> None:
            try:
                with executor.place(NATIVE, []) as place:
                    place.run(
                        ["sleep", "1000"], environ={}, output=tmp_path / "out", log=tmp_path / "log", deadline=PATIENCE
                    )
            except EngineError as error:
                said.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: states(label) == ["running"])
        engine.cut()
        thread.join(PATIENCE)
    assert len(said) == 1
    assert said[0].startswith("the Docker engine disconnected")
    wait_until(lambda: not states(label))
    gc.collect()
