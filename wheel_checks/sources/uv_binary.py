"""Runs uv and other installers, and reads the index that uv asks by default: our code names no host of an index."""

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wheel_checks.errors import DeadlineError, SourceError, UsageError
from wheel_checks.formats.secrets import redact_text
from wheel_checks.process import StartError, find_program, run

_DEFAULT = re.compile(r"--default-index <\w+>\s+[^<]*\(by\s+default:\s+<(https?://[^>\s]+)>")
_TIMEOUT = 30.0  # seconds
_PLAIN = {"NO_COLOR": "1", "UV_NO_WRAP": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Answer:
    """How an installer ended. ``words`` are its messages, without credentials and colours."""

    status: int
    output: str
    words: str


def find_uv() -> str:
    """The path of uv: of its Python package, else of the search path. Raises SourceError if none exists."""
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        found = find_program("uv", os.environ)
    if found is None:
        raise SourceError(
            "uv is not installed, which is needed to resolve requirements", hint="python -m pip install uv"
        )
    return found


def run_uv(arguments: Sequence[str], environ: Mapping[str, str], timeout: float) -> Answer:
    """Run uv with ``arguments`` in the current folder, for at most ``timeout`` seconds, as ``environ`` configures it.

    Raises SourceError when uv cannot be started or was killed, DeadlineError when it takes too long.
    """
    try:
        return run_installer("uv", [find_uv(), *arguments], {**environ, **_PLAIN}, timeout)
    except StartError as error:
        raise SourceError(f"uv cannot be started: {error}", hint="python -m pip install uv") from error


def run_installer(name: str, command: Sequence[str], environ: Mapping[str, str], timeout: float) -> Answer:
    """Run an installer, which messages call ``name``, for at most ``timeout`` seconds.

    Raises StartError, SourceError when it was killed, DeadlineError when it takes too long.
    """
    ended = run(command, deadline=timeout, environment=environ)
    if ended.timed_out:
        raise DeadlineError(f"{name} did not finish within {timeout:g} seconds", hint="see --deadline")
    if ended.status < 0:
        what = f"{name} was killed by signal {-ended.status}"
        raise SourceError(what, hint="it may have run out of memory; try again")
    output, words = (_ANSI.sub("", said.decode(errors="replace")) for said in (ended.output, ended.errors))
    return Answer(ended.status, output, redact_text(words))


@functools.cache
def default_index() -> str:
    """The URL of uv's default index, which is pip's too. Raises UsageError when uv is missing or names none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    try:
        help_text = run_uv(["pip", "compile", "--help"], environment, _TIMEOUT).output
    except SourceError:
        help_text = ""
    if match := _DEFAULT.search(help_text):
        return match[1]
    raise UsageError(
        "no index is configured, and uv, whose default would be used, did not name it",
        hint="name one with --index-url",
    )
