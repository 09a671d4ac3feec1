"""The differences of one native file between two wheels: needs, search paths, GPU targets.

Pure. Sonames are compared by their role, so that auditwheel's hash makes no difference.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.wheel.member_roles import role_of
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import Missing
from wheel_checks.formats.elf.versions import SymbolVersions
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Unavailable

_NUMBERED = re.compile(r"([A-Z]+)_(\d+(?:\.\d+)*)")  # GLIBC_2.17, GLIBCXX_3.4.21, CXXABI_1.3.9
_NO_CODE = GpuCode({}, "exact", {})


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs; "" for a side without one."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class LinkDifference:
    """How linking one native file differs. ``only_a`` and ``only_b`` are sonames certainly needed by one side and
    certainly not by the other; ``maybe_a`` and ``maybe_b`` are undecided by the parts that were read.

    ``changes`` are of soname, RPATH, RUNPATH, interpreter, and of the latest version needed of each kind of symbol.
    """

    name: str
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    maybe_a: tuple[str, ...] = ()
    maybe_b: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def differs(self) -> bool:
        """True when anything differs, or might."""
        return bool(self.only_a or self.only_b or self.maybe_a or self.maybe_b or self.changes)


@dataclass(frozen=True, slots=True)
class GpuCodeDifference:
    """The targets of one library's GPU code by architecture, possibly none; ``certainty`` of the less certain side."""

    name: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    certainty: str

    @property
    def only_a(self) -> tuple[str, ...]:
        """The targets that only A has."""
        return tuple(label for label in self.a if label not in self.b)

    @property
    def only_b(self) -> tuple[str, ...]:
        """The targets that only B has."""
        return tuple(label for label in self.b if label not in self.a)


def compare_links(name: str, a: MemberElf, b: MemberElf) -> LinkDifference | Unavailable:
    """How linking differs; Unavailable when not even the possible needs of one side are known."""
    needs_a, needs_b = _needs_of(a), _needs_of(b)
    if isinstance(needs_a, Unavailable):
        return needs_a
    if isinstance(needs_b, Unavailable):
        return needs_b
    only_a, only_b = needs_a.certain_without(needs_b), needs_b.certain_without(needs_a)
    return LinkDifference(
        name,
        only_a,
        only_b,
        tuple(sorted(needs_a.possible - needs_b.possible - set(only_a))),
        tuple(sorted(needs_b.possible - needs_a.possible - set(only_b))),
        tuple(_changes(_loader_values(a), _loader_values(b))),
    )


class _Needs(NamedTuple):
    """The certain needs of an ELF file, and all possible ones (these included)."""

    certain: frozenset[str]
    possible: frozenset[str]

    def certain_without(self, other: _Needs) -> tuple[str, ...]:
        """The sonames certainly needed here, and certainly not there, not even as the end of a merged string."""
        backwards = sorted(name[::-1] for name in other.possible - other.certain)
        return tuple(s for s in sorted(self.certain - other.possible) if not _has_prefix(backwards, s[::-1]))


def _has_prefix(ordered: Sequence[str], prefix: str) -> bool:
    """Whether one of the strings, which are in order, starts with the prefix."""
    place = bisect_left(ordered, prefix)
    return place < len(ordered) and ordered[place].startswith(prefix)


def _needs_of(elf: MemberElf) -> _Needs | Unavailable:
    if isinstance(elf.facts, Unavailable):
        return elf.facts
    dynamic = elf.facts.dynamic
    if isinstance(dynamic, DynamicFacts):
        sonames = frozenset(map(role_of, dynamic.needed))
        return _Needs(sonames, sonames)
    if dynamic is None:
        return _Needs(frozenset(), frozenset())
    if isinstance(elf.possible_names, Unavailable):
        return elf.possible_names
    own = elf.member.name.rpartition("/")[2]
    names = {role_of(name) for name in elf.possible_names if is_library(name) and "/" not in name and name != own}
    return _Needs(frozenset(), frozenset(names))


def _loader_values(elf: MemberElf) -> dict[str, str]:
    """The values that control how the loader treats the file, by name; unknown ones are omitted."""
    values: dict[str, str] = {}
    if isinstance(elf.facts, Unavailable):
        return values
    dynamic, versions, interpreter = elf.facts.dynamic, elf.facts.versions, elf.facts.interpreter
    if not isinstance(dynamic, Missing):
        values["soname"] = role_of(dynamic.soname or "") if dynamic else ""
        values["RPATH"] = ":".join(dynamic.rpath) if dynamic else ""
        values["RUNPATH"] = ":".join(dynamic.runpath) if dynamic else ""
    if not isinstance(interpreter, Missing):
        values["interpreter"] = interpreter or ""
    if isinstance(versions, SymbolVersions):
        values |= newest_versions(versions)
    return values


def newest_versions(versions: SymbolVersions) -> dict[str, str]:
    """The latest version needed of each kind of symbol: {"GLIBC": "2.28", "GLIBCXX": "3.4.25"}."""
    newest: dict[str, tuple[int, ...]] = {}
    for need in versions.needs:
        for version in need.versions:
            if match := _NUMBERED.fullmatch(version.name[:200]):
                numbers = tuple(int(number) for number in match[2].split("."))
                newest[match[1]] = max(newest.get(match[1], ()), numbers)
    return {kind: ".".join(map(str, numbers)) for kind, numbers in newest.items()}


def _changes(a: Mapping[str, str], b: Mapping[str, str]) -> Iterable[Change]:
    """The values that both sides know and that differ. Linkers record only used kinds of symbols: others are equal."""
    for name, value in a.items():
        if name in b and value != b[name]:
            yield Change(name, value, b[name])


def compare_gpu_code(
    a: GpuCodeFacts, b: GpuCodeFacts, names_a: Mapping[str, str], names_b: Mapping[str, str]
) -> tuple[list[GpuCodeDifference], list[str]]:
    """The GPU code of every library that both wheels have, if at least one side has some; and the roles of libraries
    that could not be read on one side.

    ``names_a`` and ``names_b`` map the roles of native files to the names of their members.
    """
    codes_a, codes_b = ({library.member: library.code for library in facts.libraries} for facts in (a, b))
    found: list[GpuCodeDifference] = []
    unread: list[str] = []
    for role in sorted(names_a.keys() & names_b.keys()):
        # A library that is not among the facts was read, and has no section of GPU code.
        code_a, code_b = codes_a.get(names_a[role], _NO_CODE), codes_b.get(names_b[role], _NO_CODE)
        if isinstance(code_a, Unavailable) or isinstance(code_b, Unavailable):
            unread.append(role)
            continue
        if "sampled" in (code_a.certainty, code_b.certainty):  # two samples differ by chance
            unread.append(role)
            continue
        labels_a, labels_b = _labels(code_a), _labels(code_b)
        if labels_a or labels_b:
            found.append(GpuCodeDifference(role, labels_a, labels_b, (code_a + code_b).certainty))
    return found, unread


def _labels(code: GpuCode) -> tuple[str, ...]:
    known = (*code.sass, *code.ptx)
    return (*known, *sorted(label for label in code.counts if label not in known))
