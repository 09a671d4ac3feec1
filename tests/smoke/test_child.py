"""The process of the suite: its report, its last words, its deadline, and no leftovers."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE, has_ended, in_time, wait_until
from tests.support.smoke import case, document, fake_interpreter, prints
from wheel_checks.errors import SourceError
from wheelproof.smoke.child import LAST_WORDS, run_suite

# Starts a process in its own session, as the suite does, and prints both process ids.
STARTS_ANOTHER = """
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
    pathlib.Path(os.environ["PIDS"]).write_text(f"{os.getpid()} {other.pid}")
"""
IGNORES = "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
HANGS = "    time.sleep(3600)\n"


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "pids"
    monkeypatch.setenv("PIDS", str(path))
    return path


def gone(pids: Path) -> bool:
    """Whether the processes end."""
    left = [int(pid) for pid in pids.read_text().split()]
    assert left
    return wait_until(lambda: all(map(has_ended, left)))


def test_a_report_comes_back(tmp_path: Path) -> None:
    python = fake_interpreter(tmp_path, prints(document(), status=1))
    ended = run_suite(python, ["--level", "quick"], deadline=PATIENCE)

    assert ended.report is not None
    assert b"kernels_smoke/1" in ended.report
    assert (ended.status, ended.words, ended.timed_out) == (1, "", False)


def test_the_options_and_the_package_reach_the_interpreter(tmp_path: Path) -> None:
    python = fake_interpreter(tmp_path, "print(*sys.argv[1:], sep='|')")
    words = run_suite(python, ["--only", "norm"], deadline=PATIENCE).words

    flag, bootstrap, folder, module, *options = words.split("|")
    assert (flag, module) == ("-c", "kernels_smoke.__main__")
    assert "start.py" in bootstrap
    assert Path(folder, "suite", "start.py").exists()
    assert options[:5] == ["--only", "norm", "--format", "json", "--output"]


def test_a_process_that_dies_leaves_its_last_words(tmp_path: Path) -> None:
    python = fake_interpreter(tmp_path, "print('a' * 9000); print('at last'); sys.stdout.flush(); os.abort()")
    ended = run_suite(python, [], deadline=PATIENCE)

    assert (ended.status, ended.report) == (-signal.SIGABRT, None)
    assert ended.words.endswith("aaa\nat last")
    assert len(ended.words) == LAST_WORDS


def test_what_a_progress_display_has_drawn_over_is_no_last_word(tmp_path: Path) -> None:
    drawn = r"sys.stderr.write('\r\x1b[K1 norm\r\r\x1b[K2 mm\r\n'); sys.stderr.write('\r\x1b[Kboom\n'); sys.exit(3)"
    assert run_suite(fake_interpreter(tmp_path, drawn), [], deadline=PATIENCE).words == "2 mm\nboom"


def test_what_hangs_is_killed_at_the_deadline_with_all_that_it_started(tmp_path: Path, pids: Path) -> None:
    python = fake_interpreter(tmp_path, STARTS_ANOTHER + "    print('begun', flush=True)\n" + HANGS)
    ended = in_time(lambda deadline: run_suite(python, [], deadline=deadline), lambda ended: ended.words)

    assert (ended.timed_out, ended.report) == (True, None)
    assert ended.words.startswith("begun")
    assert gone(pids)


def test_what_cannot_be_started_is_reported(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    with pytest.raises(SourceError, match=r"/python cannot be started: No such file"):
        run_suite(str(script), [], deadline=PATIENCE)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_all_of_it(tmp_path: Path, pids: Path, number: int, status: int) -> None:
    python = fake_interpreter(tmp_path, STARTS_ANOTHER + HANGS)
    command = [sys.executable, "-m", "wheelproof", "smoke", "--python", python]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        wait_until(lambda: pids.exists() and pids.read_text())
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out) == (status, b"")
    assert err.endswith(b"wheelproof: interrupted\n") == (number == signal.SIGINT)
    assert gone(pids)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_the_report_so_far(tmp_path: Path, pids: Path, number: int, status: int) -> None:
    so_far = document(partial="the suite has not ended", verdict="undecided", cases=[case("norm")])
    script = prints(so_far).replace("sys.exit(0)", "") + textwrap.dedent(STARTS_ANOTHER + HANGS)
    python, output = fake_interpreter(tmp_path, script), tmp_path / "report.json"
    command = [sys.executable, "-m", "wheelproof", "smoke", "--python", python, "--format", "json"]
    with subprocess.Popen([*command, "--output", str(output)], stderr=subprocess.PIPE, cwd=tmp_path) as process:
        wait_until(lambda: pids.exists() and pids.read_text())
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == status, err
    report = json.loads(output.read_text())
    assert report["summary"]["verdict"] == "undecided"
    name = signal.Signals(number).name
    assert [subject["facts"].get("partial") for subject in report["subjects"]] == [f"interrupted by {name}", None]
    assert gone(pids)


def test_a_suite_that_does_not_listen_is_killed(tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheelproof.smoke.child.GRACE", 0.3)
    python = fake_interpreter(tmp_path, IGNORES + STARTS_ANOTHER + HANGS)

    ended = in_time(lambda deadline: run_suite(python, [], deadline=deadline), lambda _: pids.exists())

    assert ended.status == -signal.SIGKILL
    assert gone(pids)


def test_on_a_terminal_progress_is_shown_and_still_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "sys.stderr.write(f'terminal: {sys.stderr.isatty()}, {os.get_terminal_size(2).columns}\\n')"
    python = fake_interpreter(tmp_path, program)
    monkeypatch.setenv("COLUMNS", "123")
    screen, own = pty.openpty()
    with os.fdopen(own, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        ended = run_suite(python, [], deadline=PATIENCE)
        quiet = run_suite(python, ["-"], deadline=PATIENCE, quiet=True)
        shown = os.read(screen, 1000)
    os.close(screen)

    assert ended.words == "terminal: True, 123"
    assert shown.startswith(b"terminal: True, 123\r")
    assert shown.count(b"terminal") == 1
    assert quiet.status == 1  # os.get_terminal_size says that a pipe is not a terminal
