"""The frame of the command line: help, version, misspelt commands, errors, exit codes, a fast start."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run, Wheelproof
from tests.support.patience import PATIENCE
from wheel_checks.errors import SourceError, WheelproofError
from wheelproof import __version__
from wheelproof.cli import main as frame


@pytest.fixture
def failing_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make the command ``fail`` raise a given exception."""

    def register(error: BaseException) -> None:
        def run(arguments: Namespace) -> int:
            raise error

        def add_arguments(parser: ArgumentParser) -> None:
            parser.add_argument("-v", "--verbose", action="count", default=0)

        module = types.ModuleType("failing_command")
        vars(module).update(run=run, add_arguments=add_arguments)
        monkeypatch.setitem(sys.modules, "failing_command", module)
        monkeypatch.setitem(frame.COMMANDS, "fail", ("failing_command", "fails"))

    return register


def in_child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE)


@pytest.mark.parametrize("flag", ["--help", "-h", "help"])
def test_help_names_every_command_and_exit_code(wheelproof: Wheelproof, flag: str) -> None:
    run = wheelproof(flag)
    assert run.status == 0
    assert run.err == ""
    for expected in ("verify ", "rules ", "0 nothing found", "1 findings", "2 wrong usage", "3 could not check", "130"):
        assert expected in run.out


def test_inside_the_folder_tools_the_ways_to_run_a_checkout_are_named() -> None:
    run = [sys.executable, "-S", "-m", "wheelproof", "doctor"]  # without site-packages
    tools = Path(__file__).parents[2] / "tools"
    done = subprocess.run(run, cwd=tools, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "python3 ci/develop.py" in done.stderr
    assert "pip install ." in done.stderr


def test_the_version(wheelproof: Wheelproof) -> None:
    assert wheelproof("--version") == Run(0, f"wheelproof {__version__}\n", "")


@pytest.mark.parametrize("arguments", [("rules", "--help"), ("help", "rules")])
def test_help_of_one_command(wheelproof: Wheelproof, arguments: tuple[str, ...]) -> None:
    run = wheelproof(*arguments)
    assert run.status == 0
    assert run.out.startswith("usage: wheelproof rules ")


def test_a_misspelt_command_is_wrong_usage_and_the_nearest_is_named(wheelproof: Wheelproof) -> None:
    run = wheelproof("verfy", "torch")
    assert run == Run(
        2,
        "",
        "wheelproof: error: unknown command 'verfy'\n"
        f"  expected: one of {', '.join(frame.COMMANDS)}\n"
        "  hint: did you mean `wheelproof verify`?\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no command given"),
        (("--format", "json"), "expected a command, got the option --format"),
        (("zzzzzz",), "unknown command 'zzzzzz'"),
    ],
)
def test_without_a_command_the_help_is_named(wheelproof: Wheelproof, arguments: tuple[str, ...], message: str) -> None:
    run = wheelproof(*arguments)
    assert run.status == 2
    assert message in run.err
    assert "see `wheelproof --help`" in run.err


def test_a_misspelt_option_is_wrong_usage_and_the_nearest_is_named(wheelproof: Wheelproof) -> None:
    run = wheelproof("rules", "--fromat=json")
    assert run.status == 2
    assert run.err == (
        "wheelproof: error: unexpected option --fromat for `wheelproof rules`\n  hint: did you mean --format?\n"
    )


def test_an_option_is_not_abbreviated_by_accident(wheelproof: Wheelproof) -> None:
    assert wheelproof("rules", "--form", "json").status == 2


def test_an_error_says_what_was_expected_and_what_to_do(
    wheelproof: Wheelproof, failing_command: Callable[[BaseException], None]
) -> None:
    failing_command(SourceError("the index does not answer", expected="status 200", hint="try --offline"))
    assert wheelproof("fail") == Run(
        3,
        "",
        "wheelproof: error: the index does not answer\n  expected: status 200\n  hint: try --offline\n",
    )


def test_the_exit_code_is_that_of_the_error(
    wheelproof: Wheelproof, failing_command: Callable[[BaseException], None]
) -> None:
    class TornError(WheelproofError):
        exit_code = 1

    failing_command(TornError("torn"))
    assert wheelproof("fail").status == 1


def test_a_hostile_name_in_a_message_cannot_write_to_the_terminal(
    wheelproof: Wheelproof, failing_command: Callable[[BaseException], None]
) -> None:
    failing_command(SourceError("no file \x1b[2J\nwheelproof: all is well\udcff"))
    assert wheelproof("fail").err == "wheelproof: error: no file \\x1b[2J\\nwheelproof: all is well\\udcff\n"


def test_an_interrupt_is_130(wheelproof: Wheelproof, failing_command: Callable[[BaseException], None]) -> None:
    failing_command(KeyboardInterrupt())
    assert wheelproof("fail") == Run(130, "", "wheelproof: interrupted\n")


def test_a_bug_is_a_message_that_says_how_to_report_it(
    wheelproof: Wheelproof, failing_command: Callable[[BaseException], None]
) -> None:
    failing_command(ZeroDivisionError("division by zero"))
    run = wheelproof("fail", "-v")
    assert run.status == 3
    assert run.err.startswith("wheelproof: internal error: ZeroDivisionError: division by zero\n  hint: a bug report")
    assert "Traceback" not in run.err


@pytest.mark.parametrize("flags", [("-vv",), ("-v", "--verbose")])
def test_vv_shows_the_traceback_of_a_bug(
    wheelproof: Wheelproof, failing_command: Callable[[BaseException], None], flags: tuple[str, ...]
) -> None:
    failing_command(ZeroDivisionError("division by zero"))
    assert "Traceback (most recent call last)" in wheelproof("fail", *flags).err


def test_the_debug_variable_shows_the_traceback_of_a_bug(
    wheelproof: Wheelproof, failing_command: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHEELPROOF_DEBUG", "1")
    failing_command(ZeroDivisionError("division by zero"))
    assert "Traceback (most recent call last)" in wheelproof("fail").err


def test_no_message_and_no_traceback_shows_a_secret(
    failing_command: Callable[[BaseException], None], wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "cannot reach https://me:s3cret@example.org/simple?key=s3cret with password=s3cret"
    failing_command(WheelproofError(words, expected=words, hint=words))
    run = wheelproof("fail")
    assert "cannot reach https://example.org/simple?key=****" in run.err
    assert "s3cret" not in run.err
    monkeypatch.setenv("WHEELPROOF_DEBUG", "1")
    failing_command(RuntimeError(words))
    run = wheelproof("fail")
    assert "Traceback (most recent call last)" in run.err
    assert "s3cret" not in run.err


def test_help_imports_nothing_that_makes_it_slow() -> None:
    child = in_child(
        "import sys; before = set(sys.modules)\n"
        "from wheelproof.cli.main import main; main(['--help'])\n"
        "print(*sorted(set(sys.modules) - before), sep='\\n', file=sys.stderr)"
    )
    assert set(child.stderr.split()) <= {
        "__future__",
        "wheel_checks",
        "wheel_checks.errors",
        "wheelproof",
        "wheelproof.cli",
        "wheelproof.cli.help",
        "wheelproof.cli.help.listing",
        "wheelproof.cli.main",
    }


def test_help_of_a_command_imports_no_heavy_library() -> None:
    child = in_child(
        "import sys\nfrom wheelproof.cli.main import main; main(['rules', '--help'])\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    assert child.returncode == 0
    assert not {"rich", "urllib3", "torch", "triton", "tomlkit", "ssl", "logging"} & set(child.stderr.split())


def test_nothing_is_reported_to_a_reader_that_leaves_early() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "wheelproof", "--help"]
    child = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=PATIENCE)
    os.close(writer)
    assert (child.returncode, child.stderr) == (3, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["--help", "rules"])
def test_a_full_disk_is_one_sentence(arguments: str) -> None:
    command = f"{sys.executable} -m wheelproof {arguments} >/dev/full"
    child = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert child.returncode == 3
    assert child.stderr.count("\n") == 1
    assert "No space left on device" in child.stderr


def test_a_closed_standard_output_is_one_sentence() -> None:
    command = f"{sys.executable} -m wheelproof --help >&-"
    child = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert child.returncode == 3
    assert child.stderr.startswith("wheelproof: error: standard output is closed\n")
