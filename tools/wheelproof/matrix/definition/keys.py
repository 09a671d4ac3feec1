"""The keys of a cell in ``ci/matrix.toml``: the valid values of each, with one sentence for an invalid one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Annotated, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheel_checks.decode import Check, Filled, Key, Made
from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.compile_targets import parse_target
from wheel_checks.formats.documents import Ratio
from wheel_checks.formats.secrets import redact
from wheel_checks.parsing import requirement_or_none
from wheel_checks.targets.target import OLDEST_GLIBC, parse_python
from wheelproof.matrix.model import GPU_RUNNER, LATEST, NIGHTLY, Accelerator, Known, Smoke

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,40}")
_PYTHON = re.compile(r"3\.[0-9]{1,2}(?:\.[0-9]{1,2})?t?")  # without the other forms of --python: it is part of the id
_LONGEST_MODULE = 200  # characters
_OPERATORS = tuple("<>=!~")  # with which a specifier begins (PEP 440)
_PLACE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]+):|)[^\s\x00-\x1f]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = ("HOME", "PATH", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "TMPDIR")  # set by the cell itself
_DEBIAN = re.compile(r"[a-z0-9][a-z0-9+.-]{1,80}")  # Debian Policy Manual, 5.6.1
_MOST_RETRIES = 10
_GLIBC = re.compile(r"2\.(?:1[7-9]|[2-9][0-9])")  # 2.17 is the oldest for which there are aarch64 wheels (PEP 599)


def _python(text: str) -> str:
    if not _PYTHON.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not a Python version", expected="one such as 3.12 or 3.13t")
    parse_python(text)
    return text


def _torch(text: str) -> str:
    """A version in its normal form, a specifier without spaces, or one of the two words."""
    if text in {LATEST, NIGHTLY}:
        return text
    try:
        if text[:1] in _OPERATORS:
            found = "".join(text.split())
            SpecifierSet(found)
            return found
        return str(Version(text))
    except (InvalidVersion, InvalidSpecifier):
        expected = f'one such as 2.11.0 or 2.11.0+cu128, ">=2.11", "{LATEST}" or "{NIGHTLY}"'
        raise UsageError(f"{text[:80]!r} is not a version", expected=expected) from None


def _gpu(text: str) -> str:
    parse_target(text)
    return text


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not a name", expected="letters, digits and . _ + - alone")
    return text


def _package(text: str) -> str:
    requirement = requirement_or_none(text)
    if requirement is None:
        raise UsageError(f"{text[:80]!r} is not a requirement", expected="one such as numpy or triton==3.6.0")
    if canonicalize_name(requirement.name) == "torch":
        raise UsageError("torch has its own axis", expected="further packages")
    return text


def _module(text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")) or len(text) > _LONGEST_MODULE:
        raise UsageError(f"{text[:80]!r} is not a module", expected="one such as mine or mine.kernels")
    return text


def _requirement_or_file(text: str) -> str:
    if not is_file_name(text) and requirement_or_none(text) is None:
        expected = "one such as numpy<3, or the path of a file of them that ends in .txt"
        raise UsageError(f"{text[:80]!r} is not a requirement", expected=expected)
    return text


def is_file_name(constraint: str) -> bool:
    """Whether an entry of ``constraints`` names a file: a requirement has no such end."""
    return constraint.endswith((".txt", ".in"))


def _place(text: str) -> str:
    matched = _PLACE.fullmatch(text)
    if matched is None or (matched[1] or "https").lower() not in {"http", "https", "file"}:
        raise UsageError(f"{text[:80]!r} is not a package location", expected="an http, https or file URL, or a path")
    if matched[1] and "@" in text.partition("://")[2].partition("/")[0]:
        raise UsageError(
            f"{redact(text)[:80]!r} contains a login", expected="a URL without credentials: put them into netrc"
        )
    return text


def _several(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _environment(values: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in values.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise UsageError(f"{name[:80]!r} is not a variable", expected="letters, digits and _ alone, and a text")
        if name in _OWN:
            raise UsageError(f"{name} is set by wheelproof", expected="another variable")
    return values


def debian_package(text: str) -> str:
    """The name of a Debian package. Raises UsageError for any other text."""
    if not _DEBIAN.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not a Debian package", expected="one such as libgl1")
    return text


def _inner_path(text: str) -> str:
    path = PurePosixPath(text)
    half_stars = any("**" in part and part != "**" for part in path.parts)
    if half_stars or path.is_absolute() or ".." in path.parts or not path.parts or "\0" in text:
        raise UsageError(f"{text[:80]!r} is not a file in the folder of the command", expected="one such as report.xml")
    return text


def _glibc(text: str) -> str:
    if not _GLIBC.fullmatch(text):
        raise UsageError(f"{text[:80]!r} is not a glibc version", expected="one from 2.17 on, such as 2.28")
    return text


def _one_of(*known: str) -> Check:
    return Check(known.__contains__, f"one of {', '.join(known)}")


def distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    """The values of an axis. Raises UsageError for a duplicate."""
    if len(set(values)) < len(values):
        raise UsageError(f"{max(values, key=values.count)!r} is there twice", expected="each once")
    return values


Platform = Annotated[str, _one_of(*OLDEST_GLIBC)]
Python = Annotated[str, Made(_python)]
Torch = Annotated[str, Made(_torch)]
Where = Annotated[str, Made(_place)]
Places = Annotated[tuple[str, ...], Made(_several, of=Where | tuple[Where, ...])]
Name = Annotated[str, Made(_name)]
Place = Annotated[str, _one_of(*OLDEST_GLIBC, GPU_RUNNER)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The fields of a cell set by a table, described in :class:`wheelproof.matrix.model.Cell`; None for the others."""

    accelerator: Accelerator | None = None
    gpu: tuple[Annotated[str, Made(_gpu)], ...] | None = None
    smoke: tuple[Smoke, ...] | None = None
    level: Annotated[str, _one_of("quick", "full", "deep")] | None = None  # of the suite of kernels
    kernels: tuple[Name, ...] | None = None
    packages: tuple[Annotated[str, Made(_package)], ...] | None = None
    wheel: Filled | None = None
    imports: Annotated[tuple[Annotated[str, Made(_module)], ...] | None, Key("import")] = None
    command: Filled | None = None
    junit: Annotated[str, Made(_inner_path)] | None = None
    index: Places | None = None
    torch_index: Where | None = None
    find_links: Places | None = None
    pre: bool | None = None
    constraints: tuple[Annotated[str, Made(_requirement_or_file)], ...] | None = None
    env: Annotated[Mapping[str, str], Made(_environment, of=Mapping[str, str])] | None = None
    system_packages: tuple[Annotated[str, Made(debian_package)], ...] | None = None
    glibc: Annotated[str, Made(_glibc)] | None = None
    image: str | None = None
    runner: tuple[str, ...] | None = None
    deadline: Ratio | None = None
    timeout: Ratio | None = None
    retries: Annotated[int, Check(range(_MOST_RETRIES + 1).__contains__, f"from 0 to {_MOST_RETRIES}")] | None = None
    expect: Known | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The fields with their values."""
        values = ((option.name, getattr(self, option.name)) for option in fields(Options))
        return {name: value for name, value in values if value is not None}
