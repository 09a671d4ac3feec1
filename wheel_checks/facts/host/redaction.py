"""Facts that may leave the machine: no users, hosts, tokens, addresses, or identities of GPUs.

What a diagnosis needs stays: the structure of paths, versions, codes. One name is replaced by the same word everywhere,
so that what belonged together still does.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.machine import System
from wheel_checks.model import Unavailable
from wheel_checks.sources.http.credentials import redact_text

USER, HOST, HIDDEN, ADDRESS = "USER", "HOST", "(hidden)", "ADDRESS"
_HOME = re.compile(r"(?<=/home/)[^/\s:\"',;]+|(?<=/Users/)[^/\s:\"',;]+|(?<=/export/home/)[^/\s:\"',;]+")
_UUID = re.compile(r"\b(GPU|MIG)-[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?:/\d+/\d+)?")
_IPV4 = re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])")
_MAC = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_SECRET = re.compile(
    r"(?i)((?:token|password|passwd|secret|api_?key|credential)[\w-]*[\"']?\s*[=:]\s*[\"']?)(?!\(hidden\))[^\s\"',;&]+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_WELL_KNOWN = re.compile(r"\b(?:hf_\w{20,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|pypi-[\w-]{20,}|AKIA[0-9A-Z]{16})")
_COMMON = {"root", "user", "ubuntu", "debian", "nobody", "runner", "localhost"}  # names that say nothing
_VERSION_BEFORE = re.compile(r"(?i)(?:version|driver|nvidia|cuda|v|==|[-_])\s*$")


def redact(facts: HostFacts, *, users: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> HostFacts:
    """``facts`` with every string redacted, and without the name of the user; ``users`` and ``hosts`` are names to look
    for besides that and those of home paths.
    """
    redactor = _redactor(facts, users, hosts)
    if isinstance(facts.system, System):
        facts = replace(facts, system=replace(facts.system, user=""))
    return _walk(facts, redactor)  # type: ignore[no-any-return]  # as it came, so it goes


def _redactor(facts: HostFacts, users: tuple[str, ...], hosts: tuple[str, ...]) -> Callable[[str], str]:
    named: set[str] = set(users)
    named |= {facts.system.user} if isinstance(facts.system, System) else set()

    def collect(text: str) -> str:
        named.update(_HOME.findall(text))
        return text

    _walk(facts, collect)
    names = dict.fromkeys(named, USER) | dict.fromkeys(hosts, HOST)
    known = {name: word for name, word in names.items() if len(name) > 2 and name.lower() not in _COMMON}
    pattern = re.compile(
        "|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in sorted(known, key=len, reverse=True)) or r"(?!)"
    )
    numbers: dict[str, str] = {}
    versions = set() if isinstance(facts.installed, Unavailable) else {p.version for p in facts.installed.packages}

    def numbered(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"{match[1]}-{len(numbers) + 1}")

    def address(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 12) : match.start()]
        is_version = match[0] in versions or _VERSION_BEFORE.search(before)  # cuDNN's has four numbers
        return match[0] if is_version or match[0].startswith(("127.", "0.0.0.0")) else ADDRESS  # noqa: S104  # text, no socket

    def clean(text: str) -> str:
        text = redact_text(text)
        text = _WELL_KNOWN.sub(HIDDEN, _BEARER.sub(rf"\1 {HIDDEN}", _SECRET.sub(rf"\1{HIDDEN}", text)))
        text = _HOME.sub(USER, _UUID.sub(numbered, text))
        return pattern.sub(lambda match: known[match[0]], _MAC.sub(ADDRESS, _IPV4.sub(address, text)))

    return clean


def _walk(value: Any, change: Callable[[str], str]) -> Any:
    """``value`` with every string in it changed; dataclasses, tuples and mappings are made anew."""
    if isinstance(value, str):
        return change(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _walk(getattr(value, field.name), change) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    if isinstance(value, Mapping):
        return {change(str(name)): _walk(item, change) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_walk(item, change) for item in value)
    return value
