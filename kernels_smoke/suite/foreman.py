"""The process that imports torch and triton once and forks a child for each task. It never starts CUDA itself.

A child that touches a bad address takes its CUDA context with it, one that hangs never comes back, and an import of
torch costs two seconds: so the import is done once, here, and everything else in children that may die.

It reads tasks from standard input, one JSON object a line::

    {"id": 1, "task": "probes.probing:basic", "arguments": {...}, "patience": 30.0, "computing": 1.0,
     "environment": {"CUDA_VISIBLE_DEVICES": "GPU-..."}}, on one line; the environment is that of the child alone

and writes events to standard output, one JSON object a line::

    {"event": "ready", "torch": {...} or null, "triton": {...} or null, "faults": {"torch": "why it is not imported"}}
    {"event": "alive"}, every half second while there are children
    {"event": "record", "id": 1, "record": {...}}
    {"event": "done", "id": 1, "status": 0, "hang": false, "words": "the last lines that the child wrote"}

A task is a function ``name(emit, **arguments)`` of a module of this package. A child from which nothing came while it
slept for ``patience`` seconds, or computed for ``computing`` times as many (see ``silence.py``), is killed, and its end
says ``hang``. ``status`` is the exit code, or the negative signal number.
"""

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from kernels_smoke.suite import registry
from kernels_smoke.suite.silence import TICK, Silence

LAST_WORDS = 1500  # characters that are kept of the beginning of a child's output, and of its end
GRACE = 5.0  # seconds in which a killed child must be gone; one that waits for a hung driver does not go
CHUNK = 1 << 16
PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass
class Child:
    """A forked child: its process, the pipe of its records, and what it wrote so far."""

    task: int
    pid: int
    pipe: int
    words: BinaryIO
    patience: float
    computing: float
    silence: Silence
    buffer: bytes = b""
    hang: bool = False


@dataclass
class Foreman:
    """Forks the children and reads what they send."""

    replies: BinaryIO
    children: dict[int, Child] = field(default_factory=dict)  # by the descriptor of their pipe
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def say(self, event: dict[str, Any]) -> None:
        """Write one event."""
        self.replies.write(json.dumps(event).encode() + b"\n")
        self.replies.flush()

    def work(self) -> None:
        """Take tasks until standard input ends, then wait for the children that are left."""
        self.selector.register(0, selectors.EVENT_READ)
        buffer, listening, said = b"", True, 0.0
        while listening or self.children:
            for key, _ in self.selector.select(timeout=TICK if self.children else None):
                if key.fd != 0:
                    self._read(self.children[key.fd])
                    continue
                chunk = os.read(0, CHUNK)
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    self._fork(json.loads(line))
                if not chunk:
                    self.selector.unregister(0)
                    listening = False
            self._kill_the_silent()
            if self.children and time.monotonic() - said >= TICK:
                said = time.monotonic()
                self.say({"event": "alive"})

    def _fork(self, task: dict[str, Any]) -> None:
        reading, writing = os.pipe()
        words = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the child
        foreman, pid = os.getpid(), os.fork()
        if pid == 0:
            os.close(reading)
            _child(task, writing, words, foreman)
        os.close(writing)
        child = Child(task["id"], pid, reading, words, task["patience"], task["computing"], Silence(pid))
        self.children[reading] = child
        self.selector.register(reading, selectors.EVENT_READ)

    def _read(self, child: Child) -> None:
        chunk = os.read(child.pipe, CHUNK)
        child.silence.heard()
        *lines, child.buffer = (child.buffer + chunk).split(b"\n")
        for line in lines:
            self.say({"event": "record", "id": child.task, "record": json.loads(line)})
        if not chunk:
            self._end(child)

    def _kill_the_silent(self) -> None:
        for child in list(self.children.values()):
            child.silence.look()
            if child.silence.exceeds(child.patience, child.computing):
                child.hang = True
                _kill(child.pid)
                self._end(child)

    def _end(self, child: Child) -> None:
        self.selector.unregister(child.pipe)
        os.close(child.pipe)
        del self.children[child.pipe]
        status = _wait_for(child.pid, GRACE)
        _kill(child.pid)  # whatever it started
        event = {
            "event": "done",
            "id": child.task,
            "status": status,
            "hang": child.hang,
            "words": _last_words(child.words),
        }
        child.words.close()
        self.say(event)


def _last_words(file: BinaryIO) -> str:
    """The beginning and the end of what a child wrote: a crash handler says first what happened, a traceback last."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    words = file.read(LAST_WORDS)
    if size > 2 * LAST_WORDS:
        words += b"\n...\n"
    file.seek(max(len(words), size - LAST_WORDS))
    return (words + file.read()).decode(errors="replace")


def _child(task: dict[str, Any], writing: int, words: BinaryIO, foreman: int) -> None:
    """Run one task in the process that was just forked. Does not return."""
    status = 1
    try:
        os.setsid()
        end_with_parent()
        if os.getppid() != foreman:  # it was killed before this line
            os._exit(status)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.environ.update(task.get("environment", {}))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(words.fileno(), 1)
        os.dup2(words.fileno(), 2)
        faulthandler.enable(file=2)

        def emit(record: dict[str, Any]) -> None:
            line = json.dumps(record).encode() + b"\n"
            while line:
                line = line[os.write(writing, line) :]

        registry.know(registry.Entry(**own) for own in task.get("own", ()))
        module, _, function = task["task"].partition(":")
        getattr(importlib.import_module(f"kernels_smoke.suite.{module}"), function)(emit, **task["arguments"])
        status = 0
    except BaseException:  # the last frame of this process: everything becomes last words
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)  # no clean-up of the foreman's state, and no wait for a broken CUDA context


def end_with_parent() -> None:
    """Let this process end when its parent does, whatever kills that; on Linux alone."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _wait_for(pid: int, seconds: float) -> int:
    """The exit code of ``pid``, or its negative signal; -9 for one that is still there after ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    _kill(pid)
    time.sleep(0.05)
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else -signal.SIGKILL


def imported() -> dict[str, Any]:
    """Import torch and triton; the event that says which there are, and why one cannot be imported."""
    event: dict[str, Any] = {"event": "ready", "torch": None, "triton": None, "faults": {}}
    warming = threading.Thread(target=_warm_up, daemon=True)
    for name in ("triton", "torch"):
        if name == "torch" and event["triton"]:
            warming.start()  # next to the import, which takes longer
        try:
            module = importlib.import_module(name)
        except BaseException as error:  # a broken installation may raise anything, SystemExit too
            event["faults"][name] = f"{type(error).__name__}: {error}"
            continue
        event[name] = {"version": str(getattr(module, "__version__", "")), "path": str(getattr(module, "__file__", ""))}
        if name == "torch":
            event[name]["cuda"] = str(getattr(module.version, "cuda", None) or "")
            event[name]["hip"] = str(getattr(module.version, "hip", None) or "")
    if warming.is_alive():
        warming.join()  # no thread may run when children are forked: they would inherit its locks
    return event


def _warm_up() -> None:
    with contextlib.suppress(Exception):  # what is wrong with Triton, the probes and the kernels will say
        importlib.import_module("kernels_smoke.suite.compiling.ahead_of_time").warm_up()


def main() -> None:
    """Read tasks from standard input until it ends, or until the parent does."""
    end_with_parent()
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an import prints must not stand among the events
    foreman = Foreman(replies)
    foreman.say(imported())
    gc.freeze()  # what was imported stays: children need not look through it, which would copy it
    foreman.work()


if __name__ == "__main__":
    main()
