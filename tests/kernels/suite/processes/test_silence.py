"""A silent process that waits hangs; a process without CPU time, on a busy machine or stopped, does not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernels_smoke.suite.processes.silence import TICK, Silence, children
from tests.support.torch_worker import PYTHON, ROOT

LOOP = "while True: pass"
SLEEP = "import time; time.sleep(600)"
OF_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LOOP!r}])"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process does")

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs of Python, each in its own group, which is gone after the test."""
    with ExitStack() as stack:

        def start(program: str, *before: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([*before, sys.executable, "-c", program], start_new_session=True)
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
            return process

        yield start


def looked_at(silence: Silence, until: Callable[[], bool]) -> None:
    """Look as the foreman does, until something is so; a minute at most."""
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline, silence
        time.sleep(TICK / 5)
        silence.look()


def test_a_process_that_sleeps_uses_up_its_patience(start: Start) -> None:
    silence = Silence(start(SLEEP).pid)
    looked_at(silence, lambda: silence.exceeds(2.0))
    assert silence.computing < 2.0 <= silence.asleep


@pytest.mark.parametrize("program", [LOOP, OF_A_CHILD], ids=["itself", "by a child"])
def test_a_process_that_computes_is_given_more_time_and_not_all_time(start: Start, program: str) -> None:
    silence = Silence(start(program).pid)
    looked_at(silence, lambda: silence.exceeds(2.0))
    assert silence.asleep < 2.0 <= silence.computing
    assert not silence.exceeds(2.0, computing=4.0)


def test_a_process_that_gets_no_cpu_keeps_its_patience(start: Start) -> None:
    cpu = min(os.sched_getaffinity(0))
    for _ in range(8):
        start(f"import os; os.sched_setaffinity(0, {{{cpu}}})\n{LOOP}")
    process = start(f"import os; os.sched_setaffinity(0, {{{cpu}}})\n{LOOP}", "nice", "-n", "19")
    silence, begun = Silence(process.pid), time.monotonic()
    looked_at(silence, lambda: time.monotonic() - begun > 10 * TICK)
    assert silence.asleep + silence.computing < 10 * TICK / 2
    assert not silence.exceeds(10 * TICK / 2)


def test_a_process_that_is_stopped_keeps_its_patience_until_it_goes_on(start: Start) -> None:
    process = start(SLEEP)
    silence = Silence(process.pid)
    looked_at(silence, lambda: silence.asleep > 0)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    silence.heard()
    begun = time.monotonic()
    looked_at(silence, lambda: time.monotonic() - begun > 4 * TICK)
    assert silence.asleep == 0
    process.send_signal(signal.SIGCONT)
    looked_at(silence, lambda: silence.exceeds(2 * TICK))


def test_whoever_looks_too_late_does_not_blame_the_process(start: Start) -> None:
    silence = Silence(start(SLEEP).pid)
    time.sleep(6 * TICK)
    silence.look()
    assert silence.asleep == 2 * TICK


@pytest.mark.kernels
def test_a_kernel_that_is_stopped_is_no_hang_and_one_that_loops_for_ever_is() -> None:
    command = [PYTHON, "-m", "kernels_smoke", "--device", "interpret", "--only", "hangs", "--patience", "0.5"]
    with subprocess.Popen([*command, "--format", "json"], cwd=ROOT, stdout=subprocess.PIPE) as suite:
        (foreman,) = waited_for(lambda: children(suite.pid))
        (child,) = waited_for(lambda: [child for child in children(foreman) if seconds_of(child) > 0.5])
        os.kill(child, signal.SIGSTOP)
        time.sleep(4.0)  # it would have been killed after half of that
        assert Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        os.kill(child, signal.SIGCONT)
        document = json.loads(suite.communicate(timeout=60)[0])
    assert [record["outcome"] for record in document["cases"]] == ["hang"]


def waited_for(processes: Callable[[], list[int]]) -> list[int]:
    deadline = time.monotonic() + 60
    while not (found := processes()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def seconds_of(process: int) -> float:
    """The seconds of CPU that a process has used; none when it has gone."""
    try:
        numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")
