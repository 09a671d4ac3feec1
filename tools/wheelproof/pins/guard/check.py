"""Reads the guard that is set up: the environment variables and the configuration files of pip and uv.

uv reads the nearest uv.toml or pyproject.toml with a table [tool.uv] upwards from the folder (a uv.toml wins), and the
user's uv.toml too; ``UV_CONFIG_FILE`` replaces all. pip reports its own configuration.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, SourceError, UsageError
from wheel_checks.facts.pins.guard import GuardFacts, GuardSetting, Kind
from wheel_checks.formats.documents import parse_toml
from wheel_checks.parsing import requirements_in
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.regular_file import read_whole
from wheel_checks.sources.uv_binary import run_uv
from wheelproof.pins.documents import requirements
from wheelproof.pins.documents.source import decode
from wheelproof.pins.guard.files import known_extensions
from wheelproof.pins.guard.inside.pip_front import cache_of
from wheelproof.pins.guard.inspection import guard_in_force
from wheelproof.pins.installers import DEFAULT_TIMEOUT, PIP, PIP_ALONE, UV, run_pip

_LARGEST = 1 << 20  # bytes of a configuration or constraints file
_UV_FILES = {
    "UV_CONSTRAINT": Kind.CONSTRAINT,
    "UV_BUILD_CONSTRAINT": Kind.BUILD_CONSTRAINT,
    "UV_EXCLUDE": Kind.EXCLUDE,
    "UV_OVERRIDE": Kind.OVERRIDE,
}
_UV_KEYS = {
    "constraint-dependencies": Kind.CONSTRAINT,
    "build-constraint-dependencies": Kind.BUILD_CONSTRAINT,
    "exclude-dependencies": Kind.EXCLUDE,
    "override-dependencies": Kind.OVERRIDE,
    "no-build-isolation-package": Kind.NO_ISOLATION,
}
_PIP_KEYS = {"constraint": Kind.CONSTRAINT, "build-constraint": Kind.BUILD_CONSTRAINT}
_PIP_LINE = re.compile(r"(?P<section>[\w:]+)\.(?P<key>[\w-]+)='(?P<value>.*)'")
_DROPPED = re.compile(r"unknown (?:field|variant) `[^`]+`|TOML parse error[^\n]*|invalid type[^\n]*")
_TRUE = {"1", "true", "yes", "on", "y", "t"}
_FALSE = {"0", "false", "no", "off", "n", "f"}


def read_guard(
    installer: str,
    installed: Mapping[str, str],
    folder: Path,
    variables: Mapping[str, str],
    environment: Environment | None = None,
) -> GuardFacts:
    """The guard of ``installer`` for an environment with ``installed`` packages, when it is started in ``folder``.

    ``environment`` is where they are installed: its own pip.conf and its guard count, too; None when it is described.

    Raises SourceError when the installer cannot be asked, UsageError for a configuration file that cannot be read.
    """
    added = [] if environment is None else list(_of_environment(environment, installer, variables))
    if installer == UV:
        settings = [*added, *uv_variables(variables), *_uv_tables(folder, variables)]
        if not any(setting.kind is Kind.CACHE for setting in settings):
            cache = run_uv(["cache", "dir"], variables, DEFAULT_TIMEOUT).output.strip()
            settings.append(GuardSetting(Kind.CACHE, "uv's default", path=cache))
        version = "".join(run_uv(["--version"], variables, DEFAULT_TIMEOUT).output.split()[1:2])
        return GuardFacts(UV, version, installed, tuple(settings), _dropped(folder, variables), known_extensions())
    pip = _pip_of(environment)
    version = "".join(run_pip([*pip, "--version"], variables).output.split()[1:2])
    if not version:
        raise SourceError("pip does not report its configuration", expected="`pip --version` with a version")
    settings = [*added, *_pip_settings(pip, variables)]
    return GuardFacts(PIP, version, installed, tuple(settings), extensions=known_extensions())


def _pip_of(environment: Environment | None) -> list[str]:
    """The environment's own pip, else ours for its Python, which may be too old for ours."""
    if environment is None or not environment.interpreter:
        return [sys.executable, "-c", PIP_ALONE]
    names = (name for entry in environment.entries for name in entry.names)
    if any(name.startswith("pip-") and name.endswith(".dist-info") for name in names):
        return [environment.interpreter, "-c", PIP_ALONE]
    return [sys.executable, "-c", PIP_ALONE, "--python", environment.interpreter]


def _of_environment(environment: Environment, installer: str, variables: Mapping[str, str]) -> Iterator[GuardSetting]:
    """The settings that an installed guard adds to every call of an installer."""
    guard = guard_in_force(environment, installer, variables)
    if guard is not None:
        origin = f"the guard of {environment.path}"
        yield _of_file(Kind.CONSTRAINT, origin, guard.constraints)
        yield _of_file(Kind.BUILD_CONSTRAINT, origin, guard.constraints)
        yield GuardSetting(Kind.CACHE, origin, path=cache_of(guard, variables, installer))


def uv_variables(variables: Mapping[str, str]) -> Iterator[GuardSetting]:
    """The settings that uv's environment variables make; a file that cannot be read is one with a fault."""
    for name, kind in _UV_FILES.items():
        for path in variables.get(name, "").split():
            yield _of_file(kind, name, path)
    if variables.get("UV_NO_BUILD_ISOLATION", "").lower() in _TRUE:
        yield GuardSetting(Kind.NO_ISOLATION, "UV_NO_BUILD_ISOLATION")
    if variables.get("UV_NO_CACHE", "").lower() in _TRUE:
        yield GuardSetting(Kind.CACHE, "UV_NO_CACHE")
    elif variables.get("UV_CACHE_DIR"):
        yield GuardSetting(Kind.CACHE, "UV_CACHE_DIR", path=variables["UV_CACHE_DIR"])


def _uv_tables(folder: Path, variables: Mapping[str, str]) -> Iterator[GuardSetting]:
    for path, table, origin in _uv_configuration(folder, variables):
        for part in (table, table.get("pip")):
            if not isinstance(part, dict):
                continue
            for key, kind in _UV_KEYS.items():
                texts = [text for text in _list(part.get(key)) if isinstance(text, str)]
                if texts:
                    yield _of_texts(kind, f"{origin} {key}", texts)
            if part.get("no-build-isolation") is True:
                yield GuardSetting(Kind.NO_ISOLATION, f"{origin} no-build-isolation")
        if table.get("no-cache") is True:
            yield GuardSetting(Kind.CACHE, f"{origin} no-cache")
        elif isinstance(table.get("cache-dir"), str):
            yield GuardSetting(Kind.CACHE, f"{origin} cache-dir", path=str(path.parent / table["cache-dir"]))


def _uv_configuration(folder: Path, variables: Mapping[str, str]) -> Iterator[tuple[Path, dict[str, Any], str]]:
    """Each configuration that uv reads: its file, its table, and its name in messages."""
    if variables.get("UV_CONFIG_FILE"):
        path = Path(variables["UV_CONFIG_FILE"])
        yield path, _load(path), path.name
        return
    for parent in (folder.absolute(), *folder.absolute().parents):
        if (parent / "uv.toml").is_file():
            yield parent / "uv.toml", _load(parent / "uv.toml"), "uv.toml"
            break
        if (parent / "pyproject.toml").is_file():
            tool = _load(parent / "pyproject.toml").get("tool")
            table = tool.get("uv") if isinstance(tool, dict) else None
            if isinstance(table, dict):
                yield parent / "pyproject.toml", table, "pyproject.toml [tool.uv]"
                break
    home = variables.get("XDG_CONFIG_HOME") or f"{variables.get('HOME', '')}/.config"
    user = Path(home) / "uv" / "uv.toml"
    if user.is_file():
        yield user, _load(user), "the user's uv.toml"


def _dropped(folder: Path, variables: Mapping[str, str]) -> str:
    """Why uv ignores its table, by its own words; "" when it does not."""
    words = run_uv(["cache", "dir", "--directory", str(folder)], variables, DEFAULT_TIMEOUT).words
    if "settings discovery" not in words:
        return ""
    found = _DROPPED.findall(words)
    return found[-1] if found else " ".join(words.split())[:200]


def _pip_settings(pip: Sequence[str], variables: Mapping[str, str]) -> Iterator[GuardSetting]:
    """The settings of ``pip config list``, files and variables; the last line of a key wins."""
    values: dict[str, tuple[str, str]] = {}
    for line in run_pip([*pip, "config", "list"], variables).output.splitlines():
        matched = _PIP_LINE.fullmatch(line.strip())
        if matched and matched["section"] in ("global", "install", ":env:"):
            is_variable = matched["section"] == ":env:"
            name = f"PIP_{matched['key'].upper().replace('-', '_')}" if is_variable else f"pip.conf {matched['key']}"
            if is_variable or not values.get(matched["key"], ("",))[0].startswith("PIP_"):
                values[matched["key"]] = (name, matched["value"])
    for key, kind in _PIP_KEYS.items():
        origin, value = values.get(key, ("", ""))
        for path in value.replace("\\n", " ").split():
            yield _of_file(kind, origin, path)
    origin, value = values.get("no-build-isolation", ("", ""))
    if value.lower() in _FALSE:  # pip's own switch is the inverse
        yield GuardSetting(Kind.NO_ISOLATION, origin)
    origin, value = values.get("no-cache-dir", ("", ""))
    if value.lower() in _TRUE | _FALSE:  # any value turns the cache off
        yield GuardSetting(Kind.CACHE, origin)
        return
    origin, value = values.get("cache-dir", ("", ""))
    if not value:
        value = run_pip([*pip, "cache", "dir"], variables).output.strip()
    yield GuardSetting(Kind.CACHE, origin or "pip's default", path=value)


def _of_file(kind: Kind, origin: str, name: str) -> GuardSetting:
    try:
        path = path_of(name) if is_file_url(name) else Path(name)  # how pip takes one with white space
        source = decode(path, read_whole(path, _LARGEST))
    except OSError as error:
        return GuardSetting(kind, origin, path=name, fault=str(error.strerror or error))
    except (FormatError, SourceError) as error:
        return GuardSetting(kind, origin, path=name, fault=error.what)
    if kind is Kind.EXCLUDE:
        texts = [line.partition("#")[0].strip() for line in source.text.splitlines()]
    else:
        texts = [found.text for found in requirements.read(source, constraint=True).requirements]
    setting = _of_texts(kind, origin, texts)
    return GuardSetting(kind, origin, setting.requirements, setting.packages, name)


def _of_texts(kind: Kind, origin: str, texts: Sequence[str]) -> GuardSetting:
    """A setting of a list: names for excludes and builds, requirements else; other texts are left to the installer."""
    if kind in (Kind.EXCLUDE, Kind.NO_ISOLATION):
        return GuardSetting(kind, origin, packages=tuple(str(canonicalize_name(text)) for text in texts if text))
    return GuardSetting(kind, origin, tuple(requirements_in(texts)))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _load(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_whole(path, _LARGEST), "it", _LARGEST)
    except (OSError, FormatError) as error:
        raise UsageError(f"the configuration {path} cannot be read: {error}") from None
