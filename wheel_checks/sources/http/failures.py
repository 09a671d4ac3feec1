"""What went wrong on the wire, in plain words with the host and without the text of a library's exceptions."""

import http
import http.client
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from urllib3 import exceptions as wire

from wheel_checks.errors import AuthenticationError, NotFoundError, SourceError
from wheel_checks.formats.secrets import redact
from wheel_checks.sources.http.credentials import HINT
from wheel_checks.sources.http.pace import LARGEST_HEAD, HeadTooLongError, StalledError
from wheel_checks.sources.http.retry import TransientError

WIRE_ERRORS = (wire.HTTPError, http.client.HTTPException, OSError, ValueError)
"""What urllib3 raises from a request or while a body is read; ValueError for what cannot be sent, as a bad URL."""


# http.client raises its base class for too many headers
_TOO_LONG = (HeadTooLongError, http.client.LineTooLong, http.client.HTTPException)
_SLOW = "try again later, or increase the timeout"


@dataclass(frozen=True, slots=True)
class _Failure:
    """Exceptions of one kind, what they mean, what to do, and how often to try again (None: as the policy says)."""

    kinds: tuple[type[BaseException], ...]
    what: str
    hint: str = ""
    retries: int | None = None


# the first row that fits any exception of the chain decides, so causes come before what wraps them; only the proxy
# comes first, since the host is not at fault then
_FAILURES = (
    _Failure((wire.ProxyError,), "the proxy of the environment does not connect to {host}", "check $https_proxy", 1),
    _Failure(
        (ssl.SSLError, wire.SSLError),
        "no encrypted connection to {host} could be established",
        "does it speak https?",
        1,
    ),
    _Failure(
        (wire.NameResolutionError, socket.gaierror),
        "the host name {host} cannot be resolved",
        "check its spelling, and the network",
        1,
    ),
    _Failure((ConnectionRefusedError,), "{host} refuses the connection", "does the server run?", 1),
    _Failure(
        (wire.TimeoutError, TimeoutError),
        "{host} did not answer in time",
        _SLOW,
    ),
    _Failure((wire.NewConnectionError,), "{host} cannot be reached", "check the network", 1),
    _Failure((BaseException,), "the connection to {host} was lost while reading {url}"),
)


def exchange_error(error: Exception, url: str) -> TransientError | SourceError:
    """What to raise for one of :data:`WIRE_ERRORS`: TransientError for what may pass, SourceError for what will not."""
    if isinstance(error, ValueError):  # LocationParseError, InvalidURL, UnicodeError
        return SourceError(f"{redact(url)!r} is not a valid URL")
    host = urlsplit(url).netloc
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, StalledError):
            return TransientError(SourceError(f"{redact(url)} {cause}", hint=_SLOW))
        if type(cause) in _TOO_LONG:
            return SourceError(
                f"{redact(url)} returned headers or lines that are too long",
                expected=f"at most {LARGEST_HEAD} bytes",
            )
        if isinstance(cause, ssl.SSLCertVerificationError):
            return SourceError(
                f"the certificate of {host} is not trusted: {cause.verify_message or 'it could not be verified'}",
                hint="add its certificate authority to the system trust store, or set $SSL_CERT_FILE to a bundle",
            )
    failure = next(row for row in _FAILURES if any(isinstance(cause, row.kinds) for cause in causes))
    what = failure.what.format(host=host, url=redact(url))
    return TransientError(SourceError(what, hint=failure.hint), retries=failure.retries)


def status_error(status: int, headers: Mapping[str, str], url: str) -> TransientError | SourceError:
    """What to raise for an HTTP status that the reader has no use for."""
    where = redact(url)
    if status in (404, 410):
        return NotFoundError(f"{where} does not exist (HTTP {status})")
    if status in (401, 403, 407):
        return AuthenticationError(f"{where} refuses access (HTTP {status})", hint=HINT)
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = "an unassigned status code"
    error = SourceError(f"{where} answers HTTP {status}, {phrase}", hint="try again later" if status >= 429 else "")
    if status in (429, 502, 503, 504):
        return TransientError(error, wait=_retry_after(headers.get("Retry-After", "")))
    # a plain 500 is a defect of the server more often than a bad moment
    return TransientError(error, retries=1) if status == 500 else error


def _retry_after(value: str) -> float | None:
    """Seconds from a Retry-After header (RFC 9110, 10.2.3), a number or a date; None when it holds neither."""
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what led to it: causes, contexts, and the exceptions that urllib3 keeps in ``args``."""
    seen: set[int] = set()
    pending: list[object] = [error]
    while pending:
        candidate = pending.pop(0)
        if isinstance(candidate, BaseException) and id(candidate) not in seen:
            seen.add(id(candidate))
            yield candidate
            pending += [candidate.__cause__, candidate.__context__, *candidate.args]
