"""Children that end, crash, hang, write without end, and leave children: all real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE, has_ended, in_time, wait_until
from wheel_checks.facts.host.probes import ChildEnd
from wheel_checks.process import child as child_module
from wheel_checks.process.child import end_all
from wheelproof.doctor import children
from wheelproof.doctor.children import Budget, run_child

# Its first thread waits for a vfork: in state D, as a process does that waits for a driver.
UNINTERRUPTIBLE = "#include <unistd.h>\nint main(void) { if (vfork() == 0) { sleep(60); _exit(0); } return 0; }\n"
IGNORES_CHILDREN = """
import os, signal
from wheelproof.doctor.children import run_child
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(run_child(["echo", "hello"], deadline=600, environment=os.environ)[1])
"""


def run(*command: str, deadline: float = PATIENCE, limit: int = 1 << 20) -> tuple[ChildEnd, bytes]:
    return run_child(command, deadline=deadline, environment=os.environ, limit=limit)


def shell(script: str, deadline: float = PATIENCE, limit: int = 1 << 20) -> tuple[ChildEnd, bytes]:
    return run("sh", "-c", script, deadline=deadline, limit=limit)


def ends(pid: int) -> bool:
    return wait_until(lambda: has_ended(pid))


def test_a_child_that_ends_tells_its_code_its_output_and_its_last_words() -> None:
    end, output = shell("echo result; echo first >&2; echo last >&2; exit 3")

    assert (end.exit_code, end.signal, end.hang, end.output) == (3, "", False, "first\nlast")
    assert output == b"result\n"


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (6, "SIGABRT"), (7, "SIGBUS"), (35, "signal 35")])
def test_a_signal_has_a_name(number: int, name: str) -> None:
    end, _ = shell(f"kill -{number} $$")

    assert (end.signal, end.exit_code, end.hang) == (name, -number, False)


def test_a_hanging_child_is_killed_at_its_deadline_and_says_where_it_waits() -> None:
    end, output = in_time(lambda deadline: shell("echo before; sleep 3600", deadline), lambda answer: answer[1])

    assert (end.hang, end.signal) == (True, "")
    assert 0.3 <= end.seconds < PATIENCE
    assert end.waits_in  # a name of this kernel's
    assert output == b"before\n"


def test_a_thread_in_an_uninterruptible_wait_is_the_one_that_matters(tmp_path: Path) -> None:
    (tmp_path / "waits.c").write_text(UNINTERRUPTIBLE, encoding="ascii")
    subprocess.run(["gcc", "-w", "-o", tmp_path / "waits", tmp_path / "waits.c"], check=True)

    sleeping, _ = run("sleep", "60", deadline=0.3)
    uninterruptible, _ = in_time(
        lambda deadline: run(str(tmp_path / "waits"), deadline=deadline),
        lambda answer: answer[0].waits_in not in {"", sleeping.waits_in},
    )

    assert uninterruptible.hang


def test_what_a_child_started_ends_with_it() -> None:
    hanging, output = in_time(lambda deadline: shell("sleep 3600 & echo $!; wait", deadline), lambda answer: answer[1])
    ended, more = shell("sleep 3600 & echo $!")

    assert (hanging.hang, ended.hang) == (True, False)
    assert ended.seconds < PATIENCE
    assert ends(int(output))
    assert ends(int(more))


def test_a_process_that_left_the_session_delays_nothing() -> None:
    end, output = shell("setsid sleep 3600 & echo $!")

    assert not end.hang
    assert end.seconds < PATIENCE
    os.kill(int(output), signal.SIGKILL)


def test_a_process_that_left_the_session_and_writes_without_end_delays_nothing() -> None:
    end, _ = in_time(
        lambda seconds: shell(f"setsid yes & sleep {seconds}", limit=1000), lambda answer: len(answer[1]) == 1000
    )

    assert not end.hang


def test_output_is_bounded() -> None:
    end, output = in_time(
        lambda deadline: run("yes", deadline=deadline, limit=1000), lambda answer: len(answer[1]) == 1000
    )

    assert end.hang
    assert output == b"y\n" * 500


def test_last_words_are_bounded() -> None:
    end, _ = shell("seq 1 100000 >&2")

    assert end.output.splitlines() == [str(number) for number in range(100001 - children.LAST_LINES, 100001)]


def test_a_child_that_closes_its_output_and_lives_on_is_waited_for() -> None:
    end, _ = shell("exec >&- 2>&-; sleep 0.3; exit 4")

    assert end.exit_code == 4
    assert end.seconds >= 0.3


@pytest.mark.parametrize("command", ["/nowhere/python", "/etc/hostname", "null\0byte"])
def test_what_cannot_be_started_is_an_answer(command: str) -> None:
    end, output = run(command)

    assert (end.exit_code, output) == (127, b"")
    assert "cannot be started" in end.output


def test_a_child_has_the_environment_and_the_folder_that_it_is_given(tmp_path: Path) -> None:
    _, output = run_child(["env"], deadline=PATIENCE, environment={"ONLY": "this"}, cwd=str(tmp_path))
    _, folder = run_child(["pwd"], deadline=PATIENCE, environment=os.environ, cwd=str(tmp_path))

    assert output == b"ONLY=this\n"
    assert folder.decode().strip() == str(tmp_path)


def test_one_that_no_signal_ends_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process that waits in the kernel for a device that never answers. No test can make one: the kill fails."""
    spared: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _signal: spared.append(pid))

    end, _ = run("sleep", "60", deadline=0.2)

    monkeypatch.undo()
    assert (end.hang, end.exit_code) == (True, -signal.SIGKILL)
    assert end.seconds < PATIENCE
    os.killpg(spared[0], signal.SIGKILL)


def test_all_that_run_can_be_ended() -> None:
    answers: list[ChildEnd] = []
    thread = threading.Thread(target=lambda: answers.append(run("sleep", "60")[0]))
    thread.start()
    wait_until(lambda: child_module._ours.children)

    end_all()

    thread.join(PATIENCE)
    assert answers[0].signal == "SIGKILL"


def test_a_parent_that_ignores_its_children_hears_of_them_all_the_same() -> None:
    answer = subprocess.run([sys.executable, "-c", IGNORES_CHILDREN], capture_output=True, check=True, text=True)

    assert answer.stdout == "b'hello\\n'\n"


def test_a_budget_gives_each_step_at_most_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 150.0)
    budget = Budget(60.0, started=100.0)
    over = Budget(1.0, started=100.0)

    assert (budget.step(5), budget.step(20)) == (5, 10)
    assert (over.left, over.step(5)) == (0, 0)
