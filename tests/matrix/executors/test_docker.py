"""Commands in containers of a real engine: status, output, limits, isolation, and no leftovers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.docker_engine import EMULATED, NATIVE
from tests.support.patience import PATIENCE, in_time, wait_until
from wheel_checks.process.child import Ended
from wheelproof.matrix.executors.base import Mount
from wheelproof.matrix.executors.docker import container
from wheelproof.matrix.executors.docker.container import Limits
from wheelproof.matrix.executors.docker.engine import EngineError, connect
from wheelproof.matrix.executors.docker.executor import DockerExecutor, DockerPlace, image_of
from wheelproof.matrix.executors.docker.ownership import OWNER_LABEL, RUN_LABEL
from wheelproof.matrix.model import Cell

pytestmark = pytest.mark.docker


@dataclass(frozen=True)
class Trial:
    """A place, and the files to which its commands write."""

    place: DockerPlace
    folder: Path

    def run(self, *command: str, deadline: float = PATIENCE, **environ: str) -> Ended:
        return self.place.run(
            command, environ=environ, output=self.folder / "out", log=self.folder / "log", deadline=deadline
        )

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


@contextlib.contextmanager
def trial(
    folder: Path, cell: Cell = NATIVE, mounts: Sequence[Mount] = (), limits: Limits | None = None
) -> Iterator[Trial]:
    executor = DockerExecutor(limits=limits or Limits())
    with executor.place(cell, mounts) as place:
        yield Trial(place, folder)
    wait_until(
        lambda: containers(f"{RUN_LABEL}={executor.run_id}") == []
    )  # a busy engine is "removing" them for a while


def containers(label: str) -> list[str]:
    """The states of the containers with a label."""
    return [found["State"] for found in connect().containers(all=True, filters={"label": label})]


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 128 + 11), ("kill -KILL $$", 128 + 9)]
)
def test_the_status_of_a_command(tmp_path: Path, script: str, status: int) -> None:
    with trial(tmp_path) as here:
        ended = here.run("sh", "-c", script)
    assert (ended.status, ended.timed_out) == (status, False)


def test_output_is_replaced_and_the_log_grows(tmp_path: Path) -> None:
    with trial(tmp_path) as here:
        for word in ("one", "two"):
            here.run("sh", "-c", f"echo {word}; echo about {word} >&2")
        assert (here.out, here.log) == ("two\n", "about one\nabout two\n")


def test_large_output_comes_whole(tmp_path: Path) -> None:
    with trial(tmp_path) as here:
        assert here.run("head", "-c", "20000000", "/dev/zero").status == 0
    assert (tmp_path / "out").stat().st_size == 20_000_000


def test_a_command_that_never_stops_writing_is_ended_and_bounded(tmp_path: Path) -> None:
    with trial(tmp_path, limits=Limits(output=1000)) as here:
        ended = in_time(lambda deadline: here.run("yes", deadline=deadline), lambda _: here.out, deadline=1.0)
        assert here.out == "y\n" * 500 + "\n(more than 1000 bytes: the rest is dropped)\n"
    assert (ended.status, ended.timed_out) == (137, True)


def test_a_deadline_ends_all_that_the_command_started(tmp_path: Path) -> None:
    with trial(tmp_path) as here:
        ended = here.run("sh", "-c", "sleep 1000 & sleep 1000", deadline=1)
    assert (ended.status, ended.timed_out) == (137, True)


def test_what_the_command_left_running_ends_with_it(tmp_path: Path) -> None:
    with trial(tmp_path) as here:
        assert here.run("sh", "-c", "sleep 1000 & echo done").status == 0
        assert here.out == "done\n"


def test_memory_that_is_not_there(tmp_path: Path) -> None:
    with trial(tmp_path, limits=Limits(memory=256 << 20, scratch=16 << 20)) as here:
        assert here.run("python3", "-c", "bytearray(512 << 20)").status == 137
        assert here.log.endswith("killed: more than 256 MiB of memory were needed\n")


def test_processes_are_counted(tmp_path: Path) -> None:
    with trial(tmp_path, limits=Limits(processes=8)) as here:
        assert here.run("bash", "-c", "for i in $(seq 20); do sleep 1000 & done").status != 0
        assert "Resource temporarily unavailable" in here.log


def test_the_environment_is_the_one_that_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the caller")
    with trial(tmp_path) as here:
        here.run("env", GIVEN="1")
        names = {line.partition("=")[0] for line in here.out.splitlines()}
    assert names == {"PATH", "HOSTNAME", "HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "GIVEN"}


def test_mounts_are_read_only_by_default(tmp_path: Path) -> None:
    for name in ("given", "taken"):
        (tmp_path / name).mkdir()
    (tmp_path / "given" / "file").write_text("content\n")
    mounts = [Mount(tmp_path / "given", "/data/given"), Mount(tmp_path / "taken", "/data/taken", writable=True)]
    with trial(tmp_path, mounts=mounts) as here:
        assert here.place.inside(tmp_path / "given" / "file") == "/data/given/file"
        with pytest.raises(ValueError, match="is not below any mount"):
            here.place.inside(tmp_path / "other")
        assert here.run("sh", "-c", "cat /data/given/file; echo new > /data/taken/file; rm /data/given/file").status
        assert here.out == "content\n"
        assert "Read-only file system" in here.log
    made = tmp_path / "taken" / "file"
    assert (made.read_text(), made.stat().st_uid) == ("new\n", os.getuid())


ISOLATION = """
import json, os, socket
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
def allowed(do):
    try:
        do()
    except OSError:
        return False
    return True
print(json.dumps({
    "capabilities": [status[name] for name in ("CapEff", "CapPrm", "CapBnd")],
    "new privileges": status["NoNewPrivs"],
    "interfaces": [name for _, name in socket.if_nameindex()],
    "user": os.getuid(),
    "writes": [path for path in ("/", "/etc", "/usr", "/var", "/proc/sys/kernel", "/tmp")
               if allowed(lambda: open(path + "/wheelproof-was-here", "w"))],
    "engine": os.path.exists("/var/run/docker.sock"),
}))
"""


def test_a_container_may_do_nothing_but_compute(tmp_path: Path) -> None:
    import json

    with trial(tmp_path) as here:
        assert here.run(here.place.python, "-c", ISOLATION).status == 0, here.log
        found = json.loads(here.out)
    assert found == {
        "capabilities": ["0" * 16] * 3,
        "new privileges": "1",
        "interfaces": ["lo"],
        "user": os.getuid(),
        "writes": ["/tmp"],
        "engine": False,
    }


def test_what_is_compiled_in_the_scratch_folder_runs(tmp_path: Path) -> None:
    with trial(tmp_path) as here:
        script = "echo 'int main(){return 42;}' > /tmp/a.c && gcc -o /tmp/a /tmp/a.c && /tmp/a"
        assert here.run("sh", "-c", script).status == 42, here.log


def test_an_image_without_the_python_of_the_cell(tmp_path: Path) -> None:
    cell = Cell("other-python", NATIVE.platform, "3.9", "2.11.0", image=image_of(NATIVE))
    with (
        trial(tmp_path, cell) as here,
        pytest.raises(EngineError, match=r"lacks the Python of the cell \(starting python3\.9 in"),
    ):
        here.run("true")


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    from wheel_checks.errors import SourceError

    with trial(tmp_path / "missing") as here, pytest.raises(SourceError, match="cannot be written"):
        here.run("true")


@pytest.mark.emulation
def test_a_cell_of_the_other_architecture(tmp_path: Path) -> None:
    with trial(tmp_path, EMULATED) as here:
        assert here.run("uname", "-m").status == 0
        assert here.out == f"{EMULATED.platform}\n"
        assert here.run("sh", "-c", "exit 7").status == 7


# A run in its own process, which names its owner, then runs a command until something happens to it.
LONG = """
import signal, sys
from pathlib import Path
from tests.support.docker_engine import NATIVE
from wheelproof.matrix.executors.docker.executor import DockerExecutor

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
executor = DockerExecutor()
print(executor.run_id, flush=True)
with executor.place(NATIVE, []) as place:
    folder = Path(sys.argv[1])
    place.run(["sleep", "1000"], environ={}, output=folder / "out", log=folder / "log", deadline=1000)
"""


@contextlib.contextmanager
def long_run(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process whose command runs in a container, and the label of that container."""
    with subprocess.Popen([sys.executable, "-c", LONG, str(folder)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            label = f"{RUN_LABEL}={process.stdout.readline().decode().strip()}"
            wait_until(lambda: containers(label) == ["running"])
            yield process, label
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with long_run(tmp_path) as (process, label):
        process.send_signal(number)
        assert process.wait(PATIENCE) != 0
        assert containers(label) == []


def test_a_killed_run_leaves_nothing_that_runs_for_long(tmp_path: Path) -> None:
    with long_run(tmp_path) as (process, label):
        process.kill()
        process.wait(PATIENCE)
        wait_until(lambda: containers(label) == [])


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    client = connect()
    gone = "00000000-0000-0000-0000-000000000000/1/1/1"
    image = image_of(NATIVE)
    left = client.create_container(image, ["true"], labels={OWNER_LABEL: gone})["Id"]
    ours = client.create_container(image, ["true"], labels={"someone": "else"})["Id"]
    try:
        executor = DockerExecutor()
        assert len(executor.sweep()) >= 1
        assert executor.sweep() == []
        assert containers(f"{OWNER_LABEL}={gone}") == []
        assert containers("someone=else") == ["created"]
    finally:
        for made in (left, ours):
            container.remove(client, made)
