"""Facts that may leave the machine: no users, hosts, tokens, addresses, or identities of GPUs.

What a diagnosis needs stays: the structure of paths, versions, codes. One name is replaced by the same word everywhere,
so that what belonged together still does.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.machine import System
from wheel_checks.formats.secrets import redact_text, redacted
from wheel_checks.model import Unavailable

USER, HOST, HIDDEN, ADDRESS = "USER", "HOST", "(hidden)", "ADDRESS"
_HOME = re.compile(r"(?<=/home/)[^/\s:\"',;]+|(?<=/Users/)[^/\s:\"',;]+|(?<=/export/home/)[^/\s:\"',;]+")
_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?:/\d+/\d+)?")
_IPV4 = re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])")
_MAC = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_SERVER = re.compile(r"://(?:[^\s/@\"']*@)?([A-Za-z0-9][\w.-]*)")
_PUBLIC = {"github.com", "gitlab.com", "docs.nvidia.com", "developer.nvidia.com", "localhost"}
_COMMON = {"root", "user", "ubuntu", "debian", "nobody", "runner", "localhost"}  # names that say nothing
_VERSION_BEFORE = re.compile(r"(?i)(?:version|driver|nvidia|cuda|v|==|[-_])\s*$")


def redact(
    facts: HostFacts, *, users: tuple[str, ...] = (), hosts: tuple[str, ...] = (), servers: bool = False
) -> HostFacts:
    """``facts`` with every string redacted, and without the name of the user; ``users`` and ``hosts`` are names to look
    for besides that and those of home paths.

    ``servers`` also replaces the hosts of URLs, such as a private index: one host is ``index-1.invalid`` everywhere.
    The paths stay, since a diagnosis goes by them.
    """
    redactor = _redactor(facts, users, hosts, _servers(facts) if servers else {})
    if isinstance(facts.system, System):
        facts = replace(facts, system=replace(facts.system, user=""))
    cleaned: HostFacts = redacted(facts, redactor)
    return cleaned


def _servers(facts: HostFacts) -> dict[str, str]:
    """What replaces each host of a URL, and each that an installer trusts; the default index stays."""
    found: dict[str, None] = {}

    def collect(text: str) -> str:
        found.update(dict.fromkeys(host.lower() for host in _SERVER.findall(redact_text(text))))
        return text

    redacted(facts, collect)
    for name, value in facts.variables.items() if isinstance(facts.variables, Mapping) else ():
        if name.endswith(("TRUSTED_HOST", "INSECURE_HOST", "ALLOW_INSECURE_HOST")):
            found.update(dict.fromkeys(host.partition(":")[0].lower() for host in re.split(r"[\s,]+", value) if host))
    indexes = () if isinstance(facts.indexes, Unavailable) else facts.indexes
    known = {host for one in indexes if one.source == "the default of uv" for host in _SERVER.findall(one.value)}
    private = [host for host in found if host not in known | _PUBLIC and not host.endswith(".invalid")]
    private = [host for host in private if not re.fullmatch(r"[\d.]+", host)]  # an address, which is replaced as such
    return {host: f"index-{number}.invalid" for number, host in enumerate(private, 1)}


def _redactor(
    facts: HostFacts, users: tuple[str, ...], hosts: tuple[str, ...], servers: Mapping[str, str]
) -> Callable[[str], str]:
    named: set[str] = set(users)
    named |= {facts.system.user} if isinstance(facts.system, System) else set()

    def collect(text: str) -> str:
        named.update(_HOME.findall(text))
        return text

    redacted(facts, collect)
    names = dict.fromkeys(named, USER) | dict.fromkeys(hosts, HOST) | dict(servers)
    known = {name: word for name, word in names.items() if len(name) > 2 and name.lower() not in _COMMON}
    alternatives = (
        f"(?i:{re.escape(name)})" if name in servers else re.escape(name)
        for name in sorted(known, key=len, reverse=True)
    )
    pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(alternatives) or '(?!)'})(?![\w-])")
    numbers: dict[str, str] = {}
    versions = set() if isinstance(facts.installed, Unavailable) else {p.version for p in facts.installed.packages}

    def numbered(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"{match[1]}-{len(numbers) + 1}")

    def address(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 12) : match.start()]
        is_version = match[0] in versions or _VERSION_BEFORE.search(before)  # cuDNN's has four numbers
        return match[0] if is_version or match[0].startswith(("127.", "0.0.0.0")) else ADDRESS  # noqa: S104  # text, no socket

    def named_so(match: re.Match[str]) -> str:
        return known.get(match[0]) or known[match[0].lower()]

    def clean(text: str) -> str:
        text = redact_text(text)
        text = _HOME.sub(USER, _UUID.sub(numbered, text))
        return pattern.sub(
            named_so,
            _MAC.sub(ADDRESS, _IPV4.sub(address, text)),
        )

    return clean
