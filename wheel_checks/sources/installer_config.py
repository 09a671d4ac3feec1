"""Which indexes to ask: what the flags say, else what uv and pip are configured to use on this machine.

There are four settings: the index, the extra indexes, the places to find links, and whether to use no index. Each is
taken whole from the first of these that sets it:

1. the flags;
2. the environment, uv's variables before pip's;
3. uv's files: the one of ``UV_CONFIG_FILE`` alone, or ``uv.toml`` or ``[tool.uv]`` upwards from the current folder,
   then the user's, then the system's;
4. pip's files: ``PIP_CONFIG_FILE``, then the environment's, the user's and the system's; ``[install]`` before
   ``[global]``;
5. for the index: the default that uv's help names, which is pip's too.

So uv wins over pip where both say something. Nothing is merged across sources, not even what uv itself would
concatenate. Extra indexes that uv's settings name are combined as uv does (the first index that knows a project is the
only one that counts, extra indexes first, unless ``index-strategy`` is ``unsafe-best-match``), all others as pip does
(the candidates of all indexes are one list).
"""

from __future__ import annotations

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheel_checks.errors import UsageError
from wheel_checks.sources.regular_file import read_start

MERGE = "merge"
FIRST_INDEX = "first-index"

_UV_STRATEGIES = {"first-index": FIRST_INDEX, "unsafe-first-match": FIRST_INDEX, "unsafe-best-match": MERGE}
_LARGEST_FILE = 1 << 20  # bytes; a configuration has a page or two
_TRUE = {"1", "true", "yes", "on", "y", "t"}
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):")
_INDEX_NAME = re.compile(r"[\w.-]+=(?=\S+:)", re.ASCII)  # of "name=URL", as uv's variables may say


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Where to look for files. All places are URLs: http, https or file.

    ``origin`` says for each URL where it was set ("--index-url", "PIP_INDEX_URL", "/etc/pip.conf"). ``strategy`` is
    "merge" (every index counts, as with pip) or "first-index" (the first one that knows the project counts, as with
    uv); ``indexes`` stand in the order in which they are asked. ``notes`` are sentences about what was left out.
    """

    indexes: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    strategy: str = MERGE
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Settings:
    """What one source says: pairs of a URL and its origin. None: this source does not say."""

    index: tuple[str, str] | None = None
    extra: list[tuple[str, str]] = field(default_factory=list)
    find_links: list[tuple[str, str]] = field(default_factory=list)
    no_index: bool | None = None
    strategy: str | None = None
    notes: list[str] = field(default_factory=list)
    of_uv: bool = False


def configured_indexes(
    environ: Mapping[str, str],
    cwd: Path,
    *,
    index_url: str | None = None,
    extra_index_urls: Sequence[str] = (),
    find_links: Sequence[str] = (),
    no_index: bool = False,
) -> IndexConfig:
    """The indexes that an installer would ask when started in ``cwd`` with ``environ`` and these flags.

    Raises UsageError for a configuration file that cannot be read, for a place that is no URL of a known kind, and when
    nothing names an index and uv, whose default would be used, is not installed.
    """
    flags = _Settings(
        index=(_place(index_url, cwd, "--index-url"), "--index-url") if index_url else None,
        extra=_places(extra_index_urls, cwd, "--extra-index-url"),
        find_links=_places(find_links, cwd, "--find-links"),
        no_index=True if no_index else (False if index_url else None),
    )
    uv_files = [_uv_settings(table, path) for path, table in _uv_tables(environ, cwd)]
    sources = [
        flags,
        _uv_environment(environ, cwd),
        _pip_environment(environ, cwd),
        *uv_files,
        _pip_files(environ, cwd),
    ]
    extra = next((source for source in sources if source.extra), flags)
    links = next((source.find_links for source in sources if source.find_links), [])
    notes = tuple(note for source in sources for note in source.notes)
    strategy = MERGE
    indexes: list[tuple[str, str]] = []
    if not next((source.no_index for source in sources if source.no_index is not None), False):
        index = next((source.index for source in sources if source.index), None) or _default_index()
        if extra.of_uv:
            strategy = next((source.strategy for source in sources if source.strategy), FIRST_INDEX)
        indexes = [index, *extra.extra] if strategy == MERGE else [*extra.extra, index]
    origin: dict[str, str] = {}
    for url, where in (*indexes, *links):
        origin.setdefault(url, where)
    return IndexConfig(
        tuple(dict.fromkeys(url for url, _ in indexes)),
        tuple(dict.fromkeys(url for url, _ in links)),
        origin,
        strategy,
        notes,
    )


def _default_index() -> tuple[str, str]:
    from wheel_checks.sources.uv_binary import default_index  # when nothing else names an index

    return default_index(), "the default of uv"


# The environment


def _uv_environment(environ: Mapping[str, str], cwd: Path) -> _Settings:
    settings = _Settings(of_uv=True, no_index=_flag(environ, "UV_NO_INDEX"))
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if environ.get(name) and settings.index is None:
            settings.index = (_place(_INDEX_NAME.sub("", environ[name], count=1), cwd, name), name)
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        settings.extra += _places((_INDEX_NAME.sub("", item, 1) for item in environ.get(name, "").split()), cwd, name)
    settings.find_links = _places(environ.get("UV_FIND_LINKS", "").split(","), cwd, "UV_FIND_LINKS")
    if environ.get("UV_INDEX_STRATEGY"):
        settings.strategy = _strategy(environ["UV_INDEX_STRATEGY"], "UV_INDEX_STRATEGY")
    return settings


def _pip_environment(environ: Mapping[str, str], cwd: Path) -> _Settings:
    values = {
        name.removeprefix("PIP_").lower().replace("_", "-"): (value, name)
        for name, value in environ.items()
        if name.startswith("PIP_")
    }
    return _pip_settings(values, cwd)


def _flag(environ: Mapping[str, str], name: str) -> bool | None:
    return environ[name].strip().lower() in _TRUE if environ.get(name) else None


# uv's files (its documentation: "Configuration files", "Package indexes")


def _uv_tables(environ: Mapping[str, str], cwd: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    if _flag(environ, "UV_NO_CONFIG"):
        return
    if environ.get("UV_CONFIG_FILE"):
        path = cwd / environ["UV_CONFIG_FILE"]
        table = _read_toml(path)
        if table is None:
            raise UsageError(f"there is no file {path}", expected="the file that UV_CONFIG_FILE names")
        yield path, table
        return
    for folder in (cwd, *cwd.parents):
        table = _read_toml(folder / "uv.toml")
        if table is not None:
            yield folder / "uv.toml", table
            break
        tool = (_read_toml(folder / "pyproject.toml") or {}).get("tool")
        if isinstance(tool, dict) and isinstance(tool.get("uv"), dict):
            yield folder / "pyproject.toml", tool["uv"]
            break
    of_system = [*_xdg_folders(environ), Path("/etc")]
    for folders in ([_user_folder(environ)], of_system):
        found = ((folder / "uv" / "uv.toml", _read_toml(folder / "uv" / "uv.toml")) for folder in folders)
        yield from ((path, table) for path, table in found if table is not None)


def _uv_settings(table: dict[str, Any], path: Path) -> _Settings:
    settings = _Settings(of_uv=True)
    of_pip = table.get("pip", {})
    values = {**table, **(of_pip if isinstance(of_pip, dict) else {})}  # [tool.uv.pip] is for "uv pip", and wins there
    origin, folder = str(path), path.parent
    for entry in _typed(values, "index", list, path) or ():
        if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
            raise UsageError(f'an entry of "index" in {path} has no url', expected='[[index]] with url = "https://..."')
        place = (_place(entry["url"], folder, origin), origin)
        if entry.get("explicit"):
            name = entry.get("name", "without a name")
            settings.notes.append(
                f"the index {name} in {path} is explicit: it is not asked unless --index-url names it"
            )
        elif entry.get("format") == "flat":
            settings.find_links.append(place)
        elif entry.get("default"):
            settings.index = settings.index or place
        else:
            settings.extra.append(place)
    url = _typed(values, "index-url", str, path)
    if url and settings.index is None:
        settings.index = (_place(url, folder, origin), origin)
    settings.extra += _places(_texts(values, "extra-index-url", path), folder, origin)
    settings.find_links += _places(_texts(values, "find-links", path), folder, origin)
    settings.no_index = _typed(values, "no-index", bool, path)
    strategy = _typed(values, "index-strategy", str, path)
    settings.strategy = _strategy(strategy, origin) if strategy else None
    return settings


def _typed(values: Mapping[str, Any], key: str, kind: type, path: Path) -> Any:
    value = values.get(key)
    if value is not None and not isinstance(value, kind):
        raise UsageError(f"{key} in {path} is of type {type(value).__name__}", expected=kind.__name__)
    return value


def _texts(values: Mapping[str, Any], key: str, path: Path) -> list[str]:
    listed: list[Any] = _typed(values, key, list, path) or []
    if not all(isinstance(item, str) for item in listed):
        raise UsageError(f"{key} in {path} holds something that is no string", expected="a list of strings")
    return listed


def _strategy(text: str, origin: str) -> str:
    if text not in _UV_STRATEGIES:
        raise UsageError(f"the index strategy {text!r} ({origin}) is not known", expected=", ".join(_UV_STRATEGIES))
    return _UV_STRATEGIES[text]


# pip's files (its documentation: "Configuration")


def _pip_files(environ: Mapping[str, str], cwd: Path) -> _Settings:
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return _Settings()
    home = Path(environ.get("HOME") or Path.home())
    site = Path(environ.get("VIRTUAL_ENV") or sys.prefix)
    paths = [*(folder / "pip" / "pip.conf" for folder in reversed(_xdg_folders(environ))), Path("/etc/pip.conf")]
    paths += [home / ".pip" / "pip.conf", _user_folder(environ) / "pip" / "pip.conf"]
    if sys.platform == "darwin":
        support = Path("Library") / "Application Support" / "pip" / "pip.conf"
        paths += ["/" / support, home / support]
    paths += [site / "pip.conf", *([cwd / named] if named else [])]
    sections: dict[str, dict[str, tuple[str, str]]] = {"global": {}, "install": {}}
    for path in paths:  # from the weakest to the strongest
        for section, values in _read_ini(path):
            if section in sections:
                sections[section].update(values)
    return _pip_settings({**sections["global"], **sections["install"]}, cwd)


def _pip_settings(values: Mapping[str, tuple[str, str]], cwd: Path) -> _Settings:
    settings = _Settings()
    index, origin = values.get("index-url", ("", ""))
    if index.strip():
        settings.index = (_place(index.strip(), cwd, origin), origin)
    extra, origin = values.get("extra-index-url", ("", ""))
    settings.extra = _places(extra.split(), cwd, origin)
    links, origin = values.get("find-links", ("", ""))
    settings.find_links = _places(links.split(), cwd, origin)
    no_index = values.get("no-index", ("", ""))[0].strip().lower()
    settings.no_index = no_index in _TRUE if no_index else None
    return settings


# Files and places


def _user_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or Path.home()) / ".config")


def _xdg_folders(environ: Mapping[str, str]) -> list[Path]:
    return [Path(folder) for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep) if folder]


def _read(path: Path) -> str | None:
    """The text of a configuration file, None when there is no such file."""
    try:
        if not path.is_file():
            return None
        content = read_start(path, _LARGEST_FILE + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the configuration file {path} cannot be read: {error}", expected="text in UTF-8") from error
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"the configuration file {path} is too long", expected=f"at most {_LARGEST_FILE} bytes")
    return text


def _read_toml(path: Path) -> dict[str, Any] | None:
    text = _read(path)
    try:
        return None if text is None else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path} is no valid TOML: {error}", hint="uv would refuse it too; mend or remove it"
        ) from error


def _read_ini(path: Path) -> Iterator[tuple[str, dict[str, tuple[str, str]]]]:
    text = _read(path)
    if text is None:
        return
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        # the text of the error quotes the file, which may hold a password
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", ())), "?")
        raise UsageError(f"{path} is no valid pip configuration (see line {line})", hint="mend or remove it") from error
    for section in parser.sections():
        yield section, {key.replace("_", "-"): (value, str(path)) for key, value in parser.items(section)}


def _places(values: Iterator[str] | Sequence[str], folder: Path, origin: str) -> list[tuple[str, str]]:
    return [(_place(value.strip(), folder, origin), origin) for value in values if value.strip()]


def _place(value: str, folder: Path, origin: str) -> str:
    """A URL as it is, a path (relative to ``folder``) as a file URL."""
    scheme = _URL.match(value)
    if scheme is None:
        try:
            return (folder / Path(value).expanduser()).absolute().as_uri()
        except RuntimeError as error:  # the home of a user who does not exist
            raise UsageError(f"{origin} names the path {value!r}, whose home folder is not known") from error
    if scheme[1].lower() not in {"http", "https", "file"}:
        raise UsageError(
            f"{origin} names a place of the kind {scheme[1]!r}", expected="an http, https or file URL, or a path"
        )
    return value
