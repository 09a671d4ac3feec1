"""Supervised children: all real, and what is left of them is asked of /proc."""

from __future__ import annotations

import ast
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE, has_ended, in_time, wait_until
from wheel_checks import process
from wheel_checks.interrupts import TERMINATED, terminated_as
from wheel_checks.process import Child, Ended, StartError, find_program, run, without_relative
from wheel_checks.process_tree import family

ROOT = Path(__file__).resolve().parents[1]

# Says which process it is, and neither listens nor ends; so does a process that it starts, in its own session when
# that is requested.
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
depth = int(sys.argv[1])
if depth:
    below = [sys.executable, "-c", sys.argv[2], str(depth - 1), *sys.argv[2:]]
    subprocess.Popen(below, start_new_session="session" in sys.argv)
os.write(1, f"{os.getpid()}\\n".encode())
time.sleep(600)
"""

# Runs a stubborn child and writes its processes to a file, as our own program does that is ended from outside.
PROGRAM = """
import sys, threading
from wheel_checks.process import run
where, reported, *command = sys.argv[1:]
def work():
    with open(reported, "wb", buffering=0) as file:
        run(command, sinks={1: file.write})
if where == "thread":
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
"""


def stubborn(depth: int, *more: str) -> list[str]:
    return [sys.executable, "-c", STUBBORN, str(depth), STUBBORN, *more]


def pids(text: bytes) -> list[int]:
    return [int(line) for line in text.split()]


@pytest.fixture(params=[True, False], ids=["pidfd", "polling"])
def _wakes_up(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel's descriptors of processes, and where there aren't any."""

    def refuse(_pid: int) -> int:
        raise OSError(38, "Function not implemented")

    if not request.param:
        monkeypatch.setattr(os, "pidfd_open", refuse)


@pytest.mark.usefixtures("_wakes_up")
def test_a_child_that_ends() -> None:
    ended = run(["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], cwd="/usr")

    assert (ended.status, ended.timed_out) == (3, False)
    assert (ended.output, ended.errors) == (b"out\n/usr\n", b"err\n")


def test_a_child_that_a_signal_ended() -> None:
    ended = run(["sh", "-c", "kill -SEGV $$"])

    assert (ended.status, ended.timed_out) == (-signal.SIGSEGV, False)


def test_it_has_the_environment_that_it_is_given_and_no_input() -> None:
    assert run(["env"], environment={"ONLY": "this"}).output == b"ONLY=this\n"
    assert run(["cat"]).status == 0


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("/nowhere/program", "No such file or directory"),
        ("/usr", "Permission denied"),
        ("null\0byte", "embedded null byte"),
    ],
)
def test_a_program_that_cannot_be_started(command: str, reason: str) -> None:
    with pytest.raises(StartError, match=reason) as error:
        run([command])

    assert error.value.reason == reason


def run_until_heard(command: list[str], lines: int, **options: Any) -> Ended:
    """Run with a deadline that is just long enough for these lines of output, however busy the machine is."""
    return in_time(
        lambda deadline: run(command, deadline=deadline, **options), lambda ended: ended.output.count(b"\n") == lines
    )


@pytest.mark.usefixtures("_wakes_up")
@pytest.mark.parametrize("where", ["group", "session"])
def test_at_the_deadline_all_are_killed_even_those_that_do_not_listen(where: str) -> None:
    """Also grandchildren in their own sessions."""
    ended = run_until_heard(stubborn(2, where), 3, first=signal.SIGTERM, grace=0.1)

    assert ended.status == -signal.SIGKILL
    wait_until(lambda: all(map(has_ended, pids(ended.output))))


def test_one_that_listens_ends_in_good_order() -> None:
    script = "trap 'echo late; exit 7' TERM; echo ready; while :; do sleep 0.01; done"
    ended = run_until_heard(["sh", "-c", script], 1, first=signal.SIGTERM, grace=PATIENCE)

    assert (ended.status, ended.output) == (7, b"ready\n")


def test_at_its_deadline_it_can_be_looked_at() -> None:
    seen: list[int] = []
    ended = run_until_heard(
        ["sh", "-c", "echo $$; exec sleep 600"], 1, at_deadline=lambda pid: seen.extend(family(pid))
    )

    assert seen[-1] == pids(ended.output)[0]


@pytest.mark.parametrize("limit", [0, 1000])
def test_output_is_bounded(limit: int) -> None:
    script = "yes a | head -c 1000000; yes b | head -c 1000000 >&2; echo last >&2"
    ended = run(["sh", "-c", script], limit=limit)

    assert ended.output == b"a\n" * (limit // 2)
    assert len(ended.errors) == limit
    assert ended.errors.endswith(b"b\nlast\n"[-limit:] if limit else b"")


def test_sinks_take_what_is_written_also_to_other_descriptors() -> None:
    reading, writing = os.pipe()
    words, errors = bytearray(), bytearray()
    with os.fdopen(writing, "wb") as both:
        ended = run(
            ["sh", "-c", "echo out; echo err >&2"], stdout=both, sinks={reading: words.extend, 2: errors.extend}
        )
    os.close(reading)

    assert bytes(words + errors) == b"out\nerr\n"
    assert (ended.output, ended.errors) == (b"", b"")


def test_a_sink_that_fails_ends_the_child() -> None:
    heard: list[int] = []

    def fail(chunk: bytes) -> None:
        heard.extend(pids(chunk))
        raise ValueError("full")

    with pytest.raises(ValueError, match="full"):
        run(stubborn(0), sinks={1: fail})
    assert has_ended(heard[0])


@pytest.mark.usefixtures("_wakes_up")
def test_a_grandchild_that_keeps_the_pipe_open_holds_nothing_up() -> None:
    ended = run(["sh", "-c", "sleep 600 & echo $!"])
    left = run(["sh", "-c", "setsid sleep 600 & echo $!"])
    os.kill(pids(left.output)[0], signal.SIGKILL)  # it had left the group, and its parent before its grandparent

    assert (ended.timed_out, left.timed_out) == (False, False)
    wait_until(lambda: has_ended(pids(ended.output)[0]))


def test_a_grandchild_that_writes_without_end_holds_nothing_up(tmp_path: Path) -> None:
    seen = bytearray()

    def see(chunk: bytes) -> None:
        seen.extend(chunk[: 1000 - len(seen)])
        (tmp_path / "seen").touch()

    script = f"setsid yes & echo $! >{tmp_path}/pid; until [ -e {tmp_path}/seen ]; do sleep 0.01; done"
    ended = run(["sh", "-c", script], sinks={1: see})
    with suppress(ProcessLookupError):  # it may have ended by SIGPIPE already
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

    assert (ended.timed_out, bytes(seen)) == (False, b"y\n" * 500)


@pytest.mark.parametrize(
    ("where", "number", "status"),
    [
        ("main", signal.SIGINT, -signal.SIGINT),
        ("main", signal.SIGTERM, TERMINATED),
        ("main", signal.SIGKILL, -signal.SIGKILL),
        ("thread", signal.SIGTERM, -signal.SIGTERM),
        ("thread", signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_whatever_ends_the_parent_ends_its_children(tmp_path: Path, where: str, number: int, status: int) -> None:
    told = tmp_path / "pids"
    told.touch()
    command = [sys.executable, "-c", PROGRAM, where, str(told), *stubborn(1)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as parent:
        wait_until(lambda: told.read_bytes().count(b"\n") == 2)
        parent.send_signal(number)
        assert parent.wait(PATIENCE) == status

    wait_until(lambda: all(map(has_ended, pids(told.read_bytes()))))


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_an_interrupt_while_a_child_starts_ends_it(
    monkeypatch: pytest.MonkeyPatch, number: int, raised: type[BaseException]
) -> None:
    """It runs already, and nothing but the call that starts it knows of it."""
    started: list[int] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self.pid)
            signal.raise_signal(number)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(raised):
        run(["sleep", "1000"])

    assert has_ended(started[0])
    assert not process._ours.children


def test_a_signal_is_ignored_where_its_user_ignores_it() -> None:
    script = "import os, signal; from wheel_checks.process import run\n"
    script += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(run(['sh', '-c', 'kill -TERM $PPID']).status)"
    answer = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)

    assert answer.stdout == b"0\n"


def test_a_second_signal_does_not_disturb_the_clean_up() -> None:
    cleaned = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt), terminated_as(KeyboardInterrupt()):
        work()

    assert cleaned
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_without_a_shell_there_is_no_guard_and_all_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.Popen

    def refuse(command: list[str], **options: Any) -> Any:
        if command[0] == "/bin/sh":
            raise FileNotFoundError(2, "No such file or directory")
        return real(command, **options)

    monkeypatch.setattr(process, "_ours", process._Running())
    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = open_descriptors()

    assert run(["echo", "hello"]).output == b"hello\n"
    assert open_descriptors() == before


def test_a_fork_does_not_watch_over_the_children_of_its_parent() -> None:
    script = """
import os
from tests.support.patience import PATIENCE, has_ended, in_time, wait_until
from wheel_checks import process
child = process.Child(["sleep", "600"])
if os.fork() == 0:
    status = process.run(["true"]).status
    os._exit(status or len(process._ours.children))
_, status = os.wait()
print(status, child.has_ended)
child.end()
"""
    answer = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)

    assert (answer.stdout, answer.stderr) == (b"0 False\n", b"")


def test_a_process_that_has_the_number_of_an_ended_grandchild_is_spared() -> None:
    other, child = Child(["sleep", "600"]), Child(["sleep", "600"])
    process._ours.kill(child, {other.pid: "the start time of the grandchild"})
    child.end()

    assert not other.has_ended
    other.end()


def test_lines_of_a_child_that_reads_and_inherits() -> None:
    reading, writing = os.pipe()
    child = Child(
        ["sh", "-c", f"cat; printf 'no end of line' ; echo inherited >/dev/fd/{writing}"],
        stdin=b"one\ntwo\nthree",
        pass_fds=[writing],
    )
    heard: list[str] = []
    while (lines := child.lines()) is not None:
        heard += lines
    assert child.follow({}, time.monotonic() + PATIENCE)
    child.end()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"inherited\n"

    assert heard == ["one", "two"]
    assert child.status == 0


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> set[str]:
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.mark.usefixtures("_wakes_up")
def test_neither_pipes_nor_threads_nor_zombies_are_left() -> None:
    run(["true"])  # which starts the guard
    gc.collect()  # what other tests have left
    before = open_descriptors(), threading.active_count(), children()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        run(["sh", "-c", "echo out; echo err >&2"])
        run(["sleep", "600"], deadline=0)
        with pytest.raises(StartError):
            run(["/nowhere/program"])
        child = Child(["cat"], stdin=b"one\n")
        child.lines()
        child.end()
        del child
        gc.collect()

    assert (open_descriptors(), threading.active_count(), children()) == before


def test_an_interpreter_leaves_without_a_warning() -> None:
    script = "from wheel_checks.process import run; print(run(['echo', 'hello']).output)"
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", script]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)

    assert (answer.stdout, answer.stderr) == (b"b'hello\\n'\n", b"")


# How a process is started in Python, whatever the module is called here.
STARTS = re.compile(
    r"(os\.(fork\w*|exec\w+|spawn\w+|posix_spawn\w*|system|popen)|pty\.(?:fork|spawn)|subprocess|multiprocessing)"
)
EXCEPTIONS = {
    "tools/wheelproof/matrix/executors/docker/first_process.py",
    "tools/wheelproof/matrix/executors/docker/image.py",
    "tools/wheelproof/matrix/inside/run_command.py",
    *(f"tools/wheelproof/pins/guard/inside/{name}.py" for name in ("guarded", "main", "uv_front")),
}


def test_children_are_started_in_one_place() -> None:
    """The exceptions are listed, with their reasons, in docs/architecture.md."""
    found = set()
    for folder in ("tools", "wheel_checks"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if STARTS.search(text) and any(STARTS.fullmatch(name) for name in names(ast.parse(text))):
                found.add(str(path.relative_to(ROOT)))

    assert found == {"wheel_checks/process.py"} | EXCEPTIONS
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Child processes\n")[2].partition("\n## ")[0]
    assert {path.removeprefix("tools/wheelproof/") for path in EXCEPTIONS} <= set(re.findall(r"`([\w/.]+)`", section))


def names(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported, and what is taken from modules."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=imported):
                yield from (alias.name.partition(".")[0] for alias in imported)
            case ast.ImportFrom(module=str(module), names=imported):
                yield module.partition(".")[0]
                yield from (f"{module}.{alias.name}" for alias in imported)
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                yield f"{module}.{name}"


# Search paths


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("PATH", "/a:.:bin::/c", "/a:/c"),
        ("PATH", "/a:/b", "/a:/b"),
        ("PATH", ".", None),
        ("PYTHONPATH", ":/x", "/x"),
        ("PYTHONPATH", "/a;b:/c", "/a;b:/c"),
        ("PYTHONHOME", "python", None),
        ("PYTHONUSERBASE", ".local", None),
        ("PYTHONPYCACHEPREFIX", "cache", None),
        ("LD_LIBRARY_PATH", "/a;.:/b:", "/a:/b"),
        ("LD_PRELOAD", "libjemalloc.so.2 ./evil.so", "libjemalloc.so.2"),
        ("LD_PRELOAD", "libjemalloc.so.2 /x/y.so", "libjemalloc.so.2 /x/y.so"),
        ("LD_AUDIT", "evil.so", None),
        ("OTHER", ".:", ".:"),
    ],
)
def test_no_child_searches_the_current_folder(name: str, value: str, kept: str | None) -> None:
    expected = {"HOME": "/h"} if kept is None else {"HOME": "/h", name: kept}
    assert without_relative({"HOME": "/h", name: value}) == expected


def test_a_child_gets_no_relative_entry() -> None:
    script = "import os; print(os.environ['PYTHONPATH'], 'PYTHONHOME' in os.environ)"
    variables = {**os.environ, "PYTHONPATH": ".:/x:", "PYTHONHOME": "."}
    assert run([sys.executable, "-c", script], environment=variables).output == b"/x False\n"


def test_a_program_of_the_current_folder_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for path in ("", ".", ":", f"{tmp_path.name}:."):
        assert find_program("uv", {"PATH": path}) is None
    assert find_program("uv", {"PATH": f".:{tmp_path}"}) == str(program)
    assert find_program("./uv", {"PATH": ""}) == "./uv"  # a path says which one is meant
