"""Runs uv with a configuration that is ours alone, which may hold credentials."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wheel_checks.sources.installer_config import FIRST_INDEX, IndexConfig
from wheel_checks.sources.scratch_folder import scratch_folder
from wheel_checks.sources.uv.user_settings import reaching_settings
from wheel_checks.sources.uv_binary import Answer, run_uv

# What uv may still take from the environment: how to reach servers, and its cache. Everything else (indexes,
# constraints, overrides, dates) is what we say, or the same requirements would resolve differently from place to place.
_KEPT = re.compile(
    r"UV_(?:CACHE_DIR|NO_CACHE|SYSTEM_CERTS|NATIVE_TLS|INSECURE_HOST|KEYRING_PROVIDER|CREDENTIALS_DIR"
    r"|HTTP_\w+|CONCURRENT_\w+|REQUEST_TIMEOUT|LINK_MODE)"
)
_NO_HOME = re.compile(r"Failed to initialize cache|Failed to discover managed Python installations")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """A temporary folder that only this user can read: what is written there may hold credentials."""
    with scratch_folder() as folder:
        yield folder


def write_private(path: Path, text: str) -> Path:
    """Write a file that only this user can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123  # Path.open cannot set the mode at creation
        file.write(text)
    return path


def toml_text(values: Mapping[str, Any]) -> str:
    """A TOML document with these values."""
    import tomlkit

    return tomlkit.dumps(values)


def config_options(folder: Path, text: str) -> list[str]:
    """The options that make uv read this configuration, written to ``folder``, and no file of a tree."""
    return ["--no-config", "--config-file", str(write_private(folder / "uv.toml", text))]


def configuration(config: IndexConfig, environ: Mapping[str, str]) -> str:
    """The text of a uv.toml with these indexes and the user's ways to reach servers. It holds what logins URLs hold."""
    values = reaching_settings(environ, Path.cwd())
    values["index-strategy"] = FIRST_INDEX if config.strategy == FIRST_INDEX else "unsafe-best-match"
    if config.find_links:
        values["find-links"] = list(config.find_links)
    if not config.indexes:
        values["no-index"] = True
    # uv asks its default index last; when the first index that knows a project wins, ours are in the order to ask.
    default = len(config.indexes) - 1 if config.strategy == FIRST_INDEX else 0
    values["index"] = [{"url": url, "default": number == default} for number, url in enumerate(config.indexes)]
    return toml_text(values)


def pinning_project(requirements: Sequence[str], pinned: Mapping[str, str]) -> str:
    """The text of a pyproject.toml with requirements, each package of ``pinned`` from that index alone.

    uv has no option for this: only the sources of a project say it.
    """
    numbers = {url: f"index-{number}" for number, url in enumerate(dict.fromkeys(pinned.values()))}
    uv = {
        "sources": {name: {"index": numbers[url]} for name, url in pinned.items()},
        "index": [{"name": name, "url": url, "explicit": True} for url, name in numbers.items()],
    }
    project = {"name": "wheelproof-asks", "version": "0", "dependencies": list(requirements)}
    return toml_text({"project": project, "tool": {"uv": uv}})


def run_uv_alone(arguments: Sequence[str], environ: Mapping[str, str], timeout: float) -> Answer:
    """As :func:`run_uv`, but what ``environ`` says of indexes, constraints and the like does not reach uv.

    uv needs a home folder that it may use; where there is none, it runs without its cache and its Pythons.
    """
    variables = reaching_variables(environ)
    answer = run_uv(arguments, variables, timeout)
    if answer.status and _NO_HOME.search(answer.words):
        answer = run_uv(arguments, variables | {"UV_NO_CACHE": "1", "UV_NO_MANAGED_PYTHON": "1"}, timeout)
    return answer


def reaching_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that configure uv, but for how it reaches servers and where its cache is."""
    return {name: value for name, value in environ.items() if not name.startswith("UV_") or _KEPT.match(name)}
