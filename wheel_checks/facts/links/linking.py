"""Wheels laid out as if they were installed together, and what the loader would find there. Pure."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.links.closure import Closure, LoaderEnvironment, Need, Status, close
from wheel_checks.facts.links.known_libraries import preloader_of
from wheel_checks.facts.links.possible_needs import supposed_dynamic
from wheel_checks.formats.digests import WrongHash
from wheel_checks.formats.elf.file import ElfFacts, Missing, Part
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import Target

_DATA = re.compile(r"^[^/]+\.data/(?P<scheme>[^/]+)/(?P<rest>.+)$")
_LIBRARY = re.compile(r"\.so(?:\.[\w.]+)?$")
# The last: a package's folder of compiled modules, whose names may be those of libraries (triton/_C/libtriton.so).
_EXTENSION_MODULE = re.compile(r"(?:\.cpython-[\w-]+|\.abi3)\.so$|(?:^|/)_[^/]*\.so$|(?:^|/)_C/[^/]+\.so$")


@dataclass(frozen=True, slots=True)
class LaidOutWheel:
    """A wheel's ELF files by the path that they get in site-packages, and what reading them cost in bytes.

    ``unread`` are the paths of which it is not known what they need: their dynamic section here names nothing.
    """

    file_name: str
    files: Mapping[str, ElfFacts]
    unread: frozenset[str] = field(default=frozenset())
    bytes_read: int = 0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class AbsentPackage:
    """A required package that brings no wheel to the target: a sentence why, and who requires it ("" for the wheel)."""

    name: str
    version: str
    why: str
    required_by: tuple[str, ...]
    sdist_only: bool


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The link closure of a wheel with the wheels that it requires on its target.

    ``owners`` maps each path of the closure to the file name of its wheel; ``wheels`` are those file names, the judged
    wheel first. ``how`` tells how the requirements were resolved ("exact pins of METADATA", "uv"); ``absent`` are those
    of which no wheel exists, unknown when none was looked for; ``not_followed`` those whose wheels were not read.
    ``imported`` are the paths of the wheel's extension modules and of what these lead to; of all others it is not known
    whether anything opens them. ``wrong_metadata`` is METADATA that was served with another hash than was stated.
    """

    closure: Closure
    files: Mapping[str, ElfFacts]
    owners: Mapping[str, str]
    wheels: tuple[str, ...]
    absent: tuple[AbsentPackage, ...] | Unavailable
    how: str
    imported: frozenset[str]
    not_followed: tuple[str, ...] = ()
    bytes_read: int = 0
    requests: int = 0
    wrong_metadata: tuple[WrongHash, ...] = ()


def installed_path(member: str) -> str:
    """Where a member of a wheel is installed, relative to site-packages (binary distribution format, ".data" folders).

    Scripts, headers and data land outside site-packages: ``../../../bin/x`` as in a virtual environment on Linux.
    """
    match = _DATA.match(member)
    if match is None:
        return member
    if match["scheme"] in ("purelib", "platlib"):
        return match["rest"]
    folder = {"scripts": "bin", "headers": "include", "data": "."}.get(match["scheme"], match["scheme"])
    return f"../../../{folder}/{match['rest']}".replace("/./", "/")


def lay_out(file_name: str, elfs: Sequence[MemberElf], bytes_read: int = 0, requests: int = 0) -> LaidOutWheel:
    """The readable ELF files of one wheel where they would be installed.

    Where head and tail did not tell the dynamic section, it is supposed from the strings of .dynstr, and marked as
    possible; without these, only that the soname is the file name.
    """
    files: dict[str, ElfFacts] = {}
    unread = set()
    for elf in elfs:
        if isinstance(elf.facts, Unavailable):
            continue
        path = installed_path(elf.member.name)
        files[path] = elf.facts
        if isinstance(elf.facts.dynamic, Missing):
            names = () if isinstance(elf.possible_names, Unavailable) else elf.possible_names
            if not names:
                unread.add(path)
            dynamic = supposed_dynamic(path, names)
            files[path] = replace(elf.facts, dynamic=dynamic, possible=elf.facts.possible | {Part.DYNAMIC})
    return LaidOutWheel(file_name, files, frozenset(unread), bytes_read, requests)


def link(
    wheel: LaidOutWheel,
    dependencies: Sequence[LaidOutWheel],
    target: Target,
    *,
    absent: Sequence[AbsentPackage] | Unavailable = (),
    how: str = "",
    not_followed: Sequence[str] = (),
) -> LinkFacts:
    """Find every DT_NEEDED of the wheel and of its dependencies. Of two wheels with one path the judged one counts.

    Raises FormatError when finding the libraries takes too many searches.
    """
    files: dict[str, ElfFacts] = {}
    owners: dict[str, str] = {}
    unread: set[str] = set()
    for one in (*reversed(dependencies), wheel):
        files |= one.files
        owners |= dict.fromkeys(one.files, one.file_name)
        unread = unread - one.files.keys() | one.unread
    files = {path: elf for path, elf in files.items() if elf.header.machine == target.machine}
    modules = [path for path in sorted(files) if _EXTENSION_MODULE.search(path)]
    programs = [path for path in sorted(files) if not _LIBRARY.search(path)]
    beside_unread = {posixpath.dirname(path) for path in unread}  # may be what an unread library loads
    preloaded = tuple(p for p in sorted(files) if preloader_of(p) or posixpath.dirname(p) in beside_unread)
    loader = LoaderEnvironment(target.machine, preloaded=preloaded, glibc=target.glibc)
    closure = close(files, [*modules, *programs], loader)
    closure = replace(closure, unread=tuple(sorted(unread & files.keys())))
    return LinkFacts(
        closure,
        files,
        owners,
        tuple(one.file_name for one in (wheel, *dependencies)),
        absent if isinstance(absent, Unavailable) else tuple(absent),
        how,
        frozenset(_imported(closure, [path for path in modules if path in wheel.files], wheel.files)),
        tuple(not_followed),
        sum(one.bytes_read for one in dependencies),
        sum(one.requests for one in dependencies),
    )


def _imported(closure: Closure, modules: Sequence[str], own: Collection[str]) -> set[str]:
    """The modules and what they lead to; a library that was not read leads to what lies beside it and is needed.

    Of a wheel without modules its code opens libraries by name, such as one for each CUDA, of which one must load: when
    none does, all count as imported.
    """
    needed: dict[str, list[Need]] = defaultdict(list)
    for need in closure.needs:
        needed[need.elf].append(need)
    beside: dict[str, list[str]] = defaultdict(list)
    for path in sorted(needed.keys() - set(closure.orphans)):
        beside[posixpath.dirname(path)].append(path)
    libraries = [path for path in sorted(own) if path in needed and _LIBRARY.search(path)]
    lame = [path for path in libraries if any(need.status is Status.MISSING for need in needed[path])]
    found: set[str] = set()
    front = [*(modules or (lame if lame == libraries else ()))]
    while front:
        path = front.pop()
        if path not in found:
            found.add(path)
            front += [need.by for need in needed[path] if need.by]
            front += beside[posixpath.dirname(path)] if path in closure.unread else []
    return found
