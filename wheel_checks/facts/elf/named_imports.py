"""What the libraries of a wheel need of the C library's former parts and of Python, by the names of symbols."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from wheel_checks.data import load
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.archive.kept import AsJson, FileFacts
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.elf.reading import Effort, read_member_elfs
from wheel_checks.formats.elf.file import Missing, Part
from wheel_checks.formats.elf.symbols import DynamicSymbols
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

_LARGEST = 24 << 20  # compressed bytes of a library whose symbols are read, when it claims the stable ABI
_LARGEST_OF_OTHERS = 4 << 20
_MOST = 64  # libraries of a wheel, the smallest first
_EFFORT = Effort(512 * 1024, 0, 0)
_STREAMED = 1 << 20  # compressed bytes up to which a library is read whole when its head and tail do not say
_OF_PYTHON = re.compile(r"_?Py(?:_|[A-Z]\w*_)")
_STABLE_FILE = re.compile(r"\.abi3\.so$")
_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class NamedImports:
    """The strong undefined symbols of one member that rules ask for.

    ``moved`` are names that glibc moved into libc.so.6, without a version or with one older than the move; ``python``
    those of Python, of a member that claims the stable ABI.
    """

    member: str
    moved: tuple[str, ...]
    python: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedImportFacts:
    """The members that need such symbols, and those whose symbols were not read."""

    found: tuple[NamedImports, ...]
    unread: tuple[str, ...] = ()


def kept_named_imports(source: ByteSource, archive: Archive, kept: FileFacts, *, stable: bool) -> NamedImportFacts:
    """What :func:`read_named_imports` finds, from the cache when it was read before. Raises SourceError."""
    encoding = AsJson(NamedImportFacts)
    name = f"named imports{' of the stable ABI' * stable}"
    return kept.remember(name, encoding, lambda: read_named_imports(source, archive, stable=stable))


def read_named_imports(source: ByteSource, archive: Archive, *, stable: bool) -> NamedImportFacts:
    """The symbols of the libraries, of large wheels those of the smallest. Raises SourceError.

    ``stable`` says that the wheel's tag claims the stable ABI for all of its libraries.
    """
    libraries = sorted((m for m in unpackable(archive.members) if is_library(m.name)), key=lambda m: m.compressed_size)
    claims = {m.name: stable or bool(_STABLE_FILE.search(m.name)) for m in libraries}
    chosen = [m for m in libraries if m.compressed_size <= (_LARGEST if claims[m.name] else _LARGEST_OF_OTHERS)][:_MOST]
    unread = {member.name for member in libraries} - {member.name for member in chosen}
    found = []
    stream = _STREAMED if source.remote else _LARGEST  # of a file on this host reading more costs nothing
    for elf in read_member_elfs(source, archive, chosen, {Part.SYMBOLS}, effort=_EFFORT, stream=stream):
        if isinstance(elf.facts, Unavailable):
            continue
        if isinstance(elf.facts.symbols, Missing):
            unread.add(elf.member.name)
        elif elf.facts.symbols is not None:
            one = _named(elf.member.name, elf.facts.symbols, claims=claims[elf.member.name])
            if one.moved or one.python:
                found.append(one)
    return NamedImportFacts(tuple(found), tuple(sorted(unread)))


def _named(member: str, symbols: DynamicSymbols, *, claims: bool) -> NamedImports:
    moved = moved_symbols()
    pairs = [(symbol.name, symbol.version) for symbol in symbols.undefined if symbol.binding == "GLOBAL"]
    return NamedImports(
        member,
        tuple(sorted(name for name, version in pairs if name in moved and _is_older(version, moved[name][1]))),
        tuple(sorted(name for name, _ in pairs if _OF_PYTHON.match(name))) if claims else (),
    )


def _is_older(version: str, since: tuple[int, int]) -> bool:
    match = _GLIBC.fullmatch(version)
    return not version or (match is not None and (int(match[1]), int(match[2])) < since)


@cache
def moved_symbols() -> dict[str, tuple[str, tuple[int, int]]]:
    """The library that a symbol was in, and the first glibc whose libc.so.6 has it; ``data/glibc_moves.toml``.

    Those of libraries that the interpreter needs wherever they exist are omitted: they are in every process.
    """
    found = {}
    for row in load("glibc_moves")["library"]:
        if not row["interpreter"]:
            major, minor = map(int, row["since"].split("."))
            found.update(dict.fromkeys(row["symbols"], (row["soname"], (major, minor))))
    return found


def brings_nothing(soname: str) -> bool:
    """Whether this library of the system is known to bring none of the libraries that are former parts of glibc."""
    return any(re.fullmatch(row["pattern"], soname) for row in load("glibc_moves")["needs_none"])


@cache
def limited_api() -> dict[str, tuple[int, int]]:
    """The symbols of CPython's limited API, each with the Python that added it; ``data/limited_api.toml``."""
    found = {}
    for row in load("limited_api")["added"]:
        major, minor = map(int, row["python"].split("."))
        found.update(dict.fromkeys(row["symbols"], (major, minor)))
    return found


def outside_limited_api(names: Sequence[str]) -> tuple[str, ...]:
    """The names of Python that are not in its limited API. A module's own PyInit function is not a name of Python."""
    return tuple(name for name in names if name not in limited_api() and not name.startswith("PyInit_"))
