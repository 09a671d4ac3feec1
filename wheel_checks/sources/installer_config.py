"""Which indexes to ask: what the flags say, else what uv and pip are configured to use on this host.

There are four settings: the index, the extra indexes, the places to find links, and whether to use no index. Each is
taken whole from the first of these that sets it:

1. the flags;
2. the environment, uv's variables before pip's;
3. uv's files: the one of ``UV_CONFIG_FILE`` alone, or ``uv.toml`` or ``[tool.uv]`` upwards from the current folder,
   then the user's, then the system's;
4. pip's files: ``PIP_CONFIG_FILE``, then the environment's, the user's and the system's; ``[install]`` before
   ``[global]``;
5. for the index: the default that uv's help names, which is pip's too.

The files of uv upwards from the current folder are a tree's: an address that only they name is contacted when
``--trust-index`` trusts it, or when it is below one that the user has configured. Else it is ``refused``. All other
files are the user's or the system's, the pip.conf of the active environment (VIRTUAL_ENV) included.

So uv wins over pip where both say something. Nothing is merged across sources, not even what uv itself would
concatenate. Extra indexes that uv's settings name are combined as uv does (the first index that knows a project is the
only one that counts, extra indexes first, unless ``index-strategy`` is ``unsafe-best-match``), all others as pip does
(the candidates of all indexes are one list).
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from wheel_checks.errors import UsageError
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.installer_files import TRUE, flag, pip_sections, uv_tables
from wheel_checks.sources.regular_file import expand_home
from wheel_checks.sources.trust import NO_TRUST, Address, Trust, UntrustedAddressError, is_inside

MERGE = "merge"
FIRST_INDEX = "first-index"

_UV_STRATEGIES = {"first-index": FIRST_INDEX, "unsafe-first-match": FIRST_INDEX, "unsafe-best-match": MERGE}
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):")
_INDEX_NAME = re.compile(r"[\w.-]+=(?=\S+:)", re.ASCII)  # of "name=URL", as uv's variables may say


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Where to look for files. All places are URLs: http, https or file.

    ``origin`` says for each URL where it was set ("--index-url", "PIP_INDEX_URL", "/etc/pip.conf"). ``strategy`` is
    "merge" (every index counts, as with pip) or "first-index" (the first one that knows the project counts, as with
    uv); ``indexes`` are in the order in which they are asked. ``notes`` are sentences about what was omitted.
    ``refused`` are addresses that an installer would ask here and that only a tree names; ``trust`` decides about more.
    """

    indexes: tuple[str, ...]
    find_links: tuple[str, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    strategy: str = MERGE
    notes: tuple[str, ...] = ()
    refused: tuple[Address, ...] = ()
    trust: Trust = NO_TRUST

    def require_trusted(self, subject: str) -> None:
        """Raise UntrustedAddressError when ``subject`` could come from an address that is not contacted."""
        if self.refused:
            raise UntrustedAddressError(subject, self.refused)


@dataclass(slots=True)
class _Settings:
    """What one source says: pairs of a URL and its origin. None: this source does not say.

    ``tree`` is the root of the tree that the source is a file of; None for what the user or the system says.
    """

    index: tuple[str, str] | None = None
    extra: list[tuple[str, str]] = field(default_factory=list)
    find_links: list[tuple[str, str]] = field(default_factory=list)
    no_index: bool | None = None
    strategy: str | None = None
    notes: list[str] = field(default_factory=list)
    of_uv: bool = False
    tree: Path | None = None

    @property
    def places(self) -> list[tuple[str, str]]:
        """Every place that it names."""
        return [*filter(None, [self.index]), *self.extra, *self.find_links]


def configured_indexes(
    environ: Mapping[str, str],
    cwd: Path,
    *,
    index_url: str | None = None,
    extra_index_urls: Sequence[str] = (),
    find_links: Sequence[str] = (),
    no_index: bool = False,
    trust: Trust = NO_TRUST,
) -> IndexConfig:
    """The indexes that an installer would ask when started in ``cwd`` with ``environ`` and these flags.

    ``trust`` is what ``--trust-index`` says.

    Raises UsageError for a configuration file that cannot be read, for a place that is not a URL of a known kind, and
    when nothing names an index and uv, whose default would be used, is not installed.
    """
    flags = _Settings(
        index=(_place(index_url, cwd, "--index-url"), "--index-url") if index_url else None,
        extra=_places(extra_index_urls, cwd, "--extra-index-url"),
        find_links=_places(find_links, cwd, "--find-links"),
        no_index=True if no_index else (False if index_url else None),
    )
    sources = [
        flags,
        _uv_environment(environ, cwd),
        _pip_environment(environ, cwd),
        *(_uv_settings(table, path, tree, environ) for path, table, tree in uv_tables(environ, cwd)),
        _pip_files(environ, cwd),
    ]
    index = next((source for source in sources if source.index), None)
    extra = next((source for source in sources if source.extra), flags)
    links = next((source for source in sources if source.find_links), flags)
    no_index = next((source.no_index for source in sources if source.no_index is not None), False)
    configured = [url for source in sources if source.tree is None for url, _ in source.places]
    default = _default_index() if index is None and not no_index else ("", "")
    if index is not None and index.tree is not None:
        with contextlib.suppress(UsageError):  # without uv its default is unknown, and nothing else lacks it
            configured.append(_default_index()[0])
    door = _Door(trust.with_places([*configured, default[0]]))
    strategy, asked = MERGE, list[tuple[str, str]]()
    if not no_index:
        first = door.let_in(index, [index.index]) if index and index.index else [default]
        more = door.let_in(extra, extra.extra)
        if extra.of_uv:
            strategy = next((source.strategy for source in sources if source.strategy), FIRST_INDEX)
        asked = [*first, *more] if strategy == MERGE else [*more, *first]
    linked = door.let_in(links, links.find_links, "find-links page")
    origin: dict[str, str] = {}
    for url, where in (*asked, *linked):
        origin.setdefault(url, where)
    return IndexConfig(
        tuple(dict.fromkeys(url for url, _ in asked)),
        tuple(dict.fromkeys(url for url, _ in linked)),
        origin,
        strategy,
        tuple(note for source in sources for note in source.notes),
        tuple(door.refused),
        door.trust,
    )


@dataclass(slots=True)
class _Door:
    """Lets in the places that may be asked; the others are ``refused``."""

    trust: Trust
    refused: list[Address] = field(default_factory=list)

    def let_in(
        self, source: _Settings, places: Sequence[tuple[str, str]], kind: str = "index"
    ) -> list[tuple[str, str]]:
        if source.tree is None:
            return list(places)
        found = []
        for url, where in places:
            if is_file_url(url):
                allowed = url if is_inside(path_of(url), source.tree) else None
            else:
                allowed = self.trust.allowed(url)
            if allowed is None:
                self.refused.append(Address(url, where, kind))
            else:
                found.append((allowed, where))
        return found


def _default_index() -> tuple[str, str]:
    from wheel_checks.sources.uv_binary import default_index  # when nothing else names an index

    return default_index(), "the default of uv"


# The environment


def _uv_environment(environ: Mapping[str, str], cwd: Path) -> _Settings:
    settings = _Settings(of_uv=True, no_index=flag(environ, "UV_NO_INDEX"))
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if environ.get(name) and settings.index is None:
            settings.index = (_named_place(environ[name], cwd, name, environ), name)
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL"):
        settings.extra += [(_named_place(item, cwd, name, environ), name) for item in environ.get(name, "").split()]
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


# uv's files (its documentation: "Configuration files", "Package indexes")


def _uv_settings(table: dict[str, Any], path: Path, tree: Path | None, environ: Mapping[str, str]) -> _Settings:
    settings = _Settings(of_uv=True, tree=tree)
    of_pip = table.get("pip", {})
    values = {**table, **(of_pip if isinstance(of_pip, dict) else {})}  # [tool.uv.pip] is for "uv pip", and wins there
    origin, folder = str(path), path.parent
    for entry in _typed(values, "index", list, path) or ():
        if not isinstance(entry, dict) or not isinstance(entry.get("url"), str):
            raise UsageError(f'an entry of "index" in {path} has no url', expected='[[index]] with url = "https://..."')
        url = _place(entry["url"], folder, origin)
        if tree is None:  # or a tree could name an index as the user does, and get the login
            url = _with_login(url, str(entry.get("name", "")), environ)
        place = (url, origin)
        if entry.get("explicit"):
            name = entry.get("name", "without a name")
            settings.notes.append(
                f"the index {name} in {path} is explicit: it is asked for the packages that [tool.uv.sources] of a "
                "judged pyproject.toml takes from it, and for others only when --index-url names it"
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


def _named_place(text: str, cwd: Path, origin: str, environ: Mapping[str, str]) -> str:
    """The place in a variable of uv, which may have a name in front of it ("name=URL")."""
    named = _INDEX_NAME.match(text)
    place = _place(text[named.end() :] if named else text, cwd, origin)
    return _with_login(place, named[0].removesuffix("="), environ) if named else place


def _with_login(url: str, name: str, environ: Mapping[str, str]) -> str:
    """The URL of a named index with the login that uv's variables have for it (UV_INDEX_NAME_USERNAME)."""
    variable = f"UV_INDEX_{re.sub(r'[^A-Z0-9]', '_', name.upper())}"
    user, password = (quote(environ.get(f"{variable}_{part}", ""), safe="") for part in ("USERNAME", "PASSWORD"))
    parts = urlsplit(url)
    if not name or not (user or password) or "@" in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{password}@{parts.netloc}"))


def _typed(values: Mapping[str, Any], key: str, kind: type, path: Path) -> Any:
    value = values.get(key)
    if value is not None and not isinstance(value, kind):
        raise UsageError(f"{key} in {path} is of type {type(value).__name__}", expected=kind.__name__)
    return value


def _texts(values: Mapping[str, Any], key: str, path: Path) -> list[str]:
    listed: list[Any] = _typed(values, key, list, path) or []
    if not all(isinstance(item, str) for item in listed):
        raise UsageError(f"{key} in {path} contains a value that is not a string", expected="a list of strings")
    return listed


def _strategy(text: str, origin: str) -> str:
    if text not in _UV_STRATEGIES:
        raise UsageError(f"the index strategy {text!r} ({origin}) is unknown", expected=", ".join(_UV_STRATEGIES))
    return _UV_STRATEGIES[text]


# pip's files (its documentation: "Configuration")


def _pip_files(environ: Mapping[str, str], cwd: Path) -> _Settings:
    sections = pip_sections(environ, cwd)
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
    settings.no_index = no_index in TRUE if no_index else None
    return settings


def _places(values: Iterator[str] | Sequence[str], folder: Path, origin: str) -> list[tuple[str, str]]:
    return [(_place(value.strip(), folder, origin), origin) for value in values if value.strip()]


def _place(value: str, folder: Path, origin: str) -> str:
    """A URL as it is, a path (relative to ``folder``) as a file URL."""
    scheme = _URL.match(value)
    if scheme is None:
        return (folder / expand_home(value)).absolute().as_uri()
    if scheme[1].lower() not in {"http", "https", "file"}:
        raise UsageError(
            f"{origin} names a location of the kind {scheme[1]!r}", expected="an http, https or file URL, or a path"
        )
    return value
