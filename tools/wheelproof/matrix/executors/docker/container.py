"""One command in one container: made, attached to, started, followed to its end, and gone."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wheel_checks.process.child import Ended
from wheelproof.matrix.executors.base import Mount
from wheelproof.matrix.executors.commands import MOST_OUTPUT, Kept
from wheelproof.matrix.executors.docker.engine import EngineError, answering, asking

if TYPE_CHECKING:  # the SDK is an extra, and takes a third of a second to import
    from docker import APIClient

FIRST_PROCESS = Path(__file__).with_name("first_process.py")
FIRST_PROCESS_INSIDE = "/wheelproof-first-process.py"
KILLED = 137  # 128 + SIGKILL
GRACE = 30.0  # seconds after the deadline in which the first process ends the container, should no one else
_STDOUT, _STDERR = 1, 2  # as the engine numbers the streams


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a container: bytes of memory (``scratch`` of them in /tmp), processes, and processors.

    ``output`` are the bytes of standard output, and of standard error, that are kept.
    """

    memory: int = 8 << 30
    scratch: int = 2 << 30
    processes: int = 1024
    processors: float = float(os.cpu_count() or 1)
    output: int = MOST_OUTPUT


@dataclass(frozen=True, slots=True)
class Specification:
    """Everything about the containers of one cell but the command. ``platform`` is such as "linux/arm64"."""

    image: str
    platform: str
    python: str
    mounts: tuple[Mount, ...]
    labels: Mapping[str, str]
    limits: Limits
    gpu: bool = False
    network: str = "none"

    def container(self, client: APIClient, command: Sequence[str], environ: Mapping[str, str], seconds: float) -> str:
        """Make a container that will run ``command`` for at most ``seconds``; its id. Raises EngineError."""
        import docker.types

        mounts = (*self.mounts, Mount(FIRST_PROCESS, FIRST_PROCESS_INSIDE))
        host = client.create_host_config(
            auto_remove=True,
            cap_drop=["ALL"],
            device_requests=[docker.types.DeviceRequest(count=-1, capabilities=[["gpu"]])] if self.gpu else None,
            log_config=docker.types.LogConfig(type="none"),  # else all output is written to the engine's disk again
            mem_limit=self.limits.memory,
            memswap_limit=self.limits.memory,
            mounts=[
                docker.types.Mount(mount.target, str(mount.source.resolve()), "bind", read_only=not mount.writable)
                for mount in mounts
            ],
            nano_cpus=int(self.limits.processors * 1e9),
            network_mode=self.network,
            pids_limit=self.limits.processes,
            read_only=True,
            security_opt=["no-new-privileges"],
            tmpfs={"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={self.limits.scratch}"},  # noqa: S108  # inside
        )
        made = client.create_container(
            self.image,
            list(command),
            entrypoint=[self.python, "-I", "-S", FIRST_PROCESS_INSIDE, str(seconds)],  # also instead of the image's
            environment=dict(environ),
            host_config=host,
            labels=dict(self.labels),
            platform=self.platform,
            stdin_open=True,
            use_config_proxy=False,
            user=f"{os.getuid()}:{os.getgid()}",
            working_dir="/tmp",  # noqa: S108  # of the container
        )
        return str(made["Id"])


def run(
    client: APIClient,
    specification: Specification,
    command: Sequence[str],
    *,
    environ: Mapping[str, str],
    output: Path,
    log: Path,
    deadline: float,
) -> Ended:
    """Run ``command`` in its own container, which is gone afterwards, however this ends.

    Standard output goes to ``output``, standard error is appended to ``log``, of each as much as the limits allow.
    Raises EngineError when the engine cannot run it, and OSError when a file cannot be written.
    """
    started, limits = time.monotonic(), specification.limits
    with output.open("wb") as out, log.open("ab") as err, contextlib.ExitStack() as leaving:
        with answering(f"creating a container from {specification.image}"):
            container = specification.container(client, command, environ, deadline + GRACE)
        leaving.callback(remove, client, container)
        with answering(f"starting {specification.python} in {specification.image}"):
            # Both before the start, so that nothing is missed.
            filters = json.dumps({"container": [container], "type": ["container"]})
            events = leaving.enter_context(asking(client, "GET", "/events", filters=filters))
            path, streams = f"/containers/{container}/attach", {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            attached = leaving.enter_context(asking(client, "POST", path, **streams))
            connection = leaving.enter_context(socket.socket(fileno=os.dup(attached.raw.fileno())))
            leaving.callback(_hang_up, connection)
            client.start(container)
        files = {number: Kept(file, limits.output) for number, file in ((_STDOUT, out), (_STDERR, err))}
        try:
            for stream, data in frames(_chunks(connection, started + deadline)):
                files[stream].write(data)
        except _TooLateError:
            return Ended(KILLED, time.monotonic() - started, timed_out=True)
        status, out_of_memory = _end(events.iter_lines(chunk_size=1))
        if out_of_memory:
            err.write(f"killed: more than {limits.memory >> 20} MiB of memory were needed\n".encode())
    return Ended(status, time.monotonic() - started)


def remove(client: APIClient, container: str) -> bool:
    """Kill and remove a container; False when it had gone already. Raises EngineError."""
    import docker.errors

    with answering("removing a container"):
        try:
            client.remove_container(container, force=True)
        except docker.errors.NotFound:
            return False
        except docker.errors.APIError as error:
            if error.status_code == 409:  # its removal is on the way
                return False
            raise
    return True


def frames(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The stream number and the bytes of the output of an attached container without a terminal.

    In the Engine API ("Stream format" of /containers/{id}/attach) a frame is the number, three zeros, the length as
    four bytes, big endian, and the payload. A payload is given in pieces, as it comes.
    """
    header = b""
    stream = left = 0
    for chunk in chunks:
        view = memoryview(chunk)
        while view:
            if left:
                piece, view = view[:left], view[left:]
                left -= len(piece)
                yield stream, bytes(piece)
            else:
                missing = 8 - len(header)
                header += view[:missing]
                view = view[missing:]
                if len(header) == 8:
                    stream, left = struct.unpack(">BxxxL", header)
                    header = b""


def _hang_up(connection: socket.socket) -> None:
    """End the connection for the engine, too: it would wait for someone to read before it removes the container."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _TooLateError(Exception):
    """The deadline has passed."""


def _chunks(connection: socket.socket, end: float) -> Iterator[bytes]:
    """The output of the engine until the container has ended. Raises _TooLateError after ``end``."""
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([connection], [], [], left)[0]:
            raise _TooLateError
        try:
            chunk = connection.recv(1 << 16)
        except ConnectionError:  # the engine has stopped, which the events show
            return
        if not chunk:
            return
        yield chunk


def _end(events: Iterable[bytes]) -> tuple[int, bool]:
    """The exit status of the container, and whether it ran out of memory, once it is removed. Raises EngineError."""
    status, out_of_memory = None, False
    with answering("waiting for a container to exit"):
        for line in events:
            event = json.loads(line)
            match event["Action"]:
                case "oom":
                    out_of_memory = True
                case "die":
                    status = int(event["Actor"]["Attributes"]["exitCode"])
                case "destroy" if status is not None:
                    return status, out_of_memory
    raise EngineError("the Docker engine ended while a command ran", hint="`docker version` asks it")
