"""Runs uv as a child: its binary, an environment and a configuration that are ours alone, a deadline, its words."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheel_checks.errors import DeadlineError, SourceError
from wheel_checks.sources.http.credentials import redact_text
from wheel_checks.sources.installer_config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.uv_binary import find_uv

# What uv may still take from the environment: how to reach servers, and its cache. Everything else (indexes,
# constraints, overrides, dates) is what we say, or the same requirements would resolve differently from place to place.
_KEPT = re.compile(
    r"UV_(?:CACHE_DIR|NO_CACHE|SYSTEM_CERTS|NATIVE_TLS|INSECURE_HOST|KEYRING_PROVIDER|CREDENTIALS_DIR"
    r"|HTTP_\w+|CONCURRENT_\w+|REQUEST_TIMEOUT|LINK_MODE)"
)
_MOST_WORDS = 1 << 20  # bytes of standard error that are read
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Answer:
    """How uv ended: its exit status, and what it wrote to standard error, without credentials and colours."""

    status: int
    words: str


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder that only this user can read: what is written there may hold credentials."""
    with tempfile.TemporaryDirectory(prefix="wheelproof-") as name:  # created with mode 0700
        yield Path(name)


def write_private(path: Path, text: str) -> Path:
    """Write a file that only this user can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123  # Path.open cannot set the mode at creation
        file.write(text)
    return path


def configuration(config: IndexConfig) -> str:
    """The text of a uv.toml with these indexes and nothing else. It holds what credentials the URLs hold."""
    import tomlkit

    values: dict[str, Any] = {"index-strategy": FIRST_INDEX if config.strategy == FIRST_INDEX else "unsafe-best-match"}
    if config.find_links:
        values["find-links"] = list(config.find_links)
    if not config.indexes:
        values["no-index"] = True
    # uv asks its default index last; when the first index that knows a project wins, ours stand in the order to ask.
    default = len(config.indexes) - 1 if config.strategy == FIRST_INDEX else 0
    values["index"] = [{"url": url, "default": number == default} for number, url in enumerate(config.indexes)]
    return tomlkit.dumps(values)


def run_uv(arguments: Sequence[str], folder: Path, environ: Mapping[str, str], timeout: float) -> Answer:
    """Run uv with ``arguments`` and wait at most ``timeout`` seconds. ``folder`` is a private one for its messages.

    Raises SourceError when uv cannot be started or was killed, DeadlineError when it takes too long.
    """
    environment = {name: value for name, value in environ.items() if not name.startswith("UV_") or _KEPT.match(name)}
    environment |= {"NO_COLOR": "1", "UV_NO_WRAP": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    messages = folder / "messages"
    with messages.open("wb") as stderr:
        try:
            process = subprocess.Popen(
                [find_uv(), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=environment,
                start_new_session=True,  # so that what uv itself started can be ended with it
            )
        except OSError as error:
            raise SourceError(f"uv cannot be started: {error.strerror}", hint="python -m pip install uv") from error
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise DeadlineError(f"uv did not finish within {timeout:g} seconds", hint="see --deadline") from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    with messages.open("rb") as stream:
        words = redact_text(_ANSI.sub("", stream.read(_MOST_WORDS).decode(errors="replace")))
    if status < 0:
        raise SourceError(f"uv was ended by signal {-status}", hint="it may have run out of memory; try again")
    return Answer(status, words)
