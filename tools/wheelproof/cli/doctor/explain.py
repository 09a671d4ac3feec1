"""``wheelproof explain``: the cause of the failure that a log shows, and its fix; offline, on any machine."""

from __future__ import annotations

import argparse
import shlex
import sys
from errno import EINVAL
from pathlib import Path

from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.sources.regular_file import read_start
from wheelproof.cli.options.output import OutputOptions, add_output_options, emit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``wheelproof explain``."""
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="the log: a traceback, or output of pip, uv, docker or dmesg (default: -, standard input). Exit code 1: a "
        "cause was found; 3: nothing was recognised, or a line looks like a failure of an unknown cause; 0: everything "
        "that was recognised is harmless, and no other line looks like a failure",
    )
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain, and print the report. Raises WheelproofError."""
    from wheelproof.doctor.explain import explain

    output = OutputOptions.from_arguments(arguments)
    name = "standard input" if arguments.file == "-" else arguments.file
    report = explain(_read(arguments.file), name, output)
    return emit(report, output)


def _read(file: str) -> bytes:
    """The text to explain, at most one byte above the limit. Raises UsageError, WheelproofError."""
    from wheel_checks.facts.host.log.facts import LARGEST

    if file == "-" and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError(
            "no log to explain",
            expected="FILE, or a log on standard input",
            hint="COMMAND 2>&1 | wheelproof explain",
        )
    try:
        if file == "-":
            return sys.stdin.buffer.read(LARGEST + 1)
        return read_start(file, LARGEST + 1, given=True)
    except OSError as error:
        if isinstance(error, (FileNotFoundError, IsADirectoryError, NotADirectoryError)) or error.errno == EINVAL:
            hint = f"wheelproof explain < {shlex.quote(file)}" if Path(file).is_fifo() else ""
            raise UsageError(f"{file!r}: {error.strerror}", expected="a log file", hint=hint) from error
        raise WheelproofError(f"{file} cannot be read: {error.strerror}") from error
