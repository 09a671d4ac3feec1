"""The possible needs of a library whose dynamic section was not read, but whose strings were."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from itertools import islice

from wheel_checks.formats.elf.dynamic import DynamicFacts

_LIBRARY = re.compile(r"[\w.+-]+\.so(?:\.[\w.]+)?")
# auditwheel renames libgomp.so.1 to libgomp-a49a47f9.so.1.0.0. The old name stays in .dynstr, and nothing needs it.
_MANGLED = re.compile(r"(?P<stem>.+?)(?:-[0-9a-f]{8})+\.so")
_MOST = 1000  # names; libraries need some thirty


def supposed_dynamic(path: str, names: Iterable[str]) -> DynamicFacts:
    """The largest possible dynamic section of a file at ``path``, by the strings of its .dynstr.

    Every name of a library is taken for a need, but its own and those that a mangled one replaced; every string with
    ``$ORIGIN`` for a DT_RPATH. The soname is the file name, or the one among ``names`` that differs in its version, or
    by "lib" before the name of a module.
    """
    names = list(dict.fromkeys(islice(names, _MOST)))
    own = posixpath.basename(path)
    libraries = [name for name in names if _LIBRARY.fullmatch(name)]
    alike = (name for name in libraries if _stem(name) == _stem(own) or name == f"lib{own}")
    soname = own if own in libraries else next(alike, own)
    replaced = {match["stem"] for name in libraries if (match := _MANGLED.match(name))}
    needed = (n for n in libraries if n not in (own, soname) and (_MANGLED.match(n) or _stem(n) not in replaced))
    return DynamicFacts(
        found_by="section",
        needed=tuple(needed),
        soname=soname,
        rpath=tuple(entry for name in names if "$ORIGIN" in name or "${ORIGIN}" in name for entry in name.split(":")),
        runpath=(),
        text_relocations=False,
    )


def _stem(name: str) -> str:
    """The part before ``.so``."""
    return name.partition(".so")[0]
