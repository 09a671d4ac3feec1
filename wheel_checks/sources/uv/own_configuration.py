"""Runs uv with a configuration that is ours alone, which may hold credentials."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wheel_checks.sources.installer_config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.uv_binary import Answer, run_uv

# What uv may still take from the environment: how to reach servers, and its cache. Everything else (indexes,
# constraints, overrides, dates) is what we say, or the same requirements would resolve differently from place to place.
_KEPT = re.compile(
    r"UV_(?:CACHE_DIR|NO_CACHE|SYSTEM_CERTS|NATIVE_TLS|INSECURE_HOST|KEYRING_PROVIDER|CREDENTIALS_DIR"
    r"|HTTP_\w+|CONCURRENT_\w+|REQUEST_TIMEOUT|LINK_MODE)"
)


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


def run_uv_alone(arguments: Sequence[str], environ: Mapping[str, str], timeout: float) -> Answer:
    """As :func:`run_uv`, but what ``environ`` says of indexes, constraints and the like does not reach uv."""
    kept = {name: value for name, value in environ.items() if not name.startswith("UV_") or _KEPT.match(name)}
    return run_uv(arguments, kept, timeout)
