"""Where a page that came from a server may lead: to servers, and never to this host."""

import functools
import ipaddress
import re
import socket
from typing import NamedTuple

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^:]*://([^/?#]*)")
_PORT = re.compile(r":\d*$")
_REMOTE = ("http", "https")
_LOOPBACK = "the loopback address"


class Refused(NamedTuple):
    """A file that the page of ``listed_by`` may not lead to: its name, its resolved address, and why."""

    file_name: str
    url: str
    why: str
    listed_by: str = ""

    @property
    def followed(self) -> bool:
        """True for an address that installers would follow."""
        return self.url.partition(":")[0].lower() in {"file", "http", "https"}


def why_refused(link: str, page: str) -> str:
    """Why ``page``, an absolute URL, may not lead to ``link``, another one: the rest of a sentence; "" when it may.

    A page on this host (a file, or a server on the loopback) may lead to this host. A host is judged as it is
    written, a name is not looked up.
    """
    if _scheme(page) not in _REMOTE:
        return ""
    scheme = _scheme(link)
    if scheme == "file":
        return "is a file on this host"
    if scheme not in _REMOTE:
        return f"is a URL with the scheme {scheme!r}" if scheme else "is not a URL"
    authority = _authority(link)
    if "\\" in authority:  # some readers of URLs end the host there, others do not
        return "has a backslash in its host"
    place = _place_of(authority)
    return f"is on {place}" if place and place != _place_of(_authority(page)) else ""


def _scheme(url: str) -> str:
    match = _SCHEME.match(url)
    return match[1].lower() if match else ""


def _authority(url: str) -> str:
    match = _AUTHORITY.match(url)
    return match[1] if match else ""


@functools.lru_cache(maxsize=64)  # the thousands of links of a page lead to a few hosts
def _place_of(authority: str) -> str:
    """What of this host, or of its own link, the host of a URL names; "" for any other host."""
    host = _PORT.sub("", authority.rpartition("@")[2]).strip("[]").partition("%")[0].rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):  # RFC 6761
        return _LOOPBACK
    address = _address(host)
    if address is None:
        return ""
    if address.is_loopback or address.is_unspecified:
        return _LOOPBACK
    return "a link-local address" if address.is_link_local else ""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is; None for a name. ``127.1`` and ``0x7f000001`` count, as for the C library."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
