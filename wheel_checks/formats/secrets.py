"""Redacts secrets in URLs, headers, command lines, variables and configurations, by name and by shape.

Every report, message, saved fact, record and cache entry passes through here before it is written. Harmless text is
kept: hashes, versions, markers, paths.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

HIDDEN = "****"

# Names whose values are always secrets, and names whose values are when they look like one.
_ALWAYS = (
    r"passw(?:or)?d|passwd|passphrase|(?<!o)pwd|secret|credentials?|api[_-]?key|access[_-]?key|private[_-]?key|jwt"
    r"|client[_-]?secret|auth[_-]?token|security[_-]?token|license[_-]?key|encryption[_-]?key|session[_-]?(?:id|key)"
)
_PERHAPS = r"token|pass|signature|sig|sas|auth|bearer|key|cookie|sid|nonce"
_OF_ANOTHER_THING = (
    r"(?:[_-]?(?:file|path|dir|folder|name|type|ids?|url|len\w*|size|count|storage|manager)\b|s\b|i[sz]|\w*izer)"
)
_SECRET_NAME = re.compile(rf"(?i){_ALWAYS}|(?:^|[^a-z])(?:{_PERHAPS})(?![a-z])|token(?!s|iz)")
_HARMLESS_NAMES = {
    *(
        "arch",
        "branch",
        "channel",
        "cuda",
        "egg",
        "format",
        "lang",
        "page",
        "platform",
        "project",
        "python",
        "q",
        "ref",
    ),
    *("rev", "subdirectory", "tab", "tag", "v", "version"),
}
_HASH_NAMES = {"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "data-dist-info-metadata"}
_HARMLESS_VALUE = re.compile(r"[\w.+/-]{1,64}")

# Tokens that are known by how they begin: of Hugging Face, GitHub, GitLab, PyPI, AWS, Google, Slack, npm, Docker,
# NVIDIA, OpenAI, Dropbox; and JSON Web Tokens.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[\w-]{16,}"
    r"|pypi-[\w-]{16,}|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|npm_\w{30,}"
    r"|dckr_pat_[\w-]{16,}|nvapi-[\w-]{16,}|sk-[\w-]{20,}|sl\.[\w-]{40,}|eyJ[\w-]{4,}\.[\w-]{4,}(?:\.[\w-]*)?)"
)
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----)(?!\*\*\*\*)[^-]*(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?"
)
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^\s\"<>]+")
_ENCODED_LOGIN = re.compile(r"(?i)(%3a%2f%2f)[^\s\"'&/]{1,500}?%40")
_BARE_LOGIN = re.compile(
    r"(?<![\w.:/@%+-])(?!mailto:)[\w.%+~-]{1,200}:(?!/)[^\s:@/\"'<>]{1,500}@"
    r"(?=(?:[a-z0-9-]{1,63}\.)+[a-z]{2,63}\b|localhost\b|\d{1,3}(?:\.\d{1,3}){3}\b)",
    re.IGNORECASE,
)
_RELATIVE_LOGIN = re.compile(r"(?<![\w:])(//)[^\s/@\"'<>]{1,500}@(?=[\w.-])")
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{0,40}(?:token|key|auth|secret|signature)[\w-]{0,40}"
    r"|(?:private|job|deploy)-token)([\"']?\s{0,4}[:=]\s{0,4}[\"']?)(?!\s)([^\r\n\"']+)"
)
_SCHEME = re.compile(r"\b((?i:bearer|basic))(\s+)(?=[\w.~+/=-]*(?:\d|=|[a-z][A-Z]))([\w.~+/=-]{8,})")
_ASSIGNED = re.compile(
    rf"(?i)(?<![\w%])((?:[\w.-]{{0,80}}?)(?:(?P<always>{_ALWAYS})|(?<![a-z])(?P<perhaps>{_PERHAPS})(?![a-z])))"
    rf"(?!{_OF_ANOTHER_THING})([\w-]{{0,40}}?[\"']?(?:\s{{0,8}}(?:=|:(?![:/\\]))\s{{0,8}}|(?<=[\w])\s{{1,8}}(?=\S)(?P<blank>)))"
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'&<>]+)"
)
_NETRC = re.compile(
    r"(?i)\b((?:login|account|user|machine)\s+\S+\s+password\s+|^\s*password\s+(?![=:]))\S+", re.MULTILINE
)
_CURL_USER = re.compile(r"((?:^|\s)(?:-u|--user)[= ]\s*)[^\s:]+:\S+")
_WORTH_A_LOOK = re.compile(
    r"(?i)://|@|%40|secret|pass|pwd|credential|token|key|jwt|signature|sig\b|sas\b|auth|bearer|basic|cookie|sid\b|session|nonce|login|--user|-u\s|hf_|gh[pousr]_|github_pat_|glpat|pypi-|a[ksbc][ic]a|aiza|ya29|xox|npm_|dckr|nvapi|sk-|eyj|sl\."
)


def redact(url: str) -> str:
    """``url`` without user and password, and with the values of its query hidden but for harmless ones."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # a password with a raw slash makes the port unreadable: cut at the last @
        cut = re.sub(r"//.*@", "//", url)
        return _of_query(cut)
    host = parts.netloc.rpartition("@")[2]
    if not parts.netloc and not parts.query and not parts.fragment:
        return _TOKEN.sub(HIDDEN, url)
    path = re.sub(r";[^/;]*", lambda match: ";" + _pairs(match[0][1:]), parts.path)
    clean = parts._replace(
        netloc=host, path=path, query=_pairs(parts.query), fragment=_pairs(parts.fragment, bare=True)
    )
    return _TOKEN.sub(HIDDEN, urlunsplit(clean))


@functools.lru_cache(maxsize=4096)  # a report has the same words many times
def redact_text(text: str) -> str:
    """``text`` without the secrets in it."""
    if not _WORTH_A_LOOK.search(text):
        return text
    text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text)
    text = _URL.sub(_of_match, text)
    text = _ENCODED_LOGIN.sub(rf"\1{HIDDEN}%40", text)
    text = _BARE_LOGIN.sub(f"{HIDDEN}@", _RELATIVE_LOGIN.sub(r"\1", text))
    text = _HEADER.sub(rf"\1\2{HIDDEN}", text)
    text = _SCHEME.sub(rf"\1\2{HIDDEN}", text)
    text = _CURL_USER.sub(rf"\1{HIDDEN}", _NETRC.sub(rf"\1{HIDDEN}", text))
    return _TOKEN.sub(HIDDEN, _ASSIGNED.sub(_of_assignment, text))


def is_secret_name(name: str) -> bool:
    """Whether a variable, an option or a field of this name contains a secret: HF_TOKEN, api-key, client_secret."""
    return bool(_SECRET_NAME.search(name))


def redacted(value: Any, clean: Callable[[str], str] = redact_text) -> Any:
    """``value`` with every string in it cleaned, including field names, keys, and items of lists and tuples."""
    if isinstance(value, str):
        text = clean(value) if type(value) is str else value
        return value if text == value else text  # the cleaner may remember an equal one
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        old = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        new = {name: redacted(item, clean) for name, item in old.items()}
        return value if all(new[name] is item for name, item in old.items()) else dataclasses.replace(value, **new)
    if isinstance(value, Mapping):
        items = {clean(name) if type(name) is str else name: redacted(item, clean) for name, item in value.items()}
        same = all(name in value and value[name] is item for name, item in items.items())
        return value if same else items
    if type(value) in {tuple, list}:
        new_items = [redacted(item, clean) for item in value]
        return value if all(map(lambda a, b: a is b, new_items, value)) else type(value)(new_items)
    return value


def _of_match(match: re.Match[str]) -> str:
    """A URL in a text, which may be in quotes or brackets and end a sentence."""
    url = match[0].rstrip(")]}>'`,.;!")
    return redact(url) + match[0][len(url) :]


def _of_query(url: str) -> str:
    before, mark, query = url.partition("?")
    return _TOKEN.sub(HIDDEN, before + mark + _pairs(query))


def _pairs(text: str, *, bare: bool = False) -> str:
    """A query, or with ``bare`` a fragment, which may contain words without a name, too."""
    return "".join(piece if piece in "&;" else _pair(piece, bare=bare) for piece in re.split(r"([&;])", text) if piece)


def _pair(text: str, *, bare: bool) -> str:
    name, equals, value = text.partition("=")
    if not equals:
        plain = re.fullmatch(r"[A-Za-z][\w.%/:~-]{0,79}" if bare else r"[a-z_-]{1,20}", name)
        return name if plain and not _TOKEN.search(name) else HIDDEN
    plain_name = unquote(name).lower()
    if plain_name in _HASH_NAMES and re.fullmatch(r"[0-9a-fA-F]*|true", value):
        return text
    if plain_name in _HARMLESS_NAMES and _HARMLESS_VALUE.fullmatch(value):
        return text
    if not is_secret_name(plain_name) and re.fullmatch(r"\d{0,4}|true|false", value):
        return text
    return f"{name}={HIDDEN}"


def _of_assignment(match: re.Match[str]) -> str:
    value = match["value"]
    bare = value.strip("\"'")
    if not bare or bare.startswith((HIDDEN, "(hidden)", "$", "%(", "{")):
        return match[0]
    if match["blank"] is not None and not match[1].startswith("--"):
        return match[0]
    if (match["always"] or "").lower() == "jwt" and match[4].startswith(":") and not _looks_secret(bare, 12):
        return match[0]  # a sentence about a package: jwt, pyjwt
    if match["always"] and match["always"].lower() == "pwd" and bare.startswith(("/", "~", ".")):
        return match[0]
    if match["perhaps"] and not _looks_secret(bare, 8 if match["perhaps"].lower() == "token" else 12):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match[1]}{match[4]}{quote}{HIDDEN}{quote}"


def _looks_secret(value: str, shortest: int) -> bool:
    """Whether a value is a mix that no word or number is."""
    mixed = re.search(r"[A-Za-z]", value) and (re.search(r"\d", value) or re.search(r"[a-z][A-Z]", value))
    return len(value) >= shortest and bool(mixed) and not re.search(r"[(){}\[\]]", value)
