"""The addresses named only by a tree that may be contacted: those that the user trusts, and no other.

A tree has untrusted authors: a checkout with its requirements files and locks, the METADATA of a wheel. An address from
there is compared in one canonical form, and that form is contacted. So two readers cannot see two hosts in one text
(``https://good@evil/``, a backslash, a host in Unicode, dot segments).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from packaging.requirements import Requirement

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.formats.secrets import redact
from wheel_checks.phrases import and_more
from wheel_checks.sources.regular_file import real_path
from wheel_checks.sources.repository import repository_of

EXPECTED = "HOST, HOST:PORT, *.HOST, or the beginning of a URL such as https://HOST/PATH"
REPOSITORY = "repository"  # the kind of an address that needs git or another version control system

_PORTS = {"https": 443, "http": 80}
_HOST = r"(?P<host>[^\s:/?#\\@%\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
_URL = re.compile(rf"(?P<scheme>[A-Za-z]+)://(?:[^\s/?#\\@]*@)?{_HOST}(?P<rest>(?:[/?#][^\s\\]*)?)")
_ENTRY = re.compile(rf"(?:(?P<scheme>[A-Za-z]+)://)?(?P<any>\*\.)?{_HOST}(?P<rest>(?:/[^\s\\?#]*)?)")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\]")
_LONGEST = 2000  # characters of a URL


@dataclass(frozen=True, slots=True)
class Address:
    """An address as a tree names it, and its place: "requirements.txt:3". ``kind`` is its kind: "index", "file"."""

    url: str
    where: str
    kind: str = "index"

    def __str__(self) -> str:
        shown = redact(self.url[:_LONGEST])[:300]
        return f"the {self.kind} {''.join(c if c.isprintable() else '?' for c in shown)} ({self.where})"

    @property
    def host(self) -> str:
        """The value of ``--trust-index`` that lets it be contacted; "" when none does."""
        found = None if self.kind == REPOSITORY else _canonical(self.url)
        if found is None:
            return ""
        return found.authority if found.scheme == "https" else f"{found.scheme}://{found.authority}"


class UntrustedAddressError(SourceError):
    """An answer depends on addresses that only a tree names and the user does not trust. None was contacted."""

    def __init__(self, subject: str, addresses: Sequence[Address]) -> None:
        hosts = list(dict.fromkeys(address.host for address in addresses if address.host))
        hint = "it is not contacted: name an index, a wheel or a requirement on the command line instead"
        if hosts:
            flags, listed = (" ".join(f"--trust-index {host}" for host in hosts)), ", ".join(map(_quoted, hosts))
            hint = f"add {flags} to contact it, or set trust-index = [{listed}] in ~/.config/wheelproof/wheelproof.toml"
        named = f"{addresses[0]}{and_more(len(addresses) - 1)}"
        super().__init__(f"{subject} needs {named}; only the tree names it, so it was not contacted", hint=hint)
        self.addresses = tuple(addresses)


def _quoted(text: str) -> str:
    return f'"{text}"'


@dataclass(frozen=True, slots=True)
class _Canonical:
    scheme: str
    host: str
    port: int
    rest: str

    @property
    def authority(self) -> str:
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.rest}"

    @property
    def path(self) -> str:
        return re.split(r"[?#]", self.rest, maxsplit=1)[0]

    def is_below(self, prefix: str) -> bool:
        """Whether the path is ``prefix`` or below it, by whole segments and without a way out of it."""
        segments = [unquote(segment) for segment in self.path.split("/")]
        if any(segment in (".", "..") or "/" in segment or "\\" in segment or "%" in segment for segment in segments):
            return not prefix.strip("/")
        folder = prefix.rstrip("/")
        return self.path == folder or self.path.startswith(f"{folder}/")


def _name_of(host: str) -> str:
    """The host in lower case, in ASCII, without the root's dot; "" if it is not a host."""
    try:
        name = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError:
        return ""
    name = name.lower().removesuffix(".")
    return name if _NAME.fullmatch(name) else ""


def _canonical(url: str) -> _Canonical | None:
    """The parts of an http or https URL without its credentials; None if it is ambiguous.

    ``${NAME}`` is ambiguous, too: installers would put the value of that variable there and send it.
    """
    match = _URL.fullmatch(url) if len(url) <= _LONGEST and url.isprintable() and "${" not in url else None
    scheme = match["scheme"].lower() if match else ""
    if match is None or scheme not in _PORTS:
        return None
    name, port = _name_of(match["host"]), int(match["port"] or _PORTS[scheme])
    return _Canonical(scheme, name, port, match["rest"]) if name and 0 < port < 1 << 16 else None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A host that the user trusts at any path, or the beginning of a URL. ``scheme`` "" is https, or any at a port."""

    scheme: str
    host: str
    port: int | None
    path: str
    subdomains: bool = False

    def covers(self, url: _Canonical) -> bool:
        name = self.host == url.host or (self.subdomains and url.host.endswith(f".{self.host}"))
        if not name or (self.subdomains and self.host == url.host):
            return False
        if self.scheme:
            same = (self.scheme, self.port or _PORTS[self.scheme]) == (url.scheme, url.port)
        else:
            same = url.port == self.port if self.port else (url.scheme, url.port) == ("https", _PORTS["https"])
        return same and (not self.path.strip("/") or url.is_below(self.path))


@dataclass(frozen=True, slots=True)
class Trust:
    """The hosts and the beginnings of URLs that the user trusts."""

    entries: tuple[_Entry, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Trust:
        """The values of ``--trust-index``. Raises UsageError for an invalid one, or one with credentials."""
        return cls(tuple(map(_entry, texts)))

    def with_places(self, urls: Iterable[str]) -> Trust:
        """Also addresses at or below these URLs, which the user has configured. Their host alone is not trusted.

        Other paths of a host may be a stranger's, and would get the login that the user has for it.
        """
        found = [url for url in map(_canonical, urls) if url is not None and url.path == url.rest]
        return Trust((*self.entries, *(_Entry(url.scheme, url.host, url.port, url.path or "/") for url in found)))

    def allowed(self, url: str) -> str | None:
        """The URL to contact for an address in a tree, without its credentials; None when it is not trusted."""
        found = _canonical(url)
        return found.url if found and any(entry.covers(found) for entry in self.entries) else None


NO_TRUST = Trust()
"""Only addresses that the user has configured are contacted."""


def _entry(text: str) -> _Entry:
    match = _ENTRY.fullmatch(text.strip())
    scheme = (match["scheme"] or "").lower() if match else ""
    name = _name_of(match["host"]) if match else ""
    port = int(match["port"]) if match and match["port"] else None
    known = match is not None and name and (scheme in _PORTS or not scheme) and (port is None or 0 < port < 1 << 16)
    too_wide = match is not None and match["any"] and "." not in name
    if match is None or not known or too_wide or (match["rest"].strip("/") and not scheme):
        raise UsageError(f"--trust-index {redact(text)[:200]!r} names no host", expected=EXPECTED)
    return _Entry(scheme, name, port, match["rest"], bool(match["any"]))


def with_url(requirement: Requirement, url: str) -> str:
    """The text of a requirement that takes its package from ``url``."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras} @ {url}{f' ; {requirement.marker}' if requirement.marker else ''}"


def allowed_requirement(requirement: Requirement, trust: Trust, where: str) -> str:
    """The text of a requirement that is at ``where``. Raises UntrustedAddressError for an untrusted direct URL."""
    if not requirement.url:
        return str(requirement)
    url = trust.allowed(requirement.url)
    if url is None:
        raise UntrustedAddressError(requirement.name, [Address(requirement.url, where, "file")])
    return with_url(requirement, url)


def tree_of(folder: Path) -> Path:
    """The root of the tree that a folder belongs to: its repository, else the folder itself."""
    folder = real_path(folder)
    return repository_of(folder) or folder


def is_inside(path: Path, tree: Path) -> bool:
    """Whether a path leads into ``tree`` once its links are followed."""
    return real_path(path).is_relative_to(real_path(tree))
