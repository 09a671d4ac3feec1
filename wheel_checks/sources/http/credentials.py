"""Who we are to a server: credentials from the URL, from netrc, and from the ``keyring`` command. Never printed.

Credentials belong to one origin (scheme, host, port) and are sent to no other.
"""

import logging
import os
import threading
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

HINT = "credentials are read from the URL, netrc ($NETRC, ~/.netrc) and the keyring command"

_log = logging.getLogger(__name__)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Login:
    """A user name and a password; neither shows in ``repr``."""

    user: str = field(repr=False)
    password: str = field(repr=False)

    @property
    def header(self) -> str:
        """The value of an Authorization header (RFC 7617, UTF-8)."""
        return "Basic " + b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")


def split_login(url: str) -> tuple[str, Login | None]:
    """``url`` without user and password, and these (None without any). Raises ValueError when it is not a URL."""
    parts = urlsplit(url)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    user, _, password = userinfo.partition(":")
    return urlunsplit(parts._replace(netloc=host)), Login(unquote(user), unquote(password)) if userinfo else None


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port (RFC 6454), in lower case and with the scheme's port filled in. Raises ValueError."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return scheme, parts.hostname or "", parts.port or _DEFAULT_PORTS.get(scheme)


class Credentials:
    """The logins that this run knows, by origin. Safe for many threads."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._given: dict[str, Login] = {}
        self._logins: dict[tuple[str, str, int | None], Login | None] = {}
        self._asked: set[tuple[str, str, int | None]] = set()
        self._lock = threading.RLock()

    def remember(self, url: str, login: Login) -> None:
        """Use ``login`` for ``url``, and for every URL of its origin that has no login.

        So do pip and uv: the files that an index lists on its own host are read with the index's login.
        """
        with self._lock:
            self._given[url] = login
            self._logins[origin_of(url)] = login

    def find(self, url: str) -> Login | None:
        """What to send with the first request: a remembered login, or netrc's entry for the host."""
        origin = origin_of(url)
        with self._lock:
            if url in self._given:
                return self._given[url]
            if origin not in self._logins:
                self._logins[origin] = self._from_netrc(origin[1])
            return self._logins[origin]

    def ask_keyring(self, url: str, seconds: float) -> Login | None:
        """What the ``keyring`` command knows for ``url`` or its host, within ``seconds``; asked once per origin.

        As pip's subprocess provider, it asks for the user in the URL, or for ``__token__``. ``url`` contains no
        password.
        """
        origin = origin_of(url)
        with self._lock:
            if origin in self._asked:
                return self._logins.get(origin)
            self._asked.add(origin)
            known = self._logins.get(origin)
            user = known.user if known is not None and known.user else "__token__"
            login = self._from_keyring((url, urlsplit(url).netloc), user, seconds)
            if login is not None:
                self._logins[origin] = login
            return login

    def _from_netrc(self, host: str) -> Login | None:
        named = self._environ.get("NETRC")
        home = self._environ.get("HOME", "")
        path = Path(named) if named else Path(home) / ".netrc"
        if not (named or home):
            return None
        import netrc

        try:
            if not path.is_file():
                return None
            entry = netrc.netrc(str(path)).authenticators(host)
        except (netrc.NetrcParseError, OSError, UnicodeDecodeError) as error:
            # the text of a parse error may quote the file
            _log.warning("%s is not used: it cannot be read as netrc (%s)", path, type(error).__name__)
            return None
        return None if entry is None else Login(entry[0] or "", entry[2] or "")

    def _from_keyring(self, services: tuple[str, ...], user: str, seconds: float) -> Login | None:

        from wheel_checks.process import StartError, find_program, run

        command = find_program("keyring", self._environ)
        if command is None:
            return None
        environ = {**self._environ, "PYTHONIOENCODING": "utf-8"}
        for service in services:
            try:
                answer = run([command, "get", service, user], deadline=seconds, environment=environ)
            except StartError as error:
                _log.warning("the keyring command did not answer (%s)", type(error.__cause__).__name__)
                return None
            if answer.timed_out:
                _log.warning("the keyring command did not answer (TimeoutExpired)")
                return None
            password = answer.output.decode(errors="replace").rstrip("\r\n")
            if answer.status == 0 and password:
                return Login(user, password)
        return None
