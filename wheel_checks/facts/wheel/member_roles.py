"""The role of a member: its path without what one build of a wheel has and another has not. Pure.

Two builds of one wheel name the same library ``_C.cpython-312-aarch64-linux-gnu.so`` and ``_C.abi3.so``, or
``libgomp-a49a47f9.so.1`` and ``libgomp-24fd393f.so.1``; both are the same role.
"""

import re
from collections.abc import Collection, Iterable
from enum import StrEnum

from wheel_checks.facts.elf.native_members import is_library, may_be_elf
from wheel_checks.formats.zip.directory import Member

# PEP 3149 and what CPython does on Windows and for byte code: .cpython-312-aarch64-linux-gnu.so, .abi3.so,
# .cp312-win_amd64.pyd, .cpython-312.pyc
_MODULE_SUFFIX = re.compile(
    r"\.(?:cpython-[\w-]{1,80}|abi3|abi3t|cp3\d{1,3}t?-\w{1,40})(?=(?:\.opt-\d)?\.(?:so|pyd|pyc)$)"
)
# auditwheel puts the first eight digits of the file's sha256 into its name, twice when a wheel is repaired twice:
# libgfortran-040039e1-0352e75f.so.5.0.0, libopenblasp-r0-121ca252.3.30.so
_AUDITWHEEL_HASH = re.compile(r"(?:-[0-9a-f]{8}){1,4}(?=\.(?:so\b|\d))")
# {distribution}-{version}.dist-info and .data of the binary distribution format
_VERSIONED_FOLDER = re.compile(r"^[^/]{1,500}-[^/]{1,500}\.(dist-info|data)/")
_PYTHON = (".py", ".pyi")
_HEADER = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".ipp", ".tcc")
_OTHER_NATIVE = (".pyd", ".dll", ".dylib")
_COMPARED_BY_FIELD = tuple(f"*.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD"))
_LONGEST = 4_000  # characters of a name that are inspected


class Kind(StrEnum):
    """What a member is for, by its name; in the order in which differences matter."""

    PYTHON = "Python files"
    NATIVE = "native files"
    DIST_INFO = "dist-info files"
    HEADER = "headers"
    DATA = "data files"


def role_of(name: str) -> str:
    """The path of a member, or a soname, without hash, tag of the Python and platform, and version of the wheel."""
    if len(name) > _LONGEST:
        return name
    folder, slash, base = _VERSIONED_FOLDER.sub(r"*.\1/", name).rpartition("/")
    return folder + slash + _MODULE_SUFFIX.sub("", _AUDITWHEEL_HASH.sub("", base))


def members_by_role(members: Iterable[Member], elfs: Collection[str] | None) -> dict[Kind, dict[str, Member]]:
    """The files among the members by kind and role; one whose role is taken goes by its own name.

    ``elfs`` are the names of the members that are ELF files, None when that was not read: then names decide. METADATA,
    WHEEL and RECORD are omitted: they are compared field by field, or differ in every build.
    """
    found: dict[Kind, dict[str, Member]] = {kind: {} for kind in Kind}
    for member in members:
        role = role_of(member.name)
        if member.is_directory or role in _COMPARED_BY_FIELD:
            continue
        roles = found[_kind_of(member, role, elfs)]
        roles[member.name if role in roles else role] = member
    return found


def _kind_of(member: Member, role: str, elfs: Collection[str] | None) -> Kind:
    name = member.name
    if role.startswith("*.dist-info/"):
        return Kind.DIST_INFO
    if name.endswith(_PYTHON):
        return Kind.PYTHON
    if name.endswith(_HEADER):
        return Kind.HEADER
    native = is_library(name) or name.endswith(_OTHER_NATIVE)
    native = native or (may_be_elf(member) if elfs is None else name in elfs)
    return Kind.NATIVE if native else Kind.DATA
